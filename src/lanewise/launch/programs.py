"""The compiled programs of a kernel, by what they are specialised to."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from lanewise.ir import nodes as ir
from lanewise.launch.executable import Executable
from lanewise.launch.support import compile_kernel
from lanewise.planning.plan import CompletePlan, Plan


class Programs:
    """Compiles a program once, and keeps it."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Executable] = {}

    def __len__(self) -> int:
        """How many were compiled."""
        return len(self._known)

    def get(
        self,
        key: Hashable,
        reference: Callable[[], ir.Kernel],
        plan: CompletePlan,
        device: str,
        *,
        requested: Plan | None = None,
    ) -> Executable:
        """The program that a plan makes of a kernel for a device. key: what the kernel, which is
        built when it is needed, is specialised to. requested: the plan that the caller asked for.
        """
        whole = (key, plan, device)
        if whole not in self._known:
            self._known[whole] = compile_kernel(reference(), plan, device, requested=requested)
        return self._known[whole]

    def decided(
        self,
        key: Hashable,
        reference: Callable[[], ir.Kernel],
        decide: Callable[[ir.Kernel], CompletePlan],
        device: str,
        *,
        requested: Plan | None = None,
    ) -> Executable:
        """The same, where the plan follows from the kernel and `requested`: `decide` gives it."""
        whole = (key, "decided", requested, device)
        if whole not in self._known:
            kernel = reference()
            self._known[whole] = compile_kernel(kernel, decide(kernel), device, requested=requested)
        return self._known[whole]
