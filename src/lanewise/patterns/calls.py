"""The calls of a function under a pattern: what they compile, bind, remember and tune.

A pattern says in its `Skeleton` what is its own; the rest is the same for all. What users hold is
in `patterns/kernels.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from lanewise.analysis.self_term import violated
from lanewise.compiler.default_plans import complete_plan
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import BLOCK
from lanewise.ir.traverse import subexpressions
from lanewise.language.target import is_gpu, target_of
from lanewise.launch.arguments import Arguments, bind_value_array, flat, make_outputs
from lanewise.launch.compiled import Call, Compiled, Tunable
from lanewise.launch.executable import Executable
from lanewise.launch.programs import Programs
from lanewise.launch.repeatable import Repeatable
from lanewise.launch.repeated import Repeated
from lanewise.launch.result_memory import check_results
from lanewise.launch.shaped_arrays import writable_checks
from lanewise.launch.sized import Holds, both, require_for_call
from lanewise.launch.slots import NOTHING, Slot, ValueSlot
from lanewise.launch.support import Uses, layouts_of, machine_of, value_type
from lanewise.launch.task_list import BoundArray, TaskList
from lanewise.launch.tuned_plans import ANYTHING, is_complete, tuned_plans
from lanewise.passes import self_term
from lanewise.patterns.call_tasks import checked, task_list
from lanewise.patterns.counted_turns import counted_turns
from lanewise.patterns.mesh_calls import call_on_mesh, mesh_of
from lanewise.patterns.mesh_engines import BindGroups
from lanewise.patterns.sizing import Classify, Program, ResultsOf, Sizing, plain_of
from lanewise.patterns.skeleton import Derived, KernelFunction, Skeleton, pair_of
from lanewise.patterns.tuning_jobs import key_of, specialisation_of, tuning_job
from lanewise.planning.plan import CompletePlan, Plan, neutral_plan
from lanewise.records.binding import await_layout, layout_reasons, open_owners
from lanewise.runtime.memory import on

if TYPE_CHECKING:
    from lanewise.facade import Job, Tuning


Remembered = Repeated[Repeatable]


class Calls:
    """The calls of one function. `kernel` is what its user holds, `bind` its method of that name;
    `derived`: of what is made of it.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        function: Callable[..., Any],
        kernel: Tunable,
        bind: Callable[..., Call],
        derived: Derived | None = None,
    ) -> None:
        self.subject = KernelFunction(skeleton, function, derived)
        self.kernel, self.bound_by, self.name = kernel, bind, self.subject.name
        self.made = 0  # calls
        self.has_say = True  # about the layout of arrays that leave it open
        self._begin()

    def _begin(self) -> None:
        """Start anew: nothing is compiled, remembered or known to be tuned."""
        self.compiled: dict[Hashable, Compiled] = {}
        self.tuned = tuned_plans()
        self.repeated: defaultdict[str | None, Remembered] = defaultdict(Remembered)
        self.programs = Programs()

    @property
    def skeleton(self) -> Skeleton:
        return self.subject.skeleton

    @property
    def signature(self) -> Signature:
        """The parameters and results, by the function's annotations."""
        return self.subject.signature

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` if it contains something that the language does
        not have.
        """
        return self.subject.lowered

    @property
    def kept(self) -> dict[Hashable, Any]:
        """What the kernel makes besides these calls."""
        return self.subject.kept

    def notice(self) -> None:
        """Start anew where a helper, a constant or a record stands for something else than it did.

        Bound calls stay as they are.
        """
        if self.subject.changed():
            self._begin()

    def given(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Arguments:
        """The arguments of a call, checked. Arrays that leave their layout to kernels get one."""
        self.notice()
        given = self.subject.given(arguments, named)
        if given.records and self.has_say and open_owners(given.records.values()):
            from lanewise.facade import settle_layouts

            settle_layouts(self, given.records)
        return given

    def settles(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
        """Choose the layout of arrays that leave it open, and say whether there were any: then an
        earlier call may be like this one.
        """
        values = (*arguments, *named.values())
        if not (self.has_say and await_layout(values, self)) or mesh_of(values) is not None:
            return False
        self.given(arguments, named)
        return True

    # ------------------------------------------------------------ calls

    def call(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any
    ) -> tuple[Any, ...]:
        """Run with the default or the tuned plan; the results."""
        self.made += 1
        if self.subject.changed():
            self._begin()
        calls = self.repeated[None]
        may_repeat = out is None or not self.subject.shaped
        if may_repeat and (match := calls.find(arguments, named, self.settles, makes=out is None)):
            return match[0].run(match[1], out)
        if (mesh := mesh_of((*arguments, *named.values()))) is not None:
            return call_on_mesh(self, self, mesh, arguments, named, out)
        classified = self.given(arguments, named)
        call = self.bind(classified, out, None)
        with on(classified.device):
            call.launch()
        results = call.results
        del call  # whose own memory is let go of before calls like it have theirs
        self.remember(calls, arguments, named, classified)
        return results

    def remember(
        self,
        calls: Remembered,
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
        calls: Remembered,
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
            classify or self.given,
            self.subject.bound,
            program,
            plain_of(self.subject, arguments, results, numbers),
        )
        made = Repeatable.of(
            self.signature,
            positional,
            named,
            arguments,
            sizing.resize,
            sizes=sizing.sizes,
            met=sizing.met,
            identical=None if own else pair_of(arguments),
            own=own,
            besides=self.subject.repeats(arguments),
            uses=self.subject.all_uses(arguments),
            own_only=self.subject.own_only,
        )
        if made is not None:
            calls.keep(made)

    def _program(self, arguments: Arguments) -> Program | None:
        """What calls like this one run, without the caller's plan; None where that is no program
        for all of them.
        """
        compiled = self.specialise(arguments, None)
        tasks, program = compiled.tasks, compiled.executable.program
        whole = arguments.tests is not None or not tasks.resizable
        if whole or not self._chosen_alone(arguments, compiled.plan):
            return None
        environment = self.subject.environment(arguments)
        self_term.check(self.name, compiled.plan.self_term, program.self_term, environment)
        results = self.subject.results(arguments, arguments.axes)
        return Program(tasks, environment, results, self.holding(compiled, arguments))

    def _chosen_alone(self, arguments: Arguments, plan: CompletePlan) -> bool:
        """Whether calls like this one have this plan: a tuned one that does not hold for these
        values may hold for the next ones.
        """
        tuned = self._tuned(arguments, None)
        return tuned is None or tuned.plan == plan

    def value_slots(self, arguments: Arguments, names: Iterable[str]) -> dict[str, ValueSlot]:
        """What values of these parameters have to be like, to be numbers of a call like this
        one.
        """
        kinds, host = self.signature.parameters, not is_gpu(arguments.device)
        return {n: ValueSlot(n, value_type(kinds[n]), host) for n in names}

    def holding(self, compiled: Compiled, arguments: Arguments) -> Holds | None:
        """Whether what was proved of a call holds for other values; None where nothing was."""
        besides = self.subject.repeats(arguments)
        proved = self._holding(compiled, arguments)
        return proved if besides is None else both(proved, besides.holds)

    def _holding(self, compiled: Compiled, arguments: Arguments) -> Holds | None:
        """Whether what was proved of a pair of an element with itself holds for other values; None
        where nothing was.
        """
        proof = compiled.executable.program.self_term
        environment = self.subject.environment(arguments)
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
        """A call with bound arguments and memory, to run many times."""
        with on(arguments.device):
            return self._bind(arguments, out, plan)

    def bind_part(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        """The call of a part of a mesh: see `mesh_calls`."""
        return self.bind(arguments, out, plan)

    @property
    def groups(self) -> BindGroups | None:
        """Parts of a mesh have rows each."""
        return None

    def uses(self, name: str) -> Uses:
        """What is used of a record parameter."""
        return self.subject.uses(name)

    def _bind(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        compiled = self.specialise(arguments, plan)
        bound = self.subject.bound(arguments)
        made = self.subject.results(arguments)
        environment = self.subject.environment(arguments)
        new = made if out is None else ()
        require_for_call(self.name, arguments.device, new, compiled.tasks.needs(environment))
        results, written = self.outputs(arguments, out)
        bound |= written
        self_term.check(
            self.name, compiled.plan.self_term, compiled.executable.program.self_term, environment
        )
        launch = compiled.tasks.bound(bound, environment)
        asked = (
            *arguments.asked,
            *(writable_checks(f"{self.name}: out", *results) if out is not None else ()),
        )
        compiled = replace(
            compiled,
            environment=environment,
            layout_reasons=layout_reasons(arguments.records),
        )
        return Call(launch, results, compiled, asked)

    def outputs(
        self, arguments: Arguments, out: Any
    ) -> tuple[tuple[Any, ...], dict[str, BoundArray]]:
        """The results of a call, in their own memory or the caller's, and as kernels take them.

        Raises `ArgumentError` for memory of the caller's that no result can lie in.
        """
        made = self.subject.results(arguments)
        count = made[0].count if made else 0
        results = make_outputs(
            self.name, [r.kind for r in made], count, arguments.device, out, arguments.axes
        )
        if out is not None:
            whole = self.signature.arrays if self.skeleton.threads else ()
            beside = arguments.added | arguments.summed
            check_results(
                self.name,
                results,
                arguments.records,
                self.subject.all_uses(arguments),
                own_only=self.subject.own_only,
                values=arguments.arrays,
                shaped={n: arguments.shaped[n] for n in self.subject.shaped}
                | {n: beside[n][0] for n in whole},
                touched=(*self.signature.scattered, *whole),
            )
        pairs = zip(made, results, strict=True)
        return tuple(results), {r.name: bind_value_array(flat(a, r.kind), r.kind) for r, a in pairs}

    # ------------------------------------------------------------ compilation

    def compile(self, arguments: Arguments, plan: Plan | None) -> Compiled:
        """Compile the kernel for these arguments, without running it."""
        turns = counted_turns(self.subject, arguments)
        return replace(
            self.specialise(arguments, plan),
            environment=self.subject.environment(arguments),
            layout_reasons=layout_reasons(arguments.records),
            turns=lambda: turns,
        )

    def specialise(self, arguments: Arguments, plan: Plan | None) -> Compiled:
        """The kernel with the caller's plan, the tuned or the default one."""
        tuned = self._tuned(arguments, plan)
        # What was proved for the values that it was tuned with need not hold for these: then the
        # default plan runs.
        if tuned is None or violated(
            tuned.executable.program.self_term, self.subject.environment(arguments)
        ):
            return self._compile(arguments, plan, plan)
        return tuned

    def _tuned(self, arguments: Arguments, plan: Plan | None) -> Compiled | None:
        """The kernel with the plan that was tuned for calls like this one, if there is one."""
        if plan is not None and is_complete(plan):
            return None
        tuned = self.tuned.find(
            arguments.device,
            (plan or ANYTHING, specialisation_of(self.subject, arguments)),
            lambda: key_of(
                self.subject, arguments, self.subject.reference(arguments), plan or ANYTHING
            ),
        )
        if tuned is None:
            return None
        # a call like the one that was measured may be one of more elements
        machine, work = machine_of(arguments.device), self.subject.work(arguments)
        if work.pattern.unfit(machine, work, tuned):
            return None
        return self._compile(arguments, tuned, plan)

    def _compile(
        self, arguments: Arguments, chosen: Plan | None, requested: Plan | None
    ) -> Compiled:
        """`chosen` by the caller or by tuning; `requested`: the caller's plan, open fields and
        all.
        """
        complete = complete_plan(chosen, machine_of(arguments.device), self.subject.work(arguments))
        buckets = arguments.buckets if requested is None else None
        key = (self.subject.kind(arguments), complete, requested, buckets)
        if key in self.compiled and arguments.tests is None:
            return self.compiled[key]
        reference = self.subject.reference(arguments)
        executable = self.programs.get(
            self.subject.kind(arguments),
            lambda: reference,
            complete,
            arguments.device,
            requested=requested,
        )
        compiled = Compiled(
            self.name,
            executable,
            partial(self.bound_by, plan=executable.program.plan, **arguments.options),
            layouts_of(arguments.records),
            self.subject.environment(arguments),
            reference,
            self.kernel,
            checked(self.tasks(replace(arguments, buckets=buckets), executable), arguments),
            requested=requested,
        )
        if arguments.tests is None:
            self.compiled[key] = compiled
        return compiled

    def tasks(self, arguments: Arguments, kernel: Executable) -> TaskList:
        """What a call runs besides its kernel, with that."""
        tests, tested = arguments.tests, None
        if tests is not None and not tests.within and (build := self.skeleton.tested) is not None:
            plan = neutral_plan(target_of(arguments.device), BLOCK)
            key = ("tests", self.subject.kind(arguments), tests.tested)
            tested = self.programs.get(
                key, partial(build, self.subject, arguments), plan, arguments.device
            )
        counts = tuple(self.skeleton.counts(self.name, arguments))
        return task_list(self.name, self.signature, arguments, kernel, counts, tested)

    # ------------------------------------------------------------ tuning

    def tune(self, arguments: Arguments, plan: Plan | None, seconds: float | None) -> Tuning:
        """Measure plans, and adopt the fastest."""
        from lanewise.facade import tune_job

        return tune_job(self.job(arguments, plan), seconds)

    def job(self, arguments: Arguments, plan: Plan | None) -> Job:
        """What tuning measures."""
        return tuning_job(self.subject, self.kernel, arguments, plan, self.adopt)

    def adopt(self, requested: Plan, specialisation: Hashable, best: CompletePlan) -> None:
        """Use a plan that was tuned just now."""
        self.tuned.adopt((requested, specialisation), best)
        self.repeated.clear()
