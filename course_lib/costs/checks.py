"""What every closed form refuses."""

from __future__ import annotations

from collections.abc import Sequence

COUNTS = ("world_size", "inner", "outer", "segments", "gpus", "nodes",
          "micro_batches")
POSITIVE = ("bandwidth", "flops", "batch", "critical")  # how names end


def check(names: dict[str, str] | None = None, **values: float) -> None:
    """ValueError for the first argument outside its range."""
    for key, value in values.items():
        name = (names or {}).get(key, key)
        if key in COUNTS and (not isinstance(value, int) or value < 1):
            raise ValueError(f"{name}={value}: must be an integer of at least 1")
        if key.endswith(POSITIVE) and not value > 0:
            raise ValueError(f"{name}={value}: must be above 0")
        if not value >= 0:
            raise ValueError(f"{name}={value}: must be at least 0")


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a torus as a tuple. ValueError unless it is integers of at least 1."""
    shape = tuple(shape)
    if not shape or not all(isinstance(size, int) and size >= 1 for size in shape):
        raise ValueError(f"shape={shape}: must be integers of at least 1")
    return shape
