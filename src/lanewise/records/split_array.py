"""Values on a mesh: what a call over arrays on a mesh returns, and also takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from lanewise.runtime.memory import bring, on, to_host, together
from lanewise.runtime.mesh import Mesh
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError


class SplitArray(NDArrayOperatorsMixin):
    """An array of values of shape (n, ...), whose rows are divided over a mesh.

    `parts` has the array of each part, of NumPy or CuPy, on the device of that part; `.numpy()` is
    a copy of all rows on the host. Arithmetic and elementwise functions of NumPy run part by part,
    with single values, arrays on the same mesh, and arrays with as many rows.

    On a mesh of several processes `parts` are those of this one, `lengths` those of all, and
    `.numpy()`, which has all rows, is called by every process.
    """

    __slots__ = ("lengths", "mesh", "parts")

    def __init__(
        self, mesh: Mesh, parts: Sequence[Any], lengths: tuple[int, ...] | None = None
    ) -> None:
        """lengths: how many rows each part of the mesh has; None asks the parts."""
        if not isinstance(mesh, Mesh):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"SplitArray: the mesh is an lw.Mesh(...), found {shown(mesh)}")
        if not isinstance(parts, list | tuple):
            raise ArgumentError(f"SplitArray: the parts are a list of arrays, found {shown(parts)}")
        self.mesh, self.parts = mesh, tuple(parts)
        if not all(hasattr(part, "dtype") and getattr(part, "shape", ()) for part in self.parts):
            raise ArgumentError("SplitArray: every part is an array of NumPy or CuPy with rows")
        kinds = {(part.dtype, part.shape[1:]) for part in self.parts}
        if len(kinds) > 1:
            raise ArgumentError("SplitArray: the parts differ in type, or in the shape of a row")
        if len(self.parts) != len(mesh.devices):
            raise ArgumentError(
                f"an array on a mesh of {len(mesh.devices)} parts has as many arrays, found "
                f"{len(self.parts)}"
            )
        self.lengths = mesh.lengths_of_all(self.parts) if lengths is None else lengths

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(self.lengths), *self.parts[0].shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.parts[0].dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        """Of one value; raises `ValueError` for others, as an array of NumPy does."""
        if self.shape[0] != 1:
            raise ValueError(
                f"an array of shape {self.shape} on a mesh is neither true nor false; take "
                ".numpy(), and its .all() or .any()"
            )
        return bool(self.numpy())

    def numpy(self) -> np.ndarray[Any, Any]:
        """All rows, on the host."""
        own = np.concatenate([to_host(part) for part in self.parts])
        return self.mesh.gather(own, self.lengths)

    def copy(self) -> SplitArray:
        """An independent copy of all rows, part by part."""
        return SplitArray(self.mesh, [part.copy() for part in self.parts], self.lengths)

    __copy__ = copy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError(f"the rows lie on a mesh ({self.mesh}): an array of NumPy is a copy")
        whole = self.numpy()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        """Some rows, as NumPy indexes them: a copy on the host."""
        return self.numpy()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Give some rows values, as NumPy indexes them; all rows go through memory of the host."""
        whole = self.numpy()
        if isinstance(value, SplitArray):
            value = value.numpy()
        whole[key] = to_host(value) if hasattr(value, "__cuda_array_interface__") else value
        rows = self.mesh.own_rows(self.lengths)
        for part, own, device in zip(self.parts, rows, self.mesh.devices, strict=True):
            with on(device):
                part[...] = bring(whole[own.start : own.stop], device)

    def __array_ufunc__(self, function: np.ufunc, method: str, *given: Any, **named: Any) -> Any:
        """Part by part; a reduction, or an output that lies elsewhere, is refused."""
        if method != "__call__" or function.nout != 1 or function.signature is not None:
            return NotImplemented
        if "where" in named:
            raise ArgumentError(f"{function.__name__}: where= is for arrays on one device")
        self._check_rows(function.__name__, given)
        outputs = named.pop("out", (None,))[0]
        if outputs is not None and not self._is_alike(outputs):
            return NotImplemented
        own = [self._parts_of(value) for value in given]
        results: list[Any] = []
        with together(self.mesh.devices):
            for n, device in enumerate(self.mesh.devices):
                out = {} if outputs is None else {"out": outputs.parts[n]}
                with on(device):
                    results.append(function(*(value[n] for value in own), **out, **named))
        return SplitArray(self.mesh, results, self.lengths) if outputs is None else outputs

    def _check_rows(self, name: str, given: Sequence[Any]) -> None:
        """Refuse operands whose rows are not those of this array, as a part would not see it."""
        shapes = [np.shape(v) if not hasattr(v, "shape") else tuple(v.shape) for v in given]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError as error:
            raise ArgumentError(f"{name}: {error}") from None
        split = [s for v, s in zip(given, shapes, strict=True) if isinstance(v, SplitArray)]
        if any(len(s) != len(shape) or s[0] != shape[0] for s in split):
            raise ArgumentError(
                f"{name}: rows of an array on a mesh are its first axis, which every result has; "
                f"found shapes {', '.join(map(str, shapes))}"
            )

    def _is_alike(self, value: Any) -> bool:
        return (
            isinstance(value, SplitArray)
            and value.mesh == self.mesh
            and value.lengths == self.lengths
        )

    def _parts_of(self, value: Any) -> Sequence[Any]:
        """What each part has of an operand."""
        if self._is_alike(value):
            return value.parts
        if isinstance(value, SplitArray) or (np.ndim(value) == self.ndim and len(value) != 1):
            return split_values(value, self.mesh, self.lengths).parts
        if np.ndim(value) == 0:
            return [value] * len(self.parts)
        return [bring(value, device) for device in self.mesh.devices]

    def __repr__(self) -> str:
        return f"<{self.dtype} {self.shape} on a mesh ({self.mesh})>"


def split_values(values: Any, mesh: Mesh, lengths: Sequence[int]) -> SplitArray:
    """Values with a row for each record of an array on a mesh: themselves where they lie so, else
    copies of the rows of each part.
    """
    if len(values) != sum(lengths):
        raise ArgumentError(
            f"the rows of arrays on a mesh are {sum(lengths):,}, found an array of {len(values):,}"
        )
    if isinstance(values, SplitArray):
        if values.mesh == mesh and values.lengths == tuple(lengths):
            return values
        values = values.numpy()
    elif isinstance(values, list | tuple):  # no rows have no type and no shape
        values = bring(values, "cpu")
    pieces = zip(mesh.own_rows(lengths), mesh.devices, strict=True)
    parts = [bring(values[rows.start : rows.stop], device) for rows, device in pieces]
    return SplitArray(mesh, parts, tuple(lengths))
