# verdict: all-32-bits
# points: 0
# hint: 2 bytes each
def state_bytes(units, world_size, stage):
    whole = sum(units)
    shard = sum(-(-n // world_size) for n in units)
    parameters = 4 * (shard if stage >= 3 else whole)
    gradients = 4 * (shard if stage >= 2 else whole)
    optimizer = 8 * (shard if stage >= 1 else whole)
    return [parameters, gradients, optimizer]
