# verdict: forbidden
# points: 0
# hint: Write the formulas
from course_lib.schedule import gpipe, naive, one_f_one_b, time_schedule


def bubbles(name, p, m):
    builder = {"gpipe": gpipe, "naive": naive, "one_f_one_b": one_f_one_b}[name]
    timeline = time_schedule(builder(p, m))
    return timeline.bubble_ratio, timeline.bubble_fraction
