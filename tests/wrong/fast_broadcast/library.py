# verdict: forbidden
# points: 0
# hint: yourself
# runs in: soak
from course_lib.collectives import broadcast


def fast_broadcast(x, group, root=0):
    return broadcast(x, group, root)
