# verdict: still-empty
# points: 0
# hint: views of this storage
import torch

from course_lib.collectives import all_gather


def unshard(flat, shard, group):
    flat.data = torch.cat(all_gather(shard.detach(), group))

    def reshard():
        flat.data = torch.empty(0)

    return reshard
