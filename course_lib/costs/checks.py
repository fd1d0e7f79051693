"""What every closed form refuses."""

from __future__ import annotations

from collections.abc import Sequence

COUNTS = ("world_size", "inner", "outer", "segments", "gpus", "nodes",
          "micro_batches", "parts", "chosen")
POSITIVE = ("bandwidth", "flops", "batch", "critical", "weight_bytes")  # how names end


def check(names: dict[str, str] | None = None, **values: float) -> None:
    """ValueError for the first argument outside its range."""
    for key, value in values.items():
        name = (names or {}).get(key, key)
        if key in COUNTS:
            check_counts(1, **{name: value})
        elif isinstance(value, bool) or not hasattr(value, "__float__"):
            raise ValueError(f"{name}={value!r}: must be a number")
        elif key.endswith(POSITIVE) and not value > 0:
            raise ValueError(f"{name}={value}: must be above 0")
        elif not value >= 0:
            raise ValueError(f"{name}={value}: must be at least 0")


def check_counts(least: int, **values: int) -> None:
    """ValueError for the first that is no integer of at least `least`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name}={value!r}: must be an integer of at least {least}")


def check_units(**lists: Sequence[float]) -> None:
    """ValueError unless all lists have as many units, at least one, each of 0 seconds or more."""
    first, units = next(iter(lists.items()))
    if not len(units):
        raise ValueError(f"{first}={units}: must have at least one unit")
    for name, values in lists.items():
        if len(values) != len(units):
            raise ValueError(f"{name}={values}: must have as many units as {first}, {len(units)}")
        check(**{f"{name}[{i}]": value for i, value in enumerate(values)})


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a torus as a tuple. ValueError unless it is integers of at least 1."""
    shape = tuple(shape)
    if not shape or not all(type(size) is int and size >= 1 for size in shape):
        raise ValueError(f"shape={shape}: must be integers of at least 1")
    return shape
