"""What users hold of a function under a pattern: an object that is called, compiled, bound and
tuned.

`kernel_of(skeleton)` makes a decorator of a skeleton, all that a new pattern needs; the patterns
of lanewise give their kernels further methods.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

from lanewise.frontend.function import Lowered, Signature
from lanewise.language.record import Record
from lanewise.launch.arguments import Arguments, flatten_uniforms
from lanewise.launch.by_step import (
    StepArguments,
    SteppedLaunch,
    has_by_step,
    packed_plan,
    refuse_by_step,
)
from lanewise.launch.compiled import Call, Compiled
from lanewise.launch.copied import copied_arrays
from lanewise.launch.steps.unwritten import marked_unwritten
from lanewise.launch.support import Uses
from lanewise.patterns.calls import Calls
from lanewise.patterns.known_kernels import add_kernel
from lanewise.patterns.mesh_calls import bind_on_mesh, mesh_of, refuse_mesh
from lanewise.patterns.mesh_engines import BindGroups
from lanewise.patterns.no_gradient import no_gradient
from lanewise.patterns.skeleton import CHECKS, Derived, Skeleton, checks_everywhere
from lanewise.planning.plan import Plan, check_plan
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import keep_layouts
from lanewise.support.attributes import sealed
from lanewise.support.checks import plain_function
from lanewise.support.errors import ArgumentError, LanewiseError, PlanError, brief, shortened
from lanewise.support.naming import by_name

if TYPE_CHECKING:
    from lanewise.facade import Job, Tuning


class Engine(Protocol):
    """What runs a function under a pattern: `Calls`, or what takes their place."""

    def call(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any
    ) -> tuple[Any, ...]: ...
    def compile(self, arguments: Arguments, plan: Plan | None) -> Compiled: ...
    def bind(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call: ...
    def bind_part(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call: ...
    @property
    def groups(self) -> BindGroups | None: ...
    def uses(self, name: str) -> Uses: ...
    def tune(self, arguments: Arguments, plan: Plan | None, seconds: float | None) -> Tuning: ...
    def job(self, arguments: Arguments, plan: Plan | None) -> Job: ...


class CallSignature:
    """What `help` and editors show of a kernel's call: the parameters of its function, whose
    records come as arrays, and its own options.

    A descriptor, as a kernel's class has no such signature itself.
    """

    def __get__(self, kernel: AbstractKernel | None, owner: type[Any]) -> inspect.Signature:
        if kernel is None:
            raise AttributeError("__signature__")
        own, given = inspect.signature(kernel.python), kernel.signature
        kinds = given.source.annotations()
        kinds |= {
            n: RecordArray[kinds[n]]
            for n, kind in given.parameters.items()
            if isinstance(kind, Record)
        }
        parameters = [
            own.parameters[n].replace(annotation=kinds[n])
            for n in given.names
            if n not in given.asked
        ]
        call = inspect.signature(type(kernel).__call__).parameters.values()
        asked = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in given.asked]
        return own.replace(
            parameters=[*parameters, *asked, *(p for p in call if p.kind is p.KEYWORD_ONLY)]
        )


class AbstractKernel(ABC):
    """What all kernels have that a decorator makes of a function, with `engine` instead of
    their calls where one is given.
    """

    __signature__ = CallSignature()

    def __init__(
        self,
        skeleton: Skeleton,
        function: Callable[..., Any],
        engine: Callable[[Calls], Engine] | None = None,
        derived: Derived | None = None,
    ) -> None:
        self.__name__ = function.__name__ if derived is None else derived.name
        self.__doc__ = function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self._calls = Calls(skeleton, function, self, self.bind, derived)
        if derived is None:
            add_kernel(self._calls)
        self._engine: Engine = self._calls if engine is None else engine(self._calls)

    @property
    def python(self) -> Callable[..., Any]:
        """The function as you wrote it."""
        return self._calls.subject.function

    @property
    def signature(self) -> Signature:
        return self._calls.signature

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` if it contains something that the language does
        not have.
        """
        return self._calls.lowered

    def __repr__(self) -> str:
        return f"<lanewise {self._calls.skeleton.pattern.name} kernel {self.__name__}>"

    @abstractmethod
    def __reduce__(self) -> str | tuple[Any, ...]:
        """Found by name, or made again."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __call__(
        self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any
    ) -> Any:
        """Run on all elements: an array of results, of shape (n,) or (n, components), a tuple of
        them, or None.

        out: an array, or a tuple of them, that takes the results. plan: an `lw.Plan` for this call,
        instead of the tuned or the default one.
        """
        try:
            return self._run(arguments, named, out, plan)
        except LanewiseError as error:
            raise shortened(error)  # noqa: B904  (its own cause stays)

    def _run(
        self,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        out: Any,
        plan: Plan | None,
        checks: bool = False,
    ) -> Any:
        """A call. Kernels that have `checks` say so in their own `__call__`, and every call
        counts: nothing is handed on twice.
        """
        if checks is False and checks_everywhere():
            checks = CHECKS in self._calls.skeleton.options and bool(self._calls.signature.arrays)
        if plan is None and checks is False:
            try:
                return unpacked(self._engine.call(arguments, named, out))
            except ArgumentError:
                if has_by_step(arguments, named):
                    raise refuse_by_step(self.__name__) from None
                raise
        if checks is not False:
            named[CHECKS] = checks
        return self._bind(arguments, named, out, plan, keeps=False)()

    @brief
    def compile(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Compiled:
        """Compile the kernel for these arguments, without running it.

        They are those of a call, by position or by name, and keep their values. Raises
        `ArgumentError` for arguments that do not fit, `PlanError` for an illegal `plan`.

            run = gravity.compile(bodies, bodies, softening2=1e-4)
            print(run.plan, run.explain())
        """
        if mesh_of((*arguments, *named.values())) is not None:
            bound = self.bind(*arguments, plan=plan, **named).compiled
            return replace(bound, bind=partial(self.bind, plan=plan))
        return self._engine.compile(self._untested(arguments, named, plan), plan)

    @brief
    def bind(
        self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any
    ) -> Call:
        """A call with bound arguments and memory, to run many times.

        The arguments are those of a call, by position or by name. In a loop of `lw.steps` a uniform
        argument may be `lw.by_step(...)`.

        out: an array, or a tuple of them, that takes the results; without it the call makes them
        once. Raises `ArgumentError` for arguments that do not fit, `PlanError` for an illegal
        `plan`.
        """
        return self._bind(arguments, named, out, plan, keeps=True)

    def _bind(
        self,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        out: Any,
        plan: Plan | None,
        *,
        keeps: bool,
    ) -> Call:
        """See `bind`. keeps: the caller keeps the call, so that records stay where they are."""
        mesh = mesh_of((*arguments, *named.values()))
        if has_by_step(arguments, named):
            if mesh is not None:
                raise ArgumentError(
                    f"{self.__name__}: lw.by_step(...) is for arrays on one device, found some on "
                    f"a mesh ({mesh}); bind a call for each value, or write a Python loop"
                )
            return self._bind_by_step(arguments, named, out, plan)
        if mesh is not None:
            check_plan(self.__name__, plan)
            return bind_on_mesh(self._calls, self._engine, mesh, arguments, named, out, plan)
        given = self._given(arguments, named, plan)
        if keeps:
            keep_layouts(given.records.values(), f"a call of {self.__name__} was bound to it")
        call = marked_unwritten(self._engine.bind(given, out, plan), out)
        copied = (
            copied_arrays(self.signature.names, arguments, named, given)
            if given.unflattened
            else ()
        )
        return replace(call, copied=copied) if copied else call

    def _bind_by_step(
        self, arguments: tuple[Any, ...], named: dict[str, Any], out: Any, plan: Plan | None
    ) -> Call:
        """A call some values of which change with the step of a loop (`lw.by_step`)."""
        stepped = StepArguments(self.__name__, self.signature.names, arguments, named)
        first, others = stepped.filled(stepped.at(0))
        call = self.bind(*first, out=out, plan=plan, **others)
        if (packed := packed_plan(call, plan)) is not None:
            with suppress(PlanError):
                call = self.bind(*first, out=unpacked(call.results), plan=packed, **others)
                plan = packed
        given = self._given(first, others, plan)
        for name in stepped.changing:
            if name not in given.uniforms:
                raise ArgumentError(
                    f"{self.__name__}: {name!r} is lw.by_step(...), which gives one number or "
                    "vector for all elements; what differs between elements lies in an array, "
                    "which a call of the loop can write"
                )
        launch = SteppedLaunch(
            stepped,
            call.launch,
            self._calls.value_slots(given, stepped.changing),
            flatten_uniforms(self.signature, given.uniforms),
            self._calls.holding(call.compiled, given),
            partial(self.bind, out=unpacked(call.results), plan=plan),
        )
        return replace(call, launch=launch)

    @brief
    def tune(
        self, *arguments: Any, seconds: float | None = None, plan: Plan | None = None, **named: Any
    ) -> Tuning:
        """Measure plans for calls like this one, and use the fastest in later calls, including
        those of other programs. The arguments are those of a call, by position or by name.

        `seconds` is about how long it may take, including compilation (by default 60 on a GPU, 120
        on a CPU). Fields that `plan` fixes are kept, and the result is for calls with the same
        fixed fields. The arguments keep their values: lanewise measures copies. Over lw.Neighbors
        and lw.Nearest it also measures structures, over other searches only plans; times are those
        of whole calls, which build the structure. Over lw.Tree(accuracy=...) it measures trees, and
        their errors at up to 1,024 targets, compared with all pairs.
        Raises `ArgumentError` for arguments that do not fit, for an lw.Tree without an accuracy,
        and for an accuracy that no tree reaches (the message has the best one); `PlanError` for an
        illegal `plan`.
        """
        return self._engine.tune(self._untested(arguments, named, plan), plan, seconds)

    @brief
    def gradient(self, wrt: Any) -> Any:
        """Only pairwise and elementwise kernels have derivatives: raises `ArgumentError`."""
        raise no_gradient(self.__name__, self._calls.skeleton.pattern.name)

    @brief
    def tuning_job(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Job:
        """The measurements of `tune` for the same arguments, for programs that watch the search or
        replay it.
        """
        return self._engine.job(self._untested(arguments, named, plan), plan)

    def _given(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], plan: Plan | None
    ) -> Arguments:
        check_plan(self.__name__, plan)
        if (mesh := mesh_of((*arguments, *named.values()))) is not None:
            raise refuse_mesh(self.__name__, mesh)
        return self._calls.given(arguments, named)

    def _untested(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], plan: Plan | None
    ) -> Arguments:
        """Arguments of what runs nothing; raises `ArgumentError` where tests of indices were
        requested that are a separate kernel.
        """
        given = self._given(arguments, named, plan)
        if given.tests is not None and not self._calls.skeleton.threads:
            raise ArgumentError(
                f"{self.__name__}: checks=True is for calls and for bind: the tests are a separate "
                "kernel, which runs before"
            )
        return given


@sealed()
class Kernel(AbstractKernel):
    """A function under a pattern, ready to be called."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        return by_name(self, (Kernel, (self._calls.skeleton, self.python)))


def unpacked(results: tuple[Any, ...]) -> Any:
    """What a call returns: its only result, a tuple of several, or None."""
    return results[0] if len(results) == 1 else results or None


def kernel_of(skeleton: Skeleton) -> Callable[[Callable[..., Any]], Kernel]:
    """The decorator of a skeleton, which makes kernels of functions."""
    return lambda function: Kernel(skeleton, plain_function(skeleton.pattern.name, function))


def take_say(kernel: AbstractKernel) -> None:
    """Let a kernel have no say about the layout of arrays that leave it open, nor settle it: what
    looks at arrays is not to change them.
    """
    kernel._calls.has_say = False  # pyright: ignore[reportPrivateUsage]
