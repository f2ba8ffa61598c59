"""Values of a bound call that change with the step of a loop: `lw.by_step(function)`.

Such a call is bound with the value of step 0, and cannot run alone. A loop asks for the values of
each step, which are checked like those of any call: where nothing but numbers differs from step 0
they are put in their places, else the call is bound anew for that step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lanewise.language.target import target_of
from lanewise.launch.compiled import Call
from lanewise.launch.executable import Launch
from lanewise.launch.slots import Given, ValueSlot
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, LanewiseError, brief

Holds = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class ByStep:
    """A uniform argument that `function(n)` gives for step n of a loop."""

    function: Callable[[int], Any]


@brief
def by_step(function: Callable[[int], Any]) -> ByStep:
    """A value that changes with the step of a loop, in `bind`: `shake=lw.by_step(lambda n: n *
    dt)`.

    `function(n)` gives the value of step n: one number or vector for all elements. The loop calls
    it once for each step, up to 1,024 steps before that step runs, so the value must depend on n
    alone; `bind` also calls it for step 0. The call runs only in `lw.steps`.
    """
    if not callable(function):
        raise ArgumentError(
            f"lw.by_step takes a function of the step's number, found {shown(function)}"
        )
    return ByStep(function)


def has_by_step(arguments: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether some argument changes with the step."""
    return any(isinstance(a, ByStep) for a in (*arguments, *named.values()))


def refuse_by_step(kernel: str) -> ArgumentError:
    """The error of a plain call with such an argument."""
    return ArgumentError(
        f"{kernel}: lw.by_step(...) gives a value for each step of a loop, and a plain call is "
        f"none; wanted lw.steps([{kernel}.bind(...)]).run(n)"
    )


@dataclass(frozen=True)
class StepArguments:
    """The arguments of a call, some of which change with the step.

    kernel: its name; names: of its parameters, in order.
    """

    kernel: str
    names: Sequence[str]
    positional: tuple[Any, ...]
    named: Mapping[str, Any]

    @cached_property
    def changing(self) -> dict[str, ByStep]:
        """Those that change, by parameter."""
        every = [*zip(self.names, self.positional, strict=False), *self.named.items()]
        return {n: a for n, a in every if isinstance(a, ByStep)}

    def at(self, step: int) -> dict[str, Any]:
        """The values of those at a step. What a function raises says for which step it was."""
        values: dict[str, Any] = {}
        for name, value in self.changing.items():
            try:
                values[name] = value.function(step)
            except Exception as error:
                error.add_note(
                    f"{self.kernel}: {name!r} is lw.by_step(...), whose function raised this for "
                    f"step {step}"
                )
                raise
        return values

    def filled(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """All arguments, with these values instead of those that change."""
        names = [*self.names, *[""] * len(self.positional)]  # a call checks how many there are
        positional = tuple(
            values[n] if isinstance(a, ByStep) else a
            for n, a in zip(names, self.positional, strict=False)
        )
        named = {n: values[n] if isinstance(a, ByStep) else a for n, a in self.named.items()}
        return positional, named


@dataclass(frozen=True, slots=True)
class SteppedLaunch:
    """The launch of a call that changes with the step. launch: with the values of step 0.

    slots: of the parameters that change; numbers: all uniform arguments of step 0, by their names
    in the IR; holds: whether what was proved of the call is so for other numbers. bind: makes the
    call for other values, with the results where they are.
    """

    arguments: StepArguments
    launch: Launch
    slots: Mapping[str, ValueSlot]
    numbers: Mapping[str, Any]
    holds: Holds | None
    bind: Callable[..., Call]

    def __call__(self) -> None:
        raise ArgumentError(
            f"{self.arguments.kernel} was bound with lw.by_step(...), and a call alone is no step "
            "of a loop: wanted lw.steps([...]).run(n)"
        )

    def converted(self, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The numbers of such values, by their names in the IR.

        None for values that a call has to look at once more: of other types, or for which something
        else is proved.
        """
        given = Given({}, {})
        for name, value in values.items():
            if not self.slots[name].take(value, given):
                return None
        if self.holds is not None and not self.holds({**self.numbers, **given.values}):
            return None
        return given.values

    def bound_again(self, step: int, values: Mapping[str, Any]) -> Call:
        """The call for the values of a step. What is refused says in which step it came."""
        positional, named = self.arguments.filled(values)
        try:
            return self.bind(*positional, **named)
        except ArgumentError as error:
            raise ArgumentError(f"{error} (lw.by_step, step {step})") from error
        except LanewiseError as error:
            error.add_note(f"lw.by_step, step {step}")
            raise


def packed_plan(call: Call, plan: Plan | None) -> CompletePlan | None:
    """The plan with which graphs can hold a call by step: its kernel reads the values from memory.

    None where that is no other plan, where the user says where values lie, and where a run does
    more than to launch the kernel.
    """
    executable = call.compiled.executable
    if not call.compiled.search and call.compiled.tasks is not executable.tasks:
        return None
    decided = executable.program.plan
    if (
        not target_of(executable.device).has_blocks
        or decided.uniforms != "constant"
        or decided.panel
    ):
        return None
    if plan is not None and plan.uniforms is not None:
        return None
    return replace(decided, uniforms="global")
