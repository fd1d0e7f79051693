# verdict: forbidden
# points: 0
# hint: engine is off
from course_lib.pipeline import run_pipeline


def run_stage(ops, module, xs, loss_of, group):
    run_pipeline(module, [ops] * group.size, xs, xs, group)
