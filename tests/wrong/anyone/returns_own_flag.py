# verdict: own-flag
# points: 0
# hint: all_reduce it


def anyone(flag, group):
    return flag
