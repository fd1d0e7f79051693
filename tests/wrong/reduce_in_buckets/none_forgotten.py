# verdict: missing-gradient
# points: 5
# hint: counts as zero
import torch

from course_lib.collectives import all_reduce


def reduce_in_buckets(buckets, group):
    stream, jobs = group.stream("comm"), []
    missing = [set(bucket) for bucket in buckets]

    def start():
        grads = [p.grad for p in buckets[len(jobs)]]
        flat = torch.cat([g.flatten() for g in grads])
        jobs.append(stream.submit(all_reduce, flat, stream.group, op="mean"))

    def arrived(p):
        for waiting in missing:
            waiting.discard(p)
        while len(jobs) < len(buckets) and not missing[len(jobs)]:
            start()

    def finish():
        while len(jobs) < len(buckets):
            start()
        for bucket, job in zip(buckets, jobs):
            means = job.wait().split([p.numel() for p in bucket])
            for p, mean in zip(bucket, means):
                p.grad = mean.view_as(p)
        jobs.clear()
        missing[:] = [set(bucket) for bucket in buckets]

    for bucket in buckets:
        for p in bucket:
            p.register_post_accumulate_grad_hook(arrived)
    return finish
