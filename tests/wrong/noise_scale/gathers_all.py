# verdict: too-much-traffic
# points: 4
# hint: not everybody's
import torch

from course_lib.collectives import all_gather


def noise_scale(gradients, batch, group):
    B, signal, noise = group.size * batch, 0.0, 0.0
    for mine in gradients:
        everybody = torch.stack(all_gather(mine.repeat(2), group))[:, :len(mine)]
        small = (everybody ** 2).sum(1).mean().item()
        big = (everybody.mean(0) ** 2).sum().item()
        signal += (B * big - batch * small) / (B - batch)
        noise += (small - big) / (1 / batch - 1 / B)
    return noise / signal
