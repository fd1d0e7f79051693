# verdict: passed
# points: 5
import itertools

import numpy as np


def link_loads(shape, messages):
    loads = {(c, a, s): 0 for c in range(np.prod(shape)) for a in range(len(shape))
             for s in (1, -1)}
    for (src, dst, nbytes), axis in itertools.product(messages, range(len(shape))):
        here, goal = list(np.unravel_index(src, shape)), np.unravel_index(dst, shape)
        here[:axis] = goal[:axis]
        ahead, size = (goal[axis] - here[axis]) % shape[axis], shape[axis]
        step, hops = (1, ahead) if ahead <= size - ahead else (-1, size - ahead)
        for _ in range(hops):
            loads[int(np.ravel_multi_index(here, shape)), axis, step] += nbytes
            here[axis] = (here[axis] + step) % size
    return loads
