# verdict: elements
# points: 0
# hint: These are elements
def state_bytes(units, world_size, stage):
    whole = sum(units)
    shard = sum(-(-n // world_size) for n in units)
    parameters = 1 * (shard if stage >= 3 else whole)
    gradients = 1 * (shard if stage >= 2 else whole)
    optimizer = 1 * (shard if stage >= 1 else whole)
    return [parameters, gradients, optimizer]
