# verdict: no-wrap
# points: 1
# hint: Each axis is closed
import math


def link_loads(shape, messages):
    loads = {}
    for src, dst, nbytes in messages:
        here = src
        for axis in range(len(shape)):
            stride, size = math.prod(shape[axis + 1:]), shape[axis]
            at, goal = here // stride % size, dst // stride % size
            ahead = goal - at
            for _ in range(abs(ahead)):
                step = 1 if ahead > 0 else -1
                to = (at + step) % size
                link = (here, axis, step)
                loads[link] = loads.get(link, 0) + nbytes
                here, at = here + (to - at) * stride, to
    return loads
