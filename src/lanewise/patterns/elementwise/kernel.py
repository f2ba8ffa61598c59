"""`@elementwise`: one record at a time, updated in place, with an optional value for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lanewise.attributes import sealed
from lanewise.checks import plain_function
from lanewise.errors import ArgumentError
from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.frontend.surroundings import Surroundings
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, LANES, partial_of
from lanewise.launch.arguments import (  # fmt: skip
    Arguments,
    bind_value_array,
    flatten_uniforms,
    make_output,
    make_outputs,
    name_arguments,
    sort_arguments,
)
from lanewise.launch.compiled import Call, Compiled
from lanewise.launch.executable import Bound
from lanewise.launch.repeated import Repeated, Result
from lanewise.launch.support import bind_record, compile_kernel, index_type, layouts_of, machine_of, value_type
from lanewise.launch.tuned_key import Key, make_key, size_class
from lanewise.launch.tuned_plans import TunedPlans
from lanewise.naming import by_name
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.elementwise.reduction import Operation, build_reduction, reduced_type, reduction_lanes
from lanewise.patterns.elementwise.totals import max_, min_, sum_
from lanewise.patterns.results import result_arrays
from lanewise.plan import Plan, check_plan
from lanewise.plans import complete_plan
from lanewise.record import Record
from lanewise.work import Work

if TYPE_CHECKING:
    from lanewise.tuning.job import Job
    from lanewise.tuning.report import Tuning


@sealed()
class Elementwise:
    """A kernel over single elements. The first record parameter is updated in place; other arrays are read.

    Parameters of record type take record arrays; scalar and vector parameters take one value for all or an array with
    one value an element.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self._signature: Signature | None = None
        self._lowered: Lowered | None = None
        self._seen: Surroundings | None = None
        self._compiled: dict[Any, Compiled] = {}
        self._tuned = TunedPlans()
        self._repeated: defaultdict[Operation | None, Repeated] = defaultdict(Repeated)

    @property
    def python(self) -> Callable[..., Any]:
        """Its function, as it was written."""
        return self._function

    def __repr__(self) -> str:
        return f"<lanewise elementwise kernel {self.__name__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return by_name(self, (Elementwise, (self.python,)))

    def __copy__(self) -> Elementwise:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Elementwise:
        return self

    @property
    def signature(self) -> Signature:
        self._signature = self._signature or read_signature(self.python)
        return self._signature

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` for what the language does not have."""
        first = next((n for n, kind in self.signature.parameters.items() if isinstance(kind, Record)), None)
        if self._lowered is None:
            self._seen = Surroundings(self.signature.source)
            self._lowered = lower_function(self.signature, mutable=first)
        return self._lowered

    def _notice(self) -> None:
        """Start anew where a helper, a constant or a record stands for something else than it did. Bound calls stay as they are."""
        if self._seen is not None and not self._seen.same():
            self._signature = self._lowered = self._seen = None
            self._compiled, self._tuned, self._repeated = {}, TunedPlans(), defaultdict(Repeated)

    def __call__(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Any:
        """Run on all elements; returns an array of results, a tuple of them, or None."""
        if plan is not None:
            return self.bind(*arguments, out=out, plan=plan, **named)()
        self._notice()
        calls = self._repeated[None]
        if found := calls.find(arguments, named):
            results = found[0].run(found[1], out)
            return results[0] if len(results) == 1 else results or None
        given = self._sorted(arguments, named)
        call = self._bind(given, out, None)
        count = self._count(given)
        made = [Result(n, kind, count) for n, kind in result_arrays(self.lowered)]
        calls.remember(self.signature, arguments, named, given, call.launch, made)
        return call()

    def compile(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Compiled:
        """The kernel for these arguments, without running it."""
        check_plan(self.__name__, plan)
        given = self._sorted(arguments, named)
        environment = self._environment(given, self._count(given))
        return replace(self._specialise(given, plan), environment=environment)

    def bind(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Call:
        """A call with its memory bound, to run many times."""
        check_plan(self.__name__, plan)
        return self._bind(self._sorted(arguments, named), out, plan)

    def _bind(self, sorted_arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        compiled = self._specialise(sorted_arguments, plan)
        count = self._count(sorted_arguments)
        bound = self._bound(sorted_arguments)
        named_results = result_arrays(self.lowered)
        kinds = [kind for _, kind in named_results]
        results = make_outputs(self.__name__, kinds, count, sorted_arguments.device, out)
        bound |= {n: bind_value_array(a, kind) for (n, kind), a in zip(named_results, results, strict=True)}
        environment = self._environment(sorted_arguments, count)
        launch = compiled.executable.prepare(bound, environment)
        return Call(launch, tuple(results), replace(compiled, environment=environment))

    def sum(self, *arguments: Any, **named: Any) -> Any:
        """The sum of the results over all elements, in 64 bits and a fixed order, without storing them.

        A function with several results gives a tuple.
        """
        return self._reduce("sum", arguments, named)

    def min(self, *arguments: Any, **named: Any) -> Any:
        """The smallest result over all elements (by component)."""
        return self._reduce("min", arguments, named)

    def max(self, *arguments: Any, **named: Any) -> Any:
        """The largest result over all elements (by component)."""
        return self._reduce("max", arguments, named)

    def _reduce(self, operation: Operation, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._notice()
        calls = self._repeated[operation]
        if found := calls.find(arguments, named):
            return _reduced(operation, found[0].run(found[1], None))
        given = self._sorted(arguments, named)
        if not self.lowered.results:
            raise ArgumentError(f"{self.__name__} returns nothing to take the {operation} of")
        count = self._count(given)
        executable = self._specialise(given, None, operation).executable
        bound, environment = self._bound(given), self._environment(given, count)
        environment[LANES] = reduction_lanes(count)
        made = [
            Result(partial_of(name), reduced_type(kind, operation), environment[LANES])
            for name, kind in result_arrays(self.lowered)
        ]
        partials = [make_output(self.__name__, r.kind, r.count, given.device, None) for r in made]
        bound |= {r.name: bind_value_array(p, r.kind) for r, p in zip(made, partials, strict=True)}
        launch = executable.prepare(bound, environment)
        calls.remember(self.signature, arguments, named, given, launch, made)
        launch()
        return _reduced(operation, partials)

    def tune(self, *arguments: Any, seconds: float | None = None, plan: Plan | None = None, **named: Any) -> Tuning:
        """Measure plans for calls like this one, and use the fastest in later calls, also of other programs.

        `seconds` is about what it may take, compilation included (60 on a GPU, 120 on a CPU); the fields that `plan`
        fixes stay as they are, and the result is for calls with the same fixed fields. The arguments keep their values:
        copies are measured. Raises `ArgumentError` for arguments that do not fit, `PlanError` for an illegal `plan`.
        """
        from lanewise.tuning import tune_job

        return tune_job(self.tuning_job(*arguments, plan=plan, **named), seconds)

    def tuning_job(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Job:
        """What `tune` measures: for programs that watch the search, or replay it."""
        from lanewise.advice.advice import layout_advice
        from lanewise.tuning.job import Job, Workload, check_tunable
        from lanewise.tuning.workload import make_workload

        given, wanted = self._sorted(arguments, named), check_plan(self.__name__, plan) or Plan()
        count = self._count(given)
        check_tunable(self.__name__, given.device, {n: len(a) for n, a in (given.records | given.arrays).items()})
        naive, environment = self._naive(given), self._environment(given, count)
        kinds = self.signature.parameters
        arrays = {n: (a, value_type(kinds[n])) for n, a in given.arrays.items()}

        def workload() -> Workload:
            results = result_arrays(self.lowered)
            return make_workload(naive, given.records, arrays, results, environment, given.device, fresh=True)

        situation = self._situation(given)
        return Job(
            self.__name__, naive, given.device, machine_of(given.device), Work("elementwise", count),
            {"elements": count}, environment, wanted, self._key(given, naive, wanted), workload,
            lambda best: self._adopt(wanted, situation, best),
            lambda: layout_advice(given.records, self),
        )  # fmt: skip

    def _adopt(self, wanted: Plan, situation: tuple[Any, ...], best: Plan) -> None:
        self._tuned.adopt(wanted, situation, best)
        self._repeated = defaultdict(Repeated)

    def _sorted(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Arguments:
        self._notice()
        return sort_arguments(self.signature, name_arguments(self.signature, arguments, named), arrays_allowed=True)

    def _bound(self, given: Arguments) -> dict[str, Bound]:
        bound = {n: bind_record(r) for n, r in given.records.items()}
        kinds = self.signature.parameters
        return bound | {n: bind_value_array(a, value_type(kinds[n])) for n, a in given.arrays.items()}

    def _environment(self, given: Arguments, count: int) -> dict[str, Any]:
        return {**flatten_uniforms(self.signature, given.uniforms), COUNT: count}

    def _count(self, arguments: Arguments) -> int:
        counts = {n: len(a) for n, a in (*arguments.records.items(), *arguments.arrays.items())}
        if not counts:
            raise ArgumentError(f"{self.__name__}: at least one argument must be an array")
        if len(set(counts.values())) > 1:
            lengths = ", ".join(f"{n} has {c}" for n, c in counts.items())
            raise ArgumentError(f"{self.__name__}: the arrays differ in length: {lengths}")
        return next(iter(counts.values()))

    def _specialise(self, arguments: Arguments, plan: Plan | None, operation: Operation | None = None) -> Compiled:
        chosen = plan
        if operation is None:  # reductions keep the default plan
            chosen = self._tuned.find(
                plan, arguments.device, self._situation(arguments),
                lambda: self._key(arguments, self._naive(arguments), plan or Plan()),
            ) or plan  # fmt: skip
        complete = complete_plan(chosen, machine_of(arguments.device), Work("elementwise", self._count(arguments)))
        layouts = tuple((n, r.record, r.layout) for n, r in arguments.records.items())
        key = (layouts, tuple(arguments.arrays), arguments.device, complete, operation)
        if key not in self._compiled:
            naive = self._naive(arguments, operation)
            executable = compile_kernel(naive, complete, arguments.device, wanted=plan)
            self._compiled[key] = Compiled(
                self.__name__, executable, partial(self.bind, plan=complete), layouts_of(arguments.records),
                self._environment(arguments, self._count(arguments)), naive, self,
            )  # fmt: skip
        return self._compiled[key]

    def _naive(self, arguments: Arguments, operation: Operation | None = None) -> ir.Kernel:
        """The kernel before any decision about it."""
        kinds = self.signature.parameters
        pattern = ElementwiseArguments(
            {n: (r.record, r.layout) for n, r in arguments.records.items()},
            {n: value_type(kinds[n]) for n in arguments.arrays},
            {n: value_type(kinds[n]) for n in arguments.uniforms},
        )
        index = index_type(arguments.device)
        if operation is None:
            return build_elementwise(self.lowered, pattern, index)
        strided = machine_of(arguments.device).kind == "cuda"
        return build_reduction(self.lowered, pattern, index, operation, strided=strided)

    def _situation(self, arguments: Arguments) -> tuple[Any, ...]:
        """What of a call decides which tuned plan it gets, in a form that is quickly made."""
        layouts = tuple((n, r.layout) for n, r in arguments.records.items())
        return (layouts, tuple(arguments.arrays), arguments.device, size_class(self._count(arguments)))

    def _key(self, arguments: Arguments, naive: ir.Kernel, wanted: Plan) -> Key:
        count = self._count(arguments)
        work = Work("elementwise", count)
        return make_key(naive, layouts_of(arguments.records), arguments.device, work, count, wanted, False)


def _reduced(operation: Operation, partials: Sequence[Any]) -> Any:
    results = tuple({"sum": sum_, "min": min_, "max": max_}[operation](p) for p in partials)
    return results[0] if len(results) == 1 else results


def elementwise(function: Callable[..., Any]) -> Elementwise:
    """Make a kernel of a function of one element: `@elementwise def kick(body: Body, a: vec3, dt: f32): ...`."""
    return Elementwise(plain_function("elementwise", function))
