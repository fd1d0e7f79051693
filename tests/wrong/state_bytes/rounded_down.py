# verdict: rounded-down
# points: 3
# hint: loses the rest
def state_bytes(units, world_size, stage):
    whole = sum(units)
    shard = sum(n // world_size for n in units)
    parameters = 2 * (shard if stage >= 3 else whole)
    gradients = 2 * (shard if stage >= 2 else whole)
    optimizer = 12 * (shard if stage >= 1 else whole)
    return [parameters, gradients, optimizer]
