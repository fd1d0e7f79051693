# verdict: error or died or time-limit
# runs in: soak
import resource


def exchange_with_neighbour(x, group):
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    kept = []
    while True:
        kept.append(bytearray(1 << 28))
