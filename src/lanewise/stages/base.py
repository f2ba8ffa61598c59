"""What the stages share."""

from __future__ import annotations

from collections.abc import Callable

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir

Checked = Callable[[str, ir.Kernel], ir.Kernel]  # verifies a kernel under the name of the pass that made it
Kernels = tuple[ir.Kernel, ...]


def decided(value: int | None, name: str) -> int:
    """A whole number of a plan whose fields are all decided."""
    if value is None:
        raise PlanError(f"Plan({name}=None): the plan was not filled with defaults")
    return value
