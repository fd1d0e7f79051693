# verdict: forbidden
# points: 0
# hint: Write the formula out
from course_lib import costs


def state_bytes(units, world_size, stage):
    return [costs.zero_memory_bytes(n, world_size, stage) for n in units]
