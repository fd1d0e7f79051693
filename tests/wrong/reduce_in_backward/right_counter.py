# verdict: passed
# points: 6
import functools

import torch

from course_lib.collectives import all_to_all


def reduce_in_backward(units, shards, group):
    todo = {}

    def reduce(i):
        flat = torch.zeros(len(shards[i]) * group.size, dtype=shards[i].dtype)
        start = 0
        for p in units[i].parameters():
            if p.grad is not None:
                flat[start:start + p.numel()] = p.grad.flatten() / group.size
            p.grad, start = None, start + p.numel()
        mine = sum(all_to_all(list(flat.chunk(group.size)), group))
        if shards[i].grad is None:
            shards[i].grad = mine
        else:
            shards[i].grad += mine

    def arrived(i, count, p):
        todo[i] = todo.get(i, count) - 1
        if not todo[i]:
            del todo[i]
            reduce(i)

    for i, unit in enumerate(units):
        mine = [p for p in unit.parameters() if p.requires_grad]
        for p in mine:
            p.register_post_accumulate_grad_hook(functools.partial(arrived, i, len(mine)))
