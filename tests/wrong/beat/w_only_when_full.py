# verdict: above-par-tight
# points: 1
# hint: ZB-H1 is at par
from course_lib.schedule import Op


def beat(p, m, cap):
    """A W as late as the cap lets it be."""

    def rank(r):
        warmup = min(p - r + min(cap - p, p - 1 - r), m) - 1
        ops, held, w = [Op(r, "F", j) for j in range(warmup)], warmup, 0
        for j in range(m):
            if warmup + j < m:
                if held == cap:
                    ops.append(Op(r, "W", w))
                    w, held = w + 1, held - 1
                ops.append(Op(r, "F", warmup + j))
                held += 1
            ops.append(Op(r, "I", j))
        return ops + [Op(r, "W", j) for j in range(w, m)]

    return [rank(r) for r in range(p)]
