"""What the stages share."""

from __future__ import annotations

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked

Kernels = tuple[ir.Kernel, ...]


def decided(value: int | None, name: str) -> int:
    """A whole number of a plan whose fields are all decided."""
    if value is None:
        raise PlanError(f"Plan({name}=None): the plan was not filled with defaults")
    return value


__all__ = ["Checked", "Kernels", "decided"]
