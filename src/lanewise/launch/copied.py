"""Arrays of values that a call was bound to a copy of: what is written to them later it does not
see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lanewise.launch.arguments import Arguments
from lanewise.runtime.memory import home, overlap


def copied_arrays(
    names: Sequence[str],
    positional: tuple[Any, ...],
    named: Mapping[str, Any],
    arguments: Arguments,
) -> tuple[str, ...]:
    """The parameters whose arrays were converted, made contiguous or brought to the device.

    Of lists and of other libraries' arrays nothing is said.
    """
    values = {**dict(zip(names, positional, strict=False)), **named}
    return tuple(n for n, taken in arguments.unflattened.items() if is_copy(values.get(n), taken))


def is_copy(value: Any, taken: Any) -> bool:
    """Whether what a call takes has other memory than the array that it was given."""
    if isinstance(value, np.ndarray):
        if not value.size or value is taken:
            return False
        return not isinstance(taken, np.ndarray) or not overlap(value, taken)
    if type(value) is not type(taken) or value is taken:
        return False
    return home(value) != home(taken) or not overlap(value, taken)
