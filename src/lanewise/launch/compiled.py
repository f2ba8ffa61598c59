"""Compiled: a kernel for given records, layouts, device and plan; and Call: the same with its
arguments bound.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from lanewise.frontend.function import Signature
from lanewise.ir import nodes as ir
from lanewise.launch.divided import Divided
from lanewise.launch.executable import Executable, Launch
from lanewise.launch.resources import kernel_resources
from lanewise.launch.task_list import TaskList
from lanewise.launch.trial import changes
from lanewise.layouts import Layout
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.runtime.here import HERE
from lanewise.runtime.memory import on
from lanewise.support.attributes import frozen
from lanewise.support.checks import refuse_given
from lanewise.support.errors import brief
from lanewise.support.html_tables import html_table
from lanewise.support.uncopied import uncopied

if TYPE_CHECKING:
    from lanewise.facade import Explanation, Job


class Tunable(Protocol):
    """What measuring asks of a kernel: its parameters, and the work of measuring plans for a
    call.
    """

    @property
    def signature(self) -> Signature: ...
    def tuning_job(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Job: ...


@frozen
@dataclass(frozen=True, slots=True)
class Call:
    """A call with everything bound, as `kernel.bind(...)` makes it.

    Calling it without arguments runs it again on the same memory; on a GPU it returns before the
    work is done. `results` are the arrays that it writes, `compiled` is the kernel.

        call = kernel.bind(bodies, bodies, 1e-4)
        for _ in range(100):
            call()
        acceleration = call.results[0]

    Raises `ArgumentError` if an array that it writes has become read-only since.
    """

    launch: Launch
    results: tuple[Any, ...]
    compiled: Compiled
    # asked of the user's arrays each time, which may be read-only by now
    asked: tuple[Callable[[], None], ...] = ()
    # parameters whose arrays were copied, so that it does not see what is written to them
    copied: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<bound call of {self.compiled.name} on {self.compiled.executable.device}>"

    def __reduce__(self) -> NoReturn:
        uncopied("a bound call", "bind its arguments again, or copies of them")

    def __call__(self, *given: Any, **named: Any) -> Any:
        if given or named:
            refuse_given(self.compiled.name, given, named)
        for check in self.asked:
            check()
        if (elsewhere := on(self.compiled.executable.device)) is HERE:
            self.launch()
        else:
            with elsewhere:
                self.launch()
        return self.results[0] if len(self.results) == 1 else self.results or None


class Inspectable(ABC):
    """What has an executable: its plan, text and resources."""

    __slots__ = ()
    executable: Executable

    @property
    def plan(self) -> CompletePlan:
        """The complete plan: every field has a value."""
        return self.executable.program.plan

    @property
    def source(self) -> str:
        """The generated text: LLVM's language for the CPU, CUDA C++ for a GPU, printed IR for the
        interpreter.
        """
        return self.executable.source

    @property
    def resources(self) -> dict[str, Any]:
        """The resources of the compiled kernel.

        On CUDA: registers, shared memory, stack, spills and occupancy. On a CPU: threads.
        """
        return kernel_resources(self.executable)


@frozen
@dataclass(frozen=True, slots=True)
class Compiled(Inspectable):
    """A kernel made for one combination of records, layouts, device and plan, as
    `kernel.compile(...)` makes it. Use `explain()`, `source`, `plan` and `resources`.

    `plan` has every decision, `source` the generated text, `layouts` the layouts of the records,
    `search` the search structure and its reason (empty for all pairs).
    """

    name: str
    executable: Executable
    bind: Callable[..., Call]
    layouts: Mapping[str, Layout]
    # counts and uniform arguments, by IR name, of the call that it was compiled for: predictions
    # are about these
    environment: Mapping[str, Any]
    reference: ir.Kernel  # before any decision
    kernel: Tunable  # the user's
    tasks: TaskList  # all that a call runs
    search: str = ""
    search_tuned: bool = False  # structure and plan are those that tune() found for such calls
    # how often loops whose ends data tell run, on average, by their variables: those of a search
    # for a target, those of an element as counted
    turns: Callable[[], Mapping[str, float]] = dict[str, float]
    requested: Plan | None = None  # with what it leaves open
    divided: Divided | None = None  # of a call on a mesh, whose first part this is
    # why records lie as they do, by parameter, where that was left to the kernels (layout="auto")
    layout_reasons: Mapping[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        return f"<{self.name}, compiled for {self.executable.device}: {self.plan.short()}>"

    def _repr_html_(self) -> str:
        """Its decisions, those that shape the kernel first."""
        shaping = changes(self.plan)
        rest = {n: v for n, v in self.plan.as_dict().items() if n not in shaping}
        return html_table(["plan", "value"], [*shaping.items(), *rest.items()], title=repr(self))

    @brief
    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        return self.bind(*arguments, out=out, **named)()

    @brief
    def explain(
        self, *arguments: Any, measure: bool = False, measure_resources: bool = True, **named: Any
    ) -> Explanation:
        """A row for each optimisation (applied or not, why, predicted and measured gain), the bound
        of the kernel, and more.

        Print it, show it in a notebook, or take `.json()`. It includes what tune() has measured.
        With `measure` lanewise times the plan and those that it is compared with on this machine,
        which takes some seconds on a GPU and longer on a CPU. It uses the arguments of a call,
        which keep their values, or made-up ones of the same sizes. `measure_resources` compiles the
        compared plans for their registers (CUDA).
        """
        from lanewise.facade import explain_compiled

        return explain_compiled(
            self, arguments, named, measure=measure, measure_resources=measure_resources
        )
