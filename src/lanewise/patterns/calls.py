"""The calls of a function under a pattern: what they compile, bind, remember and tune.

A pattern says in its `Wing` what is its own; the rest is the same for all. What users hold is in
`patterns/kernels.py`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from lanewise.analysis.self_term import violated
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.work import describe_work
from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.frontend.source import Surroundings
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import BLOCK, Pattern, Work
from lanewise.ir.traverse import subexpressions
from lanewise.ir.values import value_array
from lanewise.language.record import Record
from lanewise.language.target import is_gpu, target_of
from lanewise.language.types import I64, Scalar, scalar_of
from lanewise.launch.arguments import (
    Arguments,
    bind_value_array,
    classify_arguments,
    flat,
    flatten_uniforms,
    make_outputs,
    name_arguments,
)  # fmt: skip
from lanewise.launch.compiled import Call, Compiled, Tunable
from lanewise.launch.executable import Executable
from lanewise.launch.programs import Programs
from lanewise.launch.repeated import Holds, Repeated, Repeats, Result, both
from lanewise.launch.result_memory import check_beside_records, check_in_place
from lanewise.launch.shaped_arrays import check_results_apart, writable_checks
from lanewise.launch.slots import NOTHING, Slot, ValueSlot
from lanewise.launch.support import (
    Uses,
    bind_record,
    index_type,
    layouts_of,
    machine_of,
    uses_of,
    value_type,
)
from lanewise.launch.task_list import BoundArray, TaskList
from lanewise.launch.tuned_plans import Key, TunedPlans, make_key, size_class
from lanewise.passes import self_term
from lanewise.patterns.call_tasks import task_list
from lanewise.patterns.results import result_arrays, total_type
from lanewise.patterns.sizing import Classify, Plain, Program, Sizing
from lanewise.planning.plan import Decisions, Plan, neutral_plan
from lanewise.primitives.exact_sums import words_for
from lanewise.records.same_elements import are_same
from lanewise.runtime.memory import on
from lanewise.support.errors import ArgumentError

if TYPE_CHECKING:
    from lanewise.tuning.job import Job
    from lanewise.tuning.report import Tuning

Environment = dict[str, Any]
ResultsOf = Callable[[int, tuple[int, ...]], Sequence[Result]]


def _as_it_is(signature: Signature) -> Signature:
    return signature


def _with_arrays(signature: Signature, values: Mapping[str, Any]) -> Arguments:
    return classify_arguments(signature, values, arrays_allowed=True)


KEYWORDS = ("out", "plan", "seconds")  # of calls of every kernel; `seconds` is that of `tune`
CHECKS = "checks"  # of calls of most: test every index before the run


def _check_names(signature: Signature, options: tuple[str, ...]) -> None:
    """Refuse a parameter that has the name of a keyword of calls: which of the two a call means
    would be a guess.
    """
    for a in signature.source.tree.args.args:
        if a.arg in (*KEYWORDS, *options, *signature.asked):
            why = f"{a.arg!r} is a keyword of every call"
        elif a.arg == "self":
            why = "'self' is the kernel in every call"
        else:
            continue
        raise signature.source.error(why, a, found=ast.unparse(a), wanted="another name")


def _no_advice(arguments: Arguments, kernel: Tunable) -> str:
    return ""


def advise_layout(arguments: Arguments, kernel: Tunable) -> str:
    """The layout of the records with which a call would be faster."""
    from lanewise.advice.choose import layout_advice

    return layout_advice(arguments.records, kernel)


@dataclass(frozen=True, slots=True)
class Wing:
    """What a pattern brings along.

    build: the reference kernel for a function, the arguments of a call and the type of indices.
    counts: how many elements there are, by IR name; the first count is that of the results. It
    raises `ArgumentError` for arguments that do not go together. check: refuses functions that the
    pattern has no use for. arguments: the arguments of a call, checked against the parameters.
    in_place: the first record is updated. rows: its functions may read rows of values. alike: how
    many neighbouring elements go over one list.
    advise: what could make a call faster besides a plan. threads: its functions have indices and
    arrays. repeats: what calls like one have to be like besides. total: a result is the sum over
    all elements. options: keywords of a call that belong to no parameter. prove: what is proved of
    a call, or refused, before anything is compiled for it; it may add to the arguments. elements:
    its functions may read tables, and ask for the indices of these parameters; scatters: they may
    scatter to arrays, too. tested: the kernel that tests a call's indices before it runs.
    """

    pattern: Pattern
    build: Callable[[Lowered, Signature, Arguments, Scalar], ir.Kernel]
    counts: Callable[[str, Arguments], Mapping[str, int]]
    check: Callable[[Signature], Signature] = _as_it_is
    arguments: Callable[[Signature, Mapping[str, Any]], Arguments] = _with_arrays
    in_place: bool = False
    rows: bool = False
    alike: Callable[[Arguments], int] = lambda arguments: 1
    advise: Callable[[Arguments, Tunable], str] = _no_advice
    threads: bool = False
    repeats: Callable[[Calls, Arguments], Repeats] | None = None
    total: bool = False
    options: tuple[str, ...] = ()
    prove: Callable[[Calls, Arguments], None] | None = None
    elements: Callable[[Signature], Iterable[str]] | None = None
    scatters: bool = False
    tested: Callable[[Calls, Arguments], ir.Kernel] | None = None

    def results(self, lowered: Lowered, count: int, axes: tuple[int, ...] = ()) -> list[Result]:
        """The arrays of a call's results."""
        if not self.total:
            return [Result(n, kind, count, axes) for n, kind in result_arrays(lowered)]
        return [Result(n, total_type(scalar_of(kind)), 1) for n, kind in result_arrays(lowered)]


