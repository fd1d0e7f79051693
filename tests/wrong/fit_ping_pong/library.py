# verdict: forbidden
# points: 0
from course_lib.machine import fit_latency_bandwidth


def fit_ping_pong(sizes, seconds):
    return fit_latency_bandwidth(sizes, [t / 2 for t in seconds])
