"""Run a kernel in the three ways that must agree: as ordinary Python, in the interpreter, and compiled for the CPU."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.values import to_python_value
from lanewise.records.arrays import RecordArray

Array = np.ndarray[Any, Any]


def run(kernel: Any, device: str, arguments: dict[str, Any]) -> list[Array]:
    """The results of a kernel, then the fields of its records."""
    given = {n: a.to(device) if isinstance(a, RecordArray) else a for n, a in arguments.items()}
    with lw.device(device):
        result = kernel(**given)
    results = [] if result is None else list(result) if isinstance(result, tuple) else [result]
    return results + [f for a in given.values() if isinstance(a, RecordArray) for f in a.numpy().values()]


def run_python(kernel: Any, arguments: dict[str, Any]) -> list[Array]:
    """The same through `kernel.python`, one element after the other."""
    signature = kernel.signature
    count = max((len(a) for a in arguments.values() if isinstance(a, RecordArray) or np.ndim(a)), default=1)
    rows: list[list[Any]] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of wrapped integers
        for i in range(count):
            given = [_element(kind, arguments[n], i) for n, kind in signature.parameters.items()]
            result = kernel.python(*given)
            row = [] if result is None else list(result) if isinstance(result, tuple) else [result]
            row = [to_python_value(x, kind) for x, kind in zip(row, signature.results or [], strict=True)]
            for value, kind in zip(given, signature.parameters.values(), strict=True):
                row += [getattr(value, f.name) for f in kind] if isinstance(kind, Record) else []
            rows.append(row)
    return [np.array([np.array(x) for x in column]) for column in zip(*rows, strict=True)]


def _element(kind: Any, argument: Any, index: int) -> Any:
    if isinstance(kind, Record):
        return argument[index].copy()  # what a function writes to a row is written to its array
    whole = np.ndim(argument) == (2 if isinstance(kind, t.Vector) else 1)
    return to_python_value(argument[index] if whole else argument, kind)


def agree(
    kernel: Any, *, rtol: float = 0.0, atol: float = 0.0, cpu: bool = True, python: bool = True, **arguments: Any
) -> list[Array]:
    """Assert that the three ways agree (exactly, unless a tolerance is given for floats); the interpreter's results."""
    expected = run(kernel, "python", arguments)
    others = {"Python": run_python(kernel, arguments)} if python else {}
    if cpu:
        others["CPU"] = run(kernel, "cpu", arguments)
    for way, results in others.items():
        assert len(results) == len(expected)
        for number, (got, wanted) in enumerate(zip(results, expected, strict=True)):
            assert got.dtype == wanted.dtype, f"{way}, result {number}"
            exact = wanted.dtype.kind != "f"
            np.testing.assert_allclose(
                got,
                wanted,
                0 if exact else rtol,
                0 if exact else atol,
                err_msg=f"{way} differs in result {number} of {kernel.__name__}",
            )
    return expected
