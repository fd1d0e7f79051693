# verdict: wrong-value
# points: 0
# hint: max over the ranks


def anyone(flag, group):
    return True
