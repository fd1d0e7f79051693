# verdict: passed
# points: 4
def state_bytes(units, world_size, stage):
    total = [0, 0, 0]
    for n in units:
        padded = n + (-n) % world_size
        for i, (size, first) in enumerate(((2, 3), (2, 2), (4 + 4 + 4, 1))):
            total[i] += size * (padded // world_size if stage >= first else n)
    return total
