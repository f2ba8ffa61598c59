"""What a shell completes behind an option: the values that it takes, from where they are declared,
looked up when the user presses tab.
"""

from __future__ import annotations

from collections.abc import Callable

from lanewise.support.interrupts import imported

Values = tuple[str, ...] | str
"""The values themselves, or where they are.

The name of a module and of a collection in it, joined by a dot.
"""

DEVICES = ("cpu", "cuda")
PRECISIONS = ("f32", "f64", "mixed")  # of all products together
LAYOUTS = "lanewise.layouts.named.LAYOUTS"


def values_of(values: Values) -> list[str]:
    """All of them."""
    if isinstance(values, tuple):
        return list(values)
    module, _, name = values.rpartition(".")
    return [str(v) for v in getattr(imported(module), name)]


def completing(values: Values) -> Callable[[str], list[str]]:
    """What typer asks for those that begin with what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [v for v in values_of(values) if v.startswith(incomplete)]

    return complete
