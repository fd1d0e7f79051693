# verdict: large-ones-decide
# points: 2
# hint: 1 / seconds**2
import numpy as np


def fit_ping_pong(sizes, seconds):
    slope, start = np.polyfit(sizes, np.array(seconds) / 2, 1)
    return start, 1 / slope
