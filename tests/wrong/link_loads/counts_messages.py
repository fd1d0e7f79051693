# verdict: counts-messages
# points: 0
# hint: not their number
import math


def link_loads(shape, messages):
    loads = {}
    for src, dst, _ in messages:
        here = src
        for axis in range(len(shape)):
            stride, size = math.prod(shape[axis + 1:]), shape[axis]
            at, goal = here // stride % size, dst // stride % size
            ahead = (goal - at) % size
            ahead -= size if 2 * ahead > size else 0
            for _ in range(abs(ahead)):
                step = 1 if ahead > 0 else -1
                to = (at + step) % size
                link = (here, axis, step)
                loads[link] = loads.get(link, 0) + 1
                here, at = here + (to - at) * stride, to
    return loads
