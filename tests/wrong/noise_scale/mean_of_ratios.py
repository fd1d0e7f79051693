# verdict: mean-of-ratios
# points: 0
# hint: A mean of ratios is biased
from course_lib.collectives import all_reduce


def noise_scale(gradients, batch, group):
    B, ratios = group.size * batch, []
    for gradient in gradients:
        small = all_reduce((gradient ** 2).sum().reshape(1), group, op="mean").item()
        big = (all_reduce(gradient.clone(), group, op="mean") ** 2).sum().item()
        signal = (B * big - batch * small) / (B - batch)
        noise = (small - big) / (1 / batch - 1 / B)
        ratios.append(noise / signal)
    return sum(ratios) / len(ratios)
