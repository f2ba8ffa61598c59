"""Fields that are read-only: copies where the layout has no view of them, and those of the host's side. Writers are told what to do."""

from __future__ import annotations

from typing import Any

import numpy as np


class FieldCopy(np.ndarray[Any, Any]):
    """A read-only copy of a field, on the host. What is computed of it is an ordinary array.

    It is not made with a call, but of an array: `array.view(FieldCopy)`.
    """

    advice: str

    def __array_finalize__(self, other: Any) -> None:
        self.advice = getattr(other, "advice", "")

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise ValueError(f"assignment destination is read-only: {self.advice}")
        super().__setitem__(key, value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: tuple[Any, ...] = (), **named: Any) -> Any:
        if any(isinstance(o, FieldCopy) and not o.flags.writeable for o in out):
            raise ValueError(f"output array is read-only: {self.advice}")
        plain = [np.asarray(x) if isinstance(x, FieldCopy) else x for x in inputs]
        if out:
            named["out"] = tuple(np.asarray(o) if isinstance(o, FieldCopy) else o for o in out)
        return getattr(ufunc, method)(*plain, **named)


def field_copy(values: Any, advice: str) -> FieldCopy:
    """Values as a read-only copy of a field. advice: what a writer should do, for the error."""
    copy = values.view(FieldCopy)
    copy.advice = advice
    copy.flags.writeable = False
    return copy
