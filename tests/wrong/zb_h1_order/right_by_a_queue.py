# verdict: passed
# points: 6
from collections import deque

from course_lib.schedule import Op


def zb_h1_order(p, m):
    def rank(r):
        pending = deque()
        warmup = min(p - 1 - r, m)
        yield from (Op(r, "F", j) for j in range(warmup))
        for j in range(m):
            if warmup + j < m:
                yield Op(r, "F", warmup + j)
            yield Op(r, "I", j)
            pending.append(Op(r, "W", j))
            if len(pending) > r:
                yield pending.popleft()
        yield from pending

    return [list(rank(r)) for r in range(p)]
