"""The same functions under torchrun: gloo on CPUs, no launcher, no board."""

import subprocess
import sys
import textwrap

import pytest

from course_lib.world import current_group

SCRIPT = """
    import os

    import torch
    import torch.distributed as dist
    from course_lib.collectives import all_gather, all_reduce, all_to_all, barrier, scatter
    from course_lib.world import current_group

    group = current_group()
    assert current_group() is group and group.size == 3
    r, W = group.rank, group.size
    assert all_reduce(torch.full((7,), r + 1.0), group).tolist() == [6.0] * 7
    ragged = all_gather(torch.full((r,), r), group)
    assert [t.tolist() for t in ragged] == [[], [1], [2, 2]]
    parts = [torch.full((i + 1,), i) for i in range(W)] if r == 1 else None
    assert scatter(parts, group, root=1).tolist() == [r] * (r + 1)
    swapped = all_to_all([torch.full((r,), 10 * r + i) for i in range(W)], group)
    assert [t.tolist() for t in swapped] == [[10 * i + r] * i for i in range(W)]
    pair = group.split([[0, 2], [1]])
    assert all_reduce(torch.ones(1), pair).item() == (1 if r == 1 else 2)
    work = group.stream("comm")
    assert work.submit(all_reduce, torch.ones(3), work.group).wait().tolist() == [3.0] * 3
    barrier(group)
    dist.destroy_process_group()
    os.write(1, f"right on rank {r}\\n".encode())  # one write: lines of ranks do not mix
"""


def test_under_torchrun(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3",
         script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("right")) == [
        f"right on rank {r}" for r in range(3)]


def test_outside_torchrun_says_what_to_do(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(RuntimeError, match="works under torchrun"):
        current_group()
