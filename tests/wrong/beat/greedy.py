# verdict: above-par-tight
# points: 2
# hint: ZB-H1 is at par
from course_lib.schedule import Op

TIMES = {"F": 10, "I": 12, "W": 6}


def beat(p, m, cap):
    """Whatever can start first: an I, or else an F that may be held, or else a W."""
    ended, free, lists = {}, [0] * p, [[] for _ in range(p)]
    count = [dict.fromkeys("FIW", 0) for _ in range(p)]

    def ready(r, kind):
        j = count[r][kind]
        if j == m or kind == "F" and count[r]["F"] - count[r]["W"] == cap:
            return None
        if kind == "W":
            return 0 if j < count[r]["I"] else None
        if kind == "F":
            return ended.get((r - 1, "F", j)) if r else 0
        return ended.get((r, "F", j) if r == p - 1 else (r + 1, "I", j))

    for _ in range(3 * p * m):
        starts = [(max(free[r], at), "IFW".index(kind), r) for r in range(p) for kind in "IFW"
                  for at in [ready(r, kind)] if at is not None]
        start, kind, r = min(starts)
        op = Op(r, "IFW"[kind], count[r]["IFW"[kind]])
        ended[op] = free[r] = start + TIMES[op.kind]
        count[r][op.kind] += 1
        lists[r].append(op)
    return lists
