# verdict: passed
# points: 4
from fractions import Fraction


def bubbles(name, p, m):
    useful, idle = m, p - 1
    if name == "naive":
        idle = m * (p - 1)
    return Fraction(idle, useful), Fraction(idle, useful + idle)
