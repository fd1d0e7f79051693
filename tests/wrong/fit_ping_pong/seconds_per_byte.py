# verdict: not-inverted
# points: 0
# hint: The bandwidth is 1 / slope
import numpy as np


def fit_ping_pong(sizes, seconds):
    slope, start = np.polyfit(sizes, np.array(seconds) / 2, 1, w=1 / np.array(seconds))
    return start, slope
