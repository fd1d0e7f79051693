# verdict: slow-wire
# points: 4
# hint: fewest bytes out of a node
from course_lib.costs import choose_all_reduce


def choose(machine, world_size, nbytes):
    name = choose_all_reduce(nbytes, world_size).algorithm
    return "ring" if "ring" in name else name.removesuffix("_all_reduce")
