# verdict: order-differs
# points: 4
# hint: the ones before it have started
import torch

from course_lib.collectives import all_reduce


def reduce_in_buckets(buckets, group):
    stream, jobs = group.stream("comm"), {}
    missing = [set(bucket) for bucket in buckets]

    def start(i):
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in buckets[i]]
        flat = torch.cat([g.flatten() for g in grads])
        jobs[i] = stream.submit(all_reduce, flat, stream.group, op="mean")

    def arrived(p):
        for i, waiting in enumerate(missing):
            waiting.discard(p)
            if not waiting and i not in jobs:
                start(i)

    def finish():
        for i in range(len(buckets)):
            if i not in jobs:
                start(i)
        for i, bucket in enumerate(buckets):
            for p, mean in zip(bucket, jobs[i].wait().split([p.numel() for p in bucket])):
                p.grad = mean.view_as(p)
        jobs.clear()
        missing[:] = [set(bucket) for bucket in buckets]

    for bucket in buckets:
        for p in bucket:
            p.register_post_accumulate_grad_hook(arrived)
    return finish
