# verdict: no-communication
# points: 0
# hint: works alone
def run_stage(ops, module, xs, loss_of, group):
    for _, kind, mb in ops:
        if kind == "F" and group.rank == group.size - 1:
            (loss_of(mb, module(xs[mb])) / len(xs)).backward()
        elif kind == "F":
            module(xs[mb]).mean().backward()
