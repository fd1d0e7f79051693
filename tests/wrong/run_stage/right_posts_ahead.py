# verdict: passed
# points: 8
import torch


def run_stage(ops, module, xs, loss_of, group):
    """The receive of an op's input is posted when the op before it starts."""
    r, last = group.rank, group.rank == group.size - 1
    kept, sends, posted = {}, [], {}

    def post(k):
        if k < len(ops):
            frm = r - 1 if ops[k].kind == "F" else r + 1
            if 0 <= frm < group.size:
                into = torch.empty_like(xs[0])
                posted[k] = into, group.irecv(into, frm)

    def received(k):
        into, handle = posted.pop(k, (None, None))
        if handle:
            handle.wait()
        return into

    post(0)
    for k, op in enumerate(ops):
        into = received(k)
        post(k + 1)
        if op.kind == "F":
            x = xs[op.mb] if r == 0 else into.requires_grad_()
            y = loss_of(op.mb, module(x)) / len(xs) if last else module(x)
            if not last:
                sends.append(group.isend(y, r + 1))
            kept[op.mb] = x, y
        else:
            x, y = kept.pop(op.mb)
            torch.autograd.backward([y], [into])
            if r > 0:
                sends.append(group.isend(x.grad, r - 1))
    for handle in sends:
        handle.wait()
