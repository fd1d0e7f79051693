# verdict: swapped
# points: 0
# hint: latency first
import numpy as np


def fit_ping_pong(sizes, seconds):
    slope, start = np.polyfit(sizes, np.array(seconds) / 2, 1, w=1 / np.array(seconds))
    return 1 / slope, start
