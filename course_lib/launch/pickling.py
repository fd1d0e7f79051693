"""Functions travel by value, and keep the file and line of the cell they were written in."""

from __future__ import annotations

import io
import types

import cloudpickle


def _renamed(make, args, filename):
    return make(*args).replace(co_filename=filename)


def _reduce_code(code):
    # cloudpickle replaces every file name by "<dynamic-code>"; then no message could name the
    # learner's line.
    make, args = cloudpickle.cloudpickle._code_reduce(code)
    return _renamed, (make, args, code.co_filename)


class _Pickler(cloudpickle.Pickler):
    dispatch_table = cloudpickle.Pickler.dispatch_table.new_child({types.CodeType: _reduce_code})


def dumps(thing) -> bytes:
    """Pickle functions, lambdas, closures and classes defined anywhere, with their file names."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(thing)
    return buffer.getvalue()


loads = cloudpickle.loads
