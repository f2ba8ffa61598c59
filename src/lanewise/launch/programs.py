"""The compiled programs of a kernel, by what they are specialised to."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.language.target import Machine
from lanewise.launch.executable import Executable
from lanewise.launch.support import compile_kernel, machine_of, without_cap
from lanewise.planning.plan import CompletePlan, Plan


class Programs:
    """Compiles a program once, and keeps it.

    What a call gets does not depend on those before it. machine, arch: of a GPU that need not be
    there; without them a device of this machine is asked.
    """

    __slots__ = ("_arch", "_known", "_machine")

    def __init__(self, machine: Machine | None = None, arch: str | None = None) -> None:
        self._machine, self._arch = machine, arch
        self._known: dict[Hashable, Executable] = {}

    def machine(self, device: str) -> Machine:
        """What default plans ask of the device that is compiled for."""
        return self._machine or machine_of(device)

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
        built when it is needed, is specialised to. requested: the plan that the caller requested.
        """
        # whether the cap of registers is left open is all that compiling asks of `requested`
        whole = (key, plan, without_cap(plan, requested, device), device)
        if whole not in self._known:
            made = compile_kernel(reference(), plan, device, requested=requested, arch=self._arch)
            self._known[whole] = made
            # for code that asks for just this, such as calls that are bound to a compiled kernel
            alone = (key, made.program.plan, None, device)
            self._known.setdefault(alone, replace(made, capped=None) if made.capped else made)
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
            self._known[whole] = compile_kernel(
                kernel, decide(kernel), device, requested=requested, arch=self._arch
            )
        return self._known[whole]