class Derived(Protocol):
    """What makes another kernel of a function: its name, its parameters, and the typed function
    that runs in place of the user's.
    """

    @property
    def name(self) -> str: ...
    def signature(self, written: Signature, /) -> Signature: ...
    def lowered(self, written: Signature, lowered: Lowered, /) -> Lowered: ...


class Calls:
    """The calls of one function. `kernel` is what its user holds, `bind` its method of that name;
    `derived`: of what is made of it.
    """

    def __init__(
        self,
        wing: Wing,
        function: Callable[..., Any],
        kernel: Tunable,
        bind: Callable[..., Call],
        derived: Derived | None = None,
    ) -> None:
        self.wing, self.function, self.kernel, self.bound_by, self.derived = (
            wing,
            function,
            kernel,
            bind,
            derived,
        )
        self.name = function.__name__ if derived is None else derived.name
        self.begin()
        self._written: Signature | None = None
        self._signature: Signature | None = None
        self._seen: Surroundings | None = None

    def begin(self) -> None:
        """Start anew: nothing is compiled, remembered or known to be tuned."""
        self._lowered: Lowered | None = None
        self.compiled: dict[Hashable, Compiled] = {}
        self.tuned = TunedPlans()
        self.repeated: defaultdict[str | None, Repeated] = defaultdict(Repeated)
        self.programs = Programs()
        self.kept: dict[Hashable, Any] = {}  # what the kernel makes beside these calls
        self._works: dict[Hashable, Work] = {}

    @property
    def signature(self) -> Signature:
        """The parameters and results, by the function's annotations."""
        if self._signature is None:
            self._signature = (
                self.written if self.derived is None else self.derived.signature(self.written)
            )
        return self._signature

    @property
    def written(self) -> Signature:
        """The parameters and results of the user's function."""
        if self._written is None:
            signature = read_signature(
                self.function,
                rows=self.wing.rows,
                threads=self.wing.threads,
                tables=self.wing.elements is not None,
                pairs=self.wing.pattern.over_pairs,
                scatters=self.wing.scatters,
            )
            _check_names(signature, self.wing.options)
            self._written = self.wing.check(signature)
        return self._written

    @property
    def _shaped(self) -> Iterable[str]:
        """The parameters that are tables, or scattered to, with which results must not share
        memory.
        """
        return self.signature.arrays if self.wing.elements is not None else ()

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` for what the language does not have."""
        if self._lowered is None:
            written = self.written
            records = (n for n, kind in written.parameters.items() if isinstance(kind, Record))
            self._seen = Surroundings(written.source)
            lowered = lower_function(
                written,
                mutable=next(records, None) if self.wing.in_place else None,
                elements=frozenset(
                    () if self.wing.elements is None else self.wing.elements(written)
                ),
            )
            self._lowered = (
                lowered if self.derived is None else self.derived.lowered(written, lowered)
            )
        return self._lowered

    def notice(self) -> None:
        """Start anew where a helper, a constant or a record stands for something else than it did.

        BoundArray calls stay as they are.
        """
        if self._seen is not None and not self._seen.same():
            self._written = self._signature = self._seen = None
            self.begin()

    # ------------------------------------------------------------ calls

    def given(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Arguments:
        """The arguments of a call, checked."""
        self.notice()
        options = {n: named[n] for n in self.wing.options if n in named}
        own = {n: v for n, v in named.items() if n not in options} if options else named
        result = self.wing.arguments(self.signature, name_arguments(self.signature, arguments, own))
        result.options = options
        if self.wing.prove is not None:
            self.wing.prove(self, result)
        return result

    def call(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any
    ) -> tuple[Any, ...]:
        """Run with the default or the tuned plan; the results."""
        self.notice()
        calls = self.repeated[None]
        if (out is None or not self._shaped) and (match := calls.find(arguments, named)):
            return match[0].run(match[1], out)
        classified = self.given(arguments, named)
        call = self.bind(classified, out, None)
        self.remember(calls, call, arguments, named, classified)
        with on(classified.device):
            call.launch()
        return call.results

    def remember(
        self,
        calls: Repeated,
        call: Call,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        arguments: Arguments,
        *,
        own: Mapping[str, Slot] = NOTHING,
        classify: Classify | None = None,
    ) -> None:
        """Keep a call for those like it. own: slots of the pattern's. classify: the arguments of a
        call, checked, if not by `given`.
        """
        if self._program(arguments) is not None:
            self.remember_as(
                calls, positional, named, arguments, self._program, own=own, classify=classify
            )

    def remember_as(
        self,
        calls: Repeated,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        arguments: Arguments,
        program: Callable[[Arguments], Program | None],
        results: ResultsOf | None = None,
        numbers: Callable[[Mapping[str, int]], Mapping[str, int]] = dict,
        *,
        own: Mapping[str, Slot] = NOTHING,
        classify: Classify | None = None,
    ) -> None:
        """Keep a call that runs this program for its arguments. results, numbers: see
        `sizing.Plain`.
        """
        sizing = Sizing(
            classify or self.given, self.bound, program, self._plain(arguments, results, numbers)
        )
        besides = None if self.wing.repeats is None else self.wing.repeats(self, arguments)
        uses = {n: self._uses(n) for n in arguments.records}
        calls.remember(
            self.signature,
            positional,
            named,
            arguments,
            sizing.resize,
            sizing.sizes,
            identical=None if own else _pair(arguments),
            own=own,
            besides=besides,
            uses=uses,
            own_only=self._own_only,
        )

    def _plain(
        self,
        arguments: Arguments,
        results: ResultsOf | None,
        numbers: Callable[[Mapping[str, int]], Mapping[str, int]],
    ) -> Plain | None:
        """How calls like this one are sized, if nothing but their numbers of elements follows from
        sizes.
        """
        signature, wing, plan_class = self.signature, self.wing, self.wing.pattern.plan_class
        numbered = self.lowered.numbered or any(r.numbered for r in signature.reductions)
        if (
            plan_class is None
            or wing.total
            or signature.arrays
            or signature.rows
            or numbered
            or arguments.variant
        ):
            return None
        machine, work = machine_of(arguments.device), self.work(arguments)
        values = {n: value_type(signature.parameters[n]) for n in arguments.arrays}
        made = result_arrays(self.lowered)
        results = results or (
            lambda count, axes: [Result(n, kind, count, axes) for n, kind in made]
        )
        arranged = {
            n: value_array("", kind, written=False).arrangement for n, kind in values.items()
        }
        arranged |= {
            r.name: value_array("", r.kind, written=True).arrangement for r in results(1, ())
        }
        return Plain(
            tuple(arguments.records),
            values,
            arranged,
            partial(wing.counts, self.name),
            numbers,
            results,
            partial(plan_class, machine, work),
        )

    def _program(self, arguments: Arguments) -> Program | None:
        """What calls like this one run, without the caller's plan; None where that is no program
        for all of them.
        """
        compiled = self.specialise(arguments, None)
        tasks, program = compiled.tasks, compiled.executable.program
        whole = arguments.tests is not None or not tasks.resizable
        if whole or not self._chosen_alone(arguments, compiled.plan):
            return None
        environment = self.environment(arguments)
        self_term.check(self.name, compiled.plan.self_term, program.self_term, environment)
        results = self.wing.results(self.lowered, self.count(arguments), arguments.axes)
        return Program(tasks, environment, results, self.holding(compiled, arguments))

    def _chosen_alone(self, arguments: Arguments, plan: Decisions) -> bool:
        """Whether calls like this one have this plan: a tuned one that does not hold for these
        values may hold for the next ones.
        """
        tuned = self._tuned(arguments, None)
        return tuned is None or tuned.plan == plan

    @property
    def _own_only(self) -> bool:
        """Whether an element reads no fields but its own."""
        return not self.wing.pattern.over_pairs and not self.wing.pattern.over_items

    def value_slots(self, arguments: Arguments, names: Iterable[str]) -> dict[str, ValueSlot]:
        """What values of these parameters have to be like, to be numbers of a call like this
        one.
        """
        kinds, host = self.signature.parameters, not is_gpu(arguments.device)
        return {n: ValueSlot(n, value_type(kinds[n]), host) for n in names}

    def holding(self, compiled: Compiled, arguments: Arguments) -> Holds | None:
        """Whether what was proved of a call holds for other values; None where nothing was."""
        besides = None if self.wing.repeats is None else self.wing.repeats(self, arguments).holds
        return both(self._holding(compiled, arguments), besides)

    def _holding(self, compiled: Compiled, arguments: Arguments) -> Holds | None:
        """Whether what was proved of a pair of an element with itself holds for other values; None
        where nothing was.
        """
        proof, environment = compiled.executable.program.self_term, self.environment(arguments)
        locals_ = (
            x for c in proof.conditions for x in subexpressions(c.value) if isinstance(x, ir.Local)
        )
        names = tuple(dict.fromkeys(x.name for x in locals_))
        if not names:
            return None

        @lru_cache(maxsize=64)
        def holds(values: Any) -> bool:
            arguments = values if len(names) > 1 else (values,)
            return not violated(proof, environment | dict(zip(names, arguments, strict=True)))

        chosen = itemgetter(*names)
        return lambda values: holds(chosen(values))

    def bind(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        """A call with its memory bound, to run many times."""
        with on(arguments.device):
            return self._bind(arguments, out, plan)

    def _bind(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        compiled = self.specialise(arguments, plan)
        bound, made = self.bound(arguments), self.wing.results(self.lowered, self.count(arguments))
        count = made[0].count if made else 0
        results = make_outputs(
            self.name, [r.kind for r in made], count, arguments.device, out, arguments.axes
        )
        if out is not None:
            check_in_place(self.name, results, arguments.arrays, arguments.arrays)
            uses = {n: self._uses(n) for n in arguments.records}
            check_beside_records(
                self.name, results, arguments.records, uses, own_only=self._own_only
            )
            tables = {n: arguments.shaped[n] for n in self._shaped}
            check_results_apart(self.name, results, tables, self.signature.scattered)
            if self.wing.threads:
                shaped = arguments.added | arguments.summed
                whole = {n: shaped[n][0] for n in self.signature.arrays}
                check_results_apart(self.name, results, whole, whole)
        bound |= {
            r.name: bind_value_array(flat(a, r.kind), r.kind)
            for r, a in zip(made, results, strict=True)
        }
        environment = self.environment(arguments)
        self_term.check(
            self.name, compiled.plan.self_term, compiled.executable.program.self_term, environment
        )
        launch = compiled.tasks.bound(bound, environment)
        asked = (
            *arguments.asked,
            *(writable_checks(f"{self.name}: out", *results) if out is not None else ()),
        )
        return Call(launch, tuple(results), replace(compiled, environment=environment), asked)

    # ------------------------------------------------------------ what a call is made of

    def reference(self, arguments: Arguments) -> ir.Kernel:
        """The kernel before any decision about it."""
        return self.wing.build(
            self.lowered, self.signature, arguments, index_type(arguments.device)
        )

    def count(self, arguments: Arguments) -> int:
        """How many elements have a result."""
        return next(iter(self.wing.counts(self.name, arguments).values()))

    def environment(self, arguments: Arguments) -> Environment:
        """Uniform values and counts, by IR name."""
        beyond = {f"{row}.beyond": count for row, count in arguments.beyond.items()}
        return {
            **flatten_uniforms(self.signature, arguments.uniforms),
            **beyond,
            **arguments.lengths,
            **self.wing.counts(self.name, arguments),
        }

    def bound(self, arguments: Arguments) -> dict[str, BoundArray]:
        """The arrays of a call, bound to its memory."""
        kinds = self.signature.parameters
        bound = {n: bind_record(r, self._uses(n)) for n, r in arguments.records.items()}
        bound |= {n: bind_value_array(a, value_type(kinds[n])) for n, a in arguments.arrays.items()}
        beside = (arguments.added | arguments.summed).items()
        return bound | {n: bind_value_array(a, kind) for n, (a, kind) in beside}

    def _uses(self, name: str) -> Uses:
        """What is used of a record parameter."""
        record = self.signature.parameters[name]
        assert isinstance(record, Record)
        return uses_of(self.lowered, name, record)

    def work(self, arguments: Arguments) -> Work:
        """What default plans ask of a call."""
        # a plan for no elements is as good as one for one
        count, pattern = (
            max(1, self.count(arguments)),
            self.wing.pattern,
        )
        plain = pattern.suggest is None and (
            pattern.describe is None or not is_gpu(arguments.device)
        )
        if not pattern.over_pairs and plain:
            items = (
                [*self.wing.counts(self.name, arguments).values()][-1] if pattern.over_items else 0
            )
            return Work(pattern, count, alike=self.wing.alike(arguments), items=items)
        key = self.kind(arguments)
        if key not in self._works:
            reference = self.reference(arguments)
            self._works[key] = describe_work(reference, count, target_of(arguments.device))
        work = self._works[key]
        environment = self.environment(arguments)
        rounds = None if work.rounds is None else work.rounds.at(environment)
        suggested = None if work.suggested is None else work.suggested.at(environment)
        return replace(work, targets=count, rounds=rounds, suggested=suggested)

    def kind(self, arguments: Arguments) -> Hashable:
        """What a kernel is specialised to, apart from its plan."""
        layouts = tuple((n, r.record, r.layout) for n, r in arguments.records.items())
        return (
            layouts,
            tuple(arguments.arrays),
            _pair(arguments),
            arguments.variant,
            arguments.device,
        )

    # ------------------------------------------------------------ compilation

    def compile(self, arguments: Arguments, plan: Plan | None) -> Compiled:
        """The kernel for these arguments, without running it."""
        return replace(self.specialise(arguments, plan), environment=self.environment(arguments))

    def specialise(self, arguments: Arguments, plan: Plan | None) -> Compiled:
        """The kernel with the caller's plan, the tuned or the default one."""
        tuned = self._tuned(arguments, plan)
        # What was proved for the values that it was tuned with need not hold for these: then the
        # default plan runs.
        if tuned is None or violated(
            tuned.executable.program.self_term, self.environment(arguments)
        ):
            return self._compile(arguments, plan, plan)
        return tuned

    def _tuned(self, arguments: Arguments, plan: Plan | None) -> Compiled | None:
        """The kernel with the plan that was tuned for calls like this one, if there is one."""
        tuned = self.tuned.find(
            plan,
            arguments.device,
            self._specialisation(arguments),
            lambda: self._key(arguments, self.reference(arguments), plan or Plan()),
        )
        return None if tuned is None else self._compile(arguments, tuned, plan)

    def _compile(self, arguments: Arguments, chosen: Plan | None, wish: Plan | None) -> Compiled:
        """`chosen` by the caller or by tuning; `wish`: the plan that the caller asked for, open
        fields and all.
        """
        complete = complete_plan(chosen, machine_of(arguments.device), self.work(arguments))
        buckets = arguments.buckets if wish is None else None
        key = (self.kind(arguments), complete, buckets)
        if key in self.compiled and arguments.tests is None:
            return self.compiled[key]
        reference = self.reference(arguments)
        executable = self.programs.get(
            self.kind(arguments), lambda: reference, complete, arguments.device, wish=wish
        )
        compiled = Compiled(
            self.name,
            executable,
            partial(self.bound_by, plan=complete, **arguments.options),
            layouts_of(arguments.records),
            self.environment(arguments),
            reference,
            self.kernel,
            self.tasks(replace(arguments, buckets=buckets), executable),
        )
        if arguments.tests is None:
            self.compiled[key] = compiled
        return compiled

    def tasks(self, arguments: Arguments, kernel: Executable) -> TaskList:
        """What a call runs besides its kernel, with that."""
        tests, tested = arguments.tests, None
        if tests is not None and not tests.within and (build := self.wing.tested) is not None:
            plan = neutral_plan(target_of(arguments.device), BLOCK)
            key = ("tests", self.kind(arguments), tests.tested)
            tested = self.programs.get(key, partial(build, self, arguments), plan, arguments.device)
        counts = tuple(self.wing.counts(self.name, arguments))
        return task_list(self.name, self.signature, arguments, kernel, counts, tested)

    # ------------------------------------------------------------ tuning

    def tune(self, arguments: Arguments, plan: Plan | None, seconds: float | None) -> Tuning:
        """Measure plans, and adopt the fastest."""
        from lanewise.tuning import tune_job

        return tune_job(self.job(arguments, plan), seconds)

    def job(self, arguments: Arguments, plan: Plan | None) -> Job:
        """What tuning measures."""
        from lanewise.tuning.job import Job, Workload, check_tunable, make_workload

        if arguments.buckets is not None and plan is None:
            raise ArgumentError(
                f"{self.name}: calls like this one do not run the kernel but go to buckets (see "
                "explain()), which have no plan; "
                "with a plan, such as plan=lw.Plan(block=256), the kernel is tuned, for calls with "
                "that plan"
            )
        wish = plan or Plan()
        lengths = {n: len(a) for n, a in (arguments.records | arguments.arrays).items()}
        count, kinds = self.count(arguments), self.signature.parameters
        check_tunable(
            self.name, arguments.device, {"grid": count} if self.wing.threads else lengths
        )
        reference, environment = self.reference(arguments), self.environment(arguments)
        arrays = {
            n: (a, value_type(kinds[n])) for n, a in arguments.arrays.items()
        } | arguments.added
        device = arguments.device
        arrays |= {n: (words_for(row, device), I64) for n, (row, _) in arguments.summed.items()}

        def workload(*, fresh: bool = not self.wing.pattern.over_pairs) -> Workload:
            made = self.wing.results(self.lowered, count)
            results = [(r.name, r.kind) for r in made]
            return make_workload(
                reference,
                arguments.records,
                arrays,
                results,
                made[0].count if made else count,
                environment,
                arguments.device,
                fresh=fresh,
            )

        specialisation = self._specialisation(arguments)
        return Job(
            self.name,
            reference,
            arguments.device,
            machine_of(arguments.device),
            self.work(arguments),
            lengths if self.wing.pattern.over_pairs else {"elements": count},
            environment,
            wish,
            self._key(arguments, reference, wish),
            workload,
            lambda: workload(fresh=True),
            lambda best: self.adopt(wish, specialisation, best),
            lambda: self.wing.advise(arguments, self.kernel),
        )

    def adopt(self, wish: Plan, specialisation: Hashable, best: Decisions) -> None:
        """Use a plan that was tuned just now."""
        self.tuned.adopt(wish, specialisation, best)
        self.repeated.clear()

    def _specialisation(self, arguments: Arguments) -> Hashable:
        """What of a call decides which tuned plan it gets, in a form that is quickly made."""
        layouts = tuple((n, r.layout) for n, r in arguments.records.items())
        sizes = tuple(map(size_class, self.wing.counts(self.name, arguments).values()))
        return (
            layouts,
            tuple(arguments.arrays),
            _pair(arguments),
            arguments.variant,
            arguments.device,
            sizes,
        )

    def _key(self, arguments: Arguments, reference: ir.Kernel, wish: Plan) -> Key:
        *_, last = self.wing.counts(self.name, arguments).values()
        return make_key(
            reference,
            layouts_of(arguments.records),
            arguments.device,
            self.work(arguments),
            last,
            wish,
            reference.identical,
        )


def _pair(arguments: Arguments) -> tuple[str, str, bool] | None:
    """Of two records: their names, and whether their arrays are one."""
    if len(arguments.records) != 2:
        return None
    (first, a), (second, b) = arguments.records.items()
    return first, second, are_same(a, b)
