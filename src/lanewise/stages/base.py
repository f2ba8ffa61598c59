"""What the stages share."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked

Kernels = tuple[ir.Kernel, ...]


__all__ = ["Checked", "Kernels"]
