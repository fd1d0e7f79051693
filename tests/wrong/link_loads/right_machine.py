# verdict: passed
# points: 5
from collections import Counter

from course_lib.machine import Torus


def link_loads(shape, messages):
    chips = 1
    for size in shape:
        chips *= size
    torus = Torus("mine", 0, 1, 1, 1, max_ranks=chips, shape=shape, wraps=(True,) * len(shape))
    loads = Counter()
    for src, dst, nbytes in messages:
        for name in torus.route(src, dst).path:
            _, chip, (letter, sign) = name.split()
            loads[int(chip), "xyz".index(letter), 1 if sign == "+" else -1] += nbytes
    return loads
