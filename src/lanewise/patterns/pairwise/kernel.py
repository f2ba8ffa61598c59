"""`@pairwise`: for every target, the sum of a function over the sources that a search finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, overload

from lanewise.analysis.self_term import violated
from lanewise.attributes import sealed
from lanewise.checks import plain_function, shown
from lanewise.errors import ArgumentError, CompileError
from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.frontend.surroundings import Surroundings
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of
from lanewise.ir.traverse import subexpressions
from lanewise.launch.arguments import (  # fmt: skip
    Arguments,
    bind_value_array,
    flatten_uniforms,
    make_outputs,
    name_arguments,
    sort_arguments,
)
from lanewise.launch.compiled import Call, Compiled
from lanewise.launch.executable import device_kind
from lanewise.launch.repeated import Repeated, Result
from lanewise.launch.support import bind_record, compile_kernel, index_type, layouts_of, machine_of, value_type
from lanewise.launch.tuned_key import Key, make_key, size_class
from lanewise.launch.tuned_plans import TunedPlans
from lanewise.naming import by_name, named_object
from lanewise.passes import self_term
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.patterns.results import result_arrays
from lanewise.patterns.search import AllPairs, Search
from lanewise.patterns.search.searched import Searched
from lanewise.plan import Plan, check_plan
from lanewise.plans import complete_plan
from lanewise.record import Record
from lanewise.work import Work, describe_work

if TYPE_CHECKING:
    from lanewise.tuning.job import Job
    from lanewise.tuning.report import Tuning


@sealed()
class Pairwise:
    """A kernel over pairs.

    Its function takes a target record, a source record and values for all; its results are summed over the sources.
    """

    def __init__(self, function: Callable[..., Any], search: Search | None = None) -> None:
        if search is not None and not isinstance(search, Search):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"search takes a search structure such as lw.AllPairs(), found {shown(search)}")
        self._function = function
        self._search = search or AllPairs()
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self._signature: Signature | None = None
        self._lowered: Lowered | None = None
        self._seen: Surroundings | None = None
        self._compiled: dict[Any, Compiled] = {}
        self._traits: dict[Any, Work] = {}
        self._tuned = TunedPlans()
        self._searched: Searched | None = None
        self._repeated = Repeated()

    def using(self, search: Search) -> Pairwise:
        """The same interaction over another search structure."""
        return Pairwise(self.python, search)

    @property
    def python(self) -> Callable[..., Any]:
        """Its function, as it was written."""
        return self._function

    @property
    def search(self) -> Search:
        """How sources are found; `using` makes a kernel with another one."""
        return self._search

    def __repr__(self) -> str:
        return f"<lanewise pairwise kernel {self.__name__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        own = named_object(self.__module__, self.__qualname__)
        if isinstance(own, Pairwise) and own is not self and own.python is self.python:
            return Pairwise.using, (own, self.search)  # made of the kernel of this name
        return by_name(self, (Pairwise, (self.python, self.search)))

    def __copy__(self) -> Pairwise:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Pairwise:
        return self

    @property
    def signature(self) -> Signature:
        self._signature = self._signature or _checked(read_signature(self.python))
        return self._signature

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` for what the language does not have."""
        if self._lowered is None:
            self._seen = Surroundings(self.signature.source)
            self._lowered = lower_function(self.signature)
        return self._lowered

    def _notice(self) -> None:
        """Start anew where a helper, a constant or a record stands for something else than it did. Bound calls stay as they are."""
        if self._seen is not None and not self._seen.same():
            self._signature = self._lowered = self._seen = self._searched = None
            self._compiled, self._traits, self._tuned, self._repeated = {}, {}, TunedPlans(), Repeated()

    @property
    def searched(self) -> Searched | None:
        """What compiles and binds calls over a search; None where every pair counts."""
        if isinstance(self.search, AllPairs) and self.search.is_plain:
            return None
        if self._searched is None:
            self._searched = Searched(self.__name__, self.signature, self.lowered, self.search, self)
        return self._searched

    def __call__(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Any:
        """The sums for all targets: an array of shape (n,) or (n, components), or a tuple of them."""
        if plan is not None:
            return self.bind(*arguments, out=out, plan=plan, **named)()
        self._notice()
        if found := self._repeated.find(arguments, named):
            results = found[0].run(found[1], out)
            return results[0] if len(results) == 1 else results
        given = self._sorted(arguments, named)
        call = self._bind(given, out, None)
        self._remember(call, arguments, named, given)
        return call()

    def _remember(self, call: Call, arguments: tuple[Any, ...], named: dict[str, Any], given: Arguments) -> None:
        """Keep a call for those like it. A search looks at the positions of every call: its structure follows them."""
        tuned = self._tuned_for(given, None)
        if self.searched is not None or (tuned is not None and tuned.plan != call.compiled.plan):
            return  # a tuned plan that does not hold for these values may hold for the next ones
        (first, target), (second, source) = given.records.items()
        self._repeated.remember(
            self.signature, arguments, named, given, call.launch,
            [Result(n, kind, len(target)) for n, kind in result_arrays(self.lowered)],
            identical=(first, second, target.data is source.data), holds=self._holding(call, given),
        )  # fmt: skip

    def _holding(self, call: Call, given: Arguments) -> Callable[[Mapping[str, Any]], bool] | None:
        """Whether what was proved of a pair of an element with itself holds for other values; None where nothing was."""
        proof, environment = call.compiled.executable.program.self_term, self._environment(given)
        locals_ = (x for c in proof.conditions for x in subexpressions(c.value) if isinstance(x, ir.Local))
        names = tuple(dict.fromkeys(x.name for x in locals_))
        if not names:
            return None

        @lru_cache(maxsize=64)
        def holds(values: Any) -> bool:
            given = values if len(names) > 1 else (values,)
            return not violated(proof, environment | dict(zip(names, given, strict=True)))

        chosen = itemgetter(*names)
        return lambda values: holds(chosen(values))

    def compile(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Compiled:
        """The kernel for these arguments, without running it."""
        check_plan(self.__name__, plan)
        given = self._sorted(arguments, named)
        if (over := self.searched) is not None:
            return over.compile(given, plan, partial(self.bind, plan=plan))
        return replace(self._specialise(given, plan), environment=self._environment(given))

    def bind(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Call:
        """A call with its memory bound, to run many times."""
        check_plan(self.__name__, plan)
        return self._bind(self._sorted(arguments, named), out, plan)

    def _bind(self, given: Arguments, out: Any, plan: Plan | None) -> Call:
        if (over := self.searched) is not None:
            return over.bind(given, out, plan, partial(self.bind, plan=plan))
        compiled = self._specialise(given, plan)
        bound = {n: bind_record(r) for n, r in given.records.items()}
        target = next(iter(given.records.values()))
        named_results = result_arrays(self.lowered)
        results = make_outputs(self.__name__, [kind for _, kind in named_results], len(target), given.device, out)
        bound |= {n: bind_value_array(a, kind) for (n, kind), a in zip(named_results, results, strict=True)}
        environment = self._environment(given)
        self_term.check(self.__name__, compiled.plan.self_term, compiled.executable.program.self_term, environment)
        launch = compiled.executable.prepare(bound, environment)
        return Call(launch, tuple(results), replace(compiled, environment=environment))

    def tune(self, *arguments: Any, seconds: float | None = None, plan: Plan | None = None, **named: Any) -> Tuning:
        """Measure plans for calls like this one, and use the fastest in later calls, also of other programs.

        `seconds` is about what it may take, compilation included (60 on a GPU, 120 on a CPU); the fields that `plan`
        fixes stay as they are, and the result is for calls with the same fixed fields. The arguments keep their values.
        Over lw.Neighbors and lw.Nearest structures are measured, too: whole calls, with what builds the structure.
        Raises `ArgumentError` for arguments that do not fit and for a search that names its structure, `PlanError` for an illegal
        `plan`.
        """
        from lanewise.tuning import tune_job

        if (over := self.searched) is not None:
            from lanewise.patterns.search.tuning.tune import tune_search

            return tune_search(
                over.tuning_job(
                    self._sorted(arguments, named), check_plan(self.__name__, plan), partial(self.bind, plan=plan)
                ),
                seconds,
            )
        return tune_job(self.tuning_job(*arguments, plan=plan, **named), seconds)

    def tuning_job(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Job:
        """What `tune` measures: for programs that watch the search, or replay it."""
        from lanewise.advice.advice import layout_advice
        from lanewise.tuning.job import Job, Workload, check_tunable
        from lanewise.tuning.workload import make_workload

        given, wanted = self._sorted(arguments, named), check_plan(self.__name__, plan) or Plan()
        if self.searched is not None:
            raise ArgumentError(
                f"{self.__name__} runs over {self.search.describe()}: plans are measured together with structures, by "
                f"{self.__name__}.tune()"
            )
        counts = {n: len(r) for n, r in given.records.items()}
        check_tunable(self.__name__, given.device, counts)
        naive, environment = self._naive(given), self._environment(given)

        def workload() -> Workload:
            results = result_arrays(self.lowered)
            return make_workload(naive, given.records, {}, results, environment, given.device, fresh=False)

        situation = self._situation(given)
        return Job(
            self.__name__, naive, given.device, machine_of(given.device), self._work(given), counts, environment, wanted,
            self._key(given, naive, wanted), workload, lambda best: self._adopt(wanted, situation, best),
            lambda: layout_advice(given.records, self),
        )  # fmt: skip

    def _adopt(self, wanted: Plan, situation: tuple[Any, ...], best: Plan) -> None:
        self._tuned.adopt(wanted, situation, best)
        self._repeated.forget()

    def _environment(self, given: Arguments) -> dict[str, Any]:
        counts = {count_of(n): len(r) for n, r in given.records.items()}
        return {**flatten_uniforms(self.signature, given.uniforms), **counts}

    def _sorted(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Arguments:
        self._notice()
        return sort_arguments(self.signature, name_arguments(self.signature, arguments, named), arrays_allowed=False)

    def _specialise(self, given: Arguments, plan: Plan | None) -> Compiled:
        tuned = self._tuned_for(given, plan)
        # What was proved for the values that it was tuned with need not hold for these: then the default plan runs.
        if tuned is None or violated(tuned.executable.program.self_term, self._environment(given)):
            return self._compile(given, plan, plan)
        return tuned

    def _tuned_for(self, given: Arguments, plan: Plan | None) -> Compiled | None:
        """The kernel with the plan that was tuned for calls like this one, if there is one."""
        tuned = self._tuned.find(
            plan, given.device, self._situation(given), lambda: self._key(given, self._naive(given), plan or Plan())
        )
        return None if tuned is None else self._compile(given, tuned, plan)

    def _compile(self, given: Arguments, chosen: Plan | None, wanted: Plan | None) -> Compiled:
        """`chosen` by the caller or by tuning; `wanted` by the caller."""
        target, source = given.records.values()
        complete = complete_plan(chosen, machine_of(given.device), self._work(given))
        key = (target.layout, source.layout, target.data is source.data, given.device, complete)
        if key not in self._compiled:
            naive = self._naive(given)
            executable = compile_kernel(naive, complete, given.device, wanted=wanted)
            self._compiled[key] = Compiled(
                self.__name__, executable, partial(self.bind, plan=complete), layouts_of(given.records),
                self._environment(given), naive, self,
            )  # fmt: skip
        return self._compiled[key]

    def _naive(self, given: Arguments) -> ir.Kernel:
        """The kernel before any decision about it."""
        (target_name, target), (source_name, source) = given.records.items()
        kinds = {n: value_type(self.signature.parameters[n]) for n in given.uniforms}
        pattern = PairwiseArguments(
            (target_name, target.record, target.layout),
            (source_name, source.record, source.layout),
            kinds,
            target.data is source.data,  # type: ignore[arg-type]
        )
        return build_pairwise(self.lowered, pattern, index_type(given.device))

    def _work(self, given: Arguments) -> Work:
        target, source = given.records.values()
        key = (target.layout, source.layout, target.data is source.data, device_kind(given.device))
        if key not in self._traits:
            self._traits[key] = describe_work(self._naive(given), len(target))
        return replace(self._traits[key], targets=len(target))

    def _situation(self, given: Arguments) -> tuple[Any, ...]:
        """What of a call decides which tuned plan it gets, in a form that is quickly made."""
        target, source = given.records.values()
        sizes = (size_class(len(target)), size_class(len(source)))
        return (target.layout, source.layout, target.data is source.data, given.device, sizes)

    def _key(self, given: Arguments, naive: ir.Kernel, wanted: Plan) -> Key:
        target, source = given.records.values()
        layouts, identical = layouts_of(given.records), target.data is source.data
        return make_key(naive, layouts, given.device, self._work(given), len(source), wanted, identical)


def _checked(signature: Signature) -> Signature:
    """A pairwise function takes two records first, then values, and returns something."""
    source, given = signature.source, signature.parameters
    kinds = list(given.values())
    if len(kinds) < 2 or not (isinstance(kinds[0], Record) and isinstance(kinds[1], Record)):
        raise source.error(
            "a pairwise function starts with two records", source.tree,
            found=", ".join(f"{n}: {k}" for n, k in given.items()),
            wanted="target: Body, source: Body, then values for all",
        )  # fmt: skip
    if any(isinstance(k, Record) for k in kinds[2:]):
        raise source.error(
            "a pairwise function takes two records",
            source.tree,
            found="a third one",
            wanted="values for all after the two records",
        )
    if not signature.results:
        raise CompileError(
            "a pairwise function returns the contribution of one source",
            source.location(source.tree),
            found="no result",
            wanted="-> lw.vec3",
        )
    return signature


@overload
def pairwise(function: Callable[..., Any]) -> Pairwise: ...
@overload
def pairwise(*, search: Search) -> Callable[[Callable[..., Any]], Pairwise]: ...
def pairwise(function: Callable[..., Any] | None = None, *, search: Search | None = None) -> Any:
    """Make a kernel of a function of two elements: `@lw.pairwise` or `@lw.pairwise(search=...)`."""
    if function is None:
        return lambda f: Pairwise(plain_function("pairwise", f), search)  # pyright: ignore
    return Pairwise(plain_function("pairwise", function), search)
