# verdict: not-in-buckets
# points: 5
# hint: Each parameter travels alone
import torch

from course_lib.collectives import all_reduce


def reduce_in_buckets(buckets, group):
    stream, jobs = group.stream("comm"), []
    order = [p for bucket in buckets for p in bucket]
    here = set()

    def start():
        p = order[len(jobs)]
        grad = torch.zeros_like(p) if p.grad is None else p.grad
        jobs.append(stream.submit(all_reduce, grad, stream.group, op="mean"))

    def arrived(p):
        here.add(p)
        while len(jobs) < len(order) and order[len(jobs)] in here:
            start()

    def finish():
        while len(jobs) < len(order):
            start()
        for p, job in zip(order, jobs):
            p.grad = job.wait()
        jobs.clear()
        here.clear()

    for p in order:
        p.register_post_accumulate_grad_hook(arrived)
    return finish
