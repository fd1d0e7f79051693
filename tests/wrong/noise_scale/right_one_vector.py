# verdict: passed
# points: 5
import torch

from course_lib.collectives import all_reduce


def noise_scale(gradients, batch, group):
    B = group.size * batch
    norms = torch.stack([g.dot(g) for g in gradients])
    flat = all_reduce(torch.cat([*gradients, norms]), group, op="mean")
    n = len(gradients[0])
    big = sum(g.dot(g) for g in flat[:n * len(gradients)].split(n))
    small = flat[n * len(gradients):].sum()
    return (small - big) / (1 / batch - 1 / B) / ((B * big - batch * small) / (B - batch))
