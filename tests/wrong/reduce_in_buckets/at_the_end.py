# verdict: reduced-at-the-end
# points: 0
# hint: nothing
import torch

from course_lib.collectives import all_reduce


def reduce_in_buckets(buckets, group):
    stream, jobs = group.stream("comm"), []
    missing = [set(bucket) for bucket in buckets]

    def start():
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in buckets[len(jobs)]]
        flat = torch.cat([g.flatten() for g in grads])
        jobs.append(stream.submit(all_reduce, flat, stream.group, op="mean"))

    def finish():
        while len(jobs) < len(buckets):
            start()
        for bucket, job in zip(buckets, jobs):
            means = job.wait().split([p.numel() for p in bucket])
            for p, mean in zip(bucket, means):
                p.grad = mean.view_as(p)
        jobs.clear()
        missing[:] = [set(bucket) for bucket in buckets]

    return finish
