# verdict: passed
# points: 4
import numpy as np


def fit_ping_pong(sizes, seconds):
    seconds = np.array(seconds) / 2
    slope, start = np.polyfit(sizes, seconds, 1, w=1 / seconds)
    return start, 1 / slope
