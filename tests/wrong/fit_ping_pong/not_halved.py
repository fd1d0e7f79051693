# verdict: not-halved
# points: 0
# hint: One way is half
import numpy as np


def fit_ping_pong(sizes, seconds):
    slope, start = np.polyfit(sizes, seconds, 1, w=1 / np.array(seconds))
    return start, 1 / slope
