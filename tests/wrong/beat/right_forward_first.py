# verdict: passed
# points: 6
from course_lib.schedule import Op


def beat(p, m, cap):
    """F, I, W in turn, as ZB-H1 is usually drawn."""

    def rank(r):
        more = min(cap - p, p - 1 - r)
        ahead, behind = p - 1 - r + more, r + cap - p - more
        for k in range(-ahead, m + behind):
            for kind, j in (("F", k + ahead), ("I", k), ("W", k - behind)):
                if 0 <= j < m:
                    yield Op(r, kind, j)

    return [list(rank(r)) for r in range(p)]
