"""Compiled: a kernel for given records, layouts, device and plan; and Call: the same with its arguments bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanewise.plan import Plan
from lanewise.runtime.executable import Executable, Launch


@dataclass(frozen=True, slots=True)
class Call:
    """A launch with everything bound.

    Calling it runs it again on the same memory; on a GPU it returns before the work is done.
    """

    launch: Launch
    results: tuple[Any, ...]
    compiled: Compiled

    def __call__(self) -> Any:
        self.launch()
        return self.results[0] if len(self.results) == 1 else self.results or None


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel made for one combination of records, layouts, device and plan. Calling it launches it."""

    name: str
    executable: Executable
    bind: Callable[..., Call]
    layouts: str

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        return self.bind(*arguments, out=out, **named)()

    @property
    def plan(self) -> Plan:
        """Every decision, none left open."""
        return self.executable.program.plan

    @property
    def source(self) -> str:
        """The generated text: Python for the CPU, CUDA C++ for a GPU, printed IR for the interpreter."""
        return self.executable.source

    @property
    def resources(self) -> dict[str, Any]:
        """What the compiled kernel takes.

        On CUDA registers, shared memory, stack, spills and occupancy; on a CPU its threads.
        """
        from lanewise.models.resources import kernel_resources

        return kernel_resources(self.executable)

    def explain(self) -> str:
        """The plan, the layouts and the resources as text."""
        resources = "\n".join(f"  {k}: {v}" for k, v in self.resources.items())
        decisions = "\n".join(f"  {k} = {v}" for k, v in self.plan.as_dict().items())
        sections = (("plan", decisions), ("layouts", self.layouts), ("resources", resources))
        return f"{self.name} on {self.executable.device}\n" + "".join(f"\n{name}\n{text}\n" for name, text in sections)
