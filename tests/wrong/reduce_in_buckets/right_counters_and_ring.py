# verdict: passed
# points: 6
import functools

import torch

from course_lib.collectives import ring_all_reduce


def reduce_in_buckets(buckets, group):
    stream = group.stream("background")
    state = {"next": 0, "left": [len(b) for b in buckets], "jobs": []}

    def reduce(flat):
        return ring_all_reduce(flat, stream.group) / group.size

    def start():
        flat = torch.cat([
            (torch.zeros_like(p) if p.grad is None else p.grad).flatten()
            for p in buckets[state["next"]]])
        state["jobs"].append(stream.submit(reduce, flat))
        state["next"] += 1

    def arrived(i, p):
        state["left"][i] -= 1
        while state["next"] < len(buckets) and state["left"][state["next"]] == 0:
            start()

    def finish():
        while state["next"] < len(buckets):
            start()
        for bucket, job in zip(buckets, state["jobs"]):
            flat, start_at = job.wait(), 0
            for p in bucket:
                p.grad = flat[start_at:start_at + p.numel()].view_as(p).clone()
                start_at += p.numel()
        state.update(next=0, left=[len(b) for b in buckets], jobs=[])

    for i, bucket in enumerate(buckets):
        for p in bucket:
            p.register_post_accumulate_grad_hook(functools.partial(arrived, i))
    return finish
