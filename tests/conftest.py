"""One thread for what tests compute by themselves: several workers share the cores, and the small
models of the tests are ten times slower when threads wait for each other."""

import torch

torch.set_num_threads(1)
