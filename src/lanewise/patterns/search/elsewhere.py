"""A call over a search for a device that need not be there, as explanations show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.launch.executable import Executable
from lanewise.launch.programs import Programs
from lanewise.launch.task_list import TaskList
from lanewise.planning.plan import CompletePlan


@dataclass(frozen=True, slots=True)
class CallElsewhere:
    """What a call is about whose structure lies on the host.

    reference: its kernel, before any decision. environment: its numbers. turns: see
    `Structure.turns`. search: the structure, and why it is this one. tasks: all that it runs, given
    the compiled kernel, and what compiles the others. plan: of the kernel, where tune() found the
    structure on that device; None: by default.
    """

    reference: ir.Kernel
    environment: Mapping[str, Any]
    turns: Mapping[str, float]
    search: str
    tasks: Callable[[Executable, Programs], TaskList]
    plan: CompletePlan | None
