# verdict: no-padding
# points: 3
# hint: no fraction of an element
def state_bytes(units, world_size, stage):
    whole = sum(units)
    shard = whole / world_size
    parameters = 2 * (shard if stage >= 3 else whole)
    gradients = 2 * (shard if stage >= 2 else whole)
    optimizer = 12 * (shard if stage >= 1 else whole)
    return [parameters, gradients, optimizer]
