# verdict: passed
# points: 5
import torch

from course_lib.collectives import ring_all_reduce


def noise_scale(gradients, batch, group):
    W, steps = group.size, len(gradients)
    small = sum(g.norm() ** 2 for g in gradients).reshape(1) / steps
    small = ring_all_reduce(small, group) / W
    means = [ring_all_reduce(g.clone(), group) / W for g in reversed(gradients)]
    big = sum(torch.dot(g, g) for g in means) / steps
    noise = batch * W * (small - big) / (W - 1)
    return float(noise / (big - noise / (W * batch)))
