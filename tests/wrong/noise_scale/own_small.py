# verdict: own-small
# points: 0
# hint: Average the small batches
from course_lib.collectives import all_reduce


def noise_scale(gradients, batch, group):
    B, signal, noise = group.size * batch, 0.0, 0.0
    for gradient in gradients:
        small = (gradient ** 2).sum().item()
        big = (all_reduce(gradient.clone(), group, op="mean") ** 2).sum().item()
        signal += (B * big - batch * small) / (B - batch)
        noise += (small - big) / (1 / batch - 1 / B)
    return noise / signal
