"""What tuning cannot change, but its user can: how the records lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise.arrays import RecordArray


def layout_advice(records: Mapping[str, RecordArray], kernel: Any) -> str:
    """A sentence for each record that the model expects to be faster in another layout; nothing if there is none."""
    from lanewise.advice.choose import choose_layout  # it has much to import, and calls of kernels need none of it

    found: dict[str, str] = {}
    for array in records.values():
        choice = choose_layout(array, [kernel])
        if choice.worth_changing:
            found[array.record.name] = f"another layout for {array.record.name} may help: {choice.verdict}"
    return "; ".join(found.values())
