# verdict: no-dict
# points: 0
# hint: Return a dict


def link_loads(shape, messages):
    return sum(nbytes for _, _, nbytes in messages)
