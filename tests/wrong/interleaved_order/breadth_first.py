# verdict: breadth-first
# points: 2
# hint: all m micro-batches are held
from course_lib.schedule import Op


def interleaved_order(p, m, v):
    return [[*(Op(c * p + r, "F", j) for c in range(v) for j in range(m)),
             *(Op(c * p + r, "B", j) for c in reversed(range(v)) for j in range(m))]
            for r in range(p)]
