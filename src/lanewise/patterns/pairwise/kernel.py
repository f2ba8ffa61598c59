"""`@pairwise`: the sum of a function over all pairs of targets and sources.

The calls of a pairwise function over a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from lanewise.frontend.function import Lowered, Signature, result_annotation
from lanewise.ir import nodes as ir
from lanewise.ir.itself import itself_values
from lanewise.ir.names import count_of
from lanewise.language.record import Record
from lanewise.language.types import Scalar
from lanewise.launch.arguments import Arguments
from lanewise.launch.compiled import Call, Compiled
from lanewise.launch.support import Uses, value_type
from lanewise.patterns.calls import Calls
from lanewise.patterns.kernels import AbstractKernel
from lanewise.patterns.mesh_calls import call_on_mesh, mesh_of
from lanewise.patterns.mesh_engines import BindGroups
from lanewise.patterns.mesh_pairs import SHARED
from lanewise.patterns.pairwise.build import PAIRWISE, PairwiseArguments, build_pairwise
from lanewise.patterns.search import AllPairs, Search
from lanewise.patterns.search.searched import Searched
from lanewise.patterns.search.tree.on_mesh import tree_rounds
from lanewise.patterns.search.tree.search import Tree
from lanewise.patterns.skeleton import (
    CHECKS,
    Derived,
    Division,
    KernelFunction,
    Skeleton,
    advise_layout,
)
from lanewise.patterns.tables.arguments import WITHOUT_ARRAYS
from lanewise.patterns.tables.ranges import kernel_of_tests, prove, repeats
from lanewise.planning.plan import Plan
from lanewise.records.same_elements import are_same, shared_elements
from lanewise.support.attributes import sealed, settings_by_name
from lanewise.support.checks import plain_function, shown
from lanewise.support.errors import ArgumentError, CompileError, LanewiseError, brief, shortened
from lanewise.support.naming import by_name, named_object

if TYPE_CHECKING:
    from lanewise.facade import PairwiseGradient
    from lanewise.tuning.job import Job
    from lanewise.tuning.report import Tuning


def _build(
    lowered: Lowered, signature: Signature, classified: Arguments, index: Scalar
) -> ir.Kernel:
    (target_name, target), (source_name, source) = classified.records.items()
    kinds = {n: value_type(signature.parameters[n]) for n in classified.uniforms}
    arguments = PairwiseArguments(
        (target_name, target.record, target.layout),
        (source_name, source.record, source.layout),
        kinds,
        are_same(target, source),
        signature.arrays,
        PARTS in classified.variant,
        SHARED in classified.variant,
    )
    return build_pairwise(lowered, arguments, index)


def _counts(name: str, arguments: Arguments) -> Mapping[str, int]:
    return {count_of(n): len(r) for n, r in arguments.records.items()}


def _checked(signature: Signature) -> Signature:
    """A pairwise function takes two records first, then values, and returns something."""
    source, parameters = signature.source, signature.parameters
    kinds = list(parameters.values())
    if len(kinds) < 2 or not (isinstance(kinds[0], Record) and isinstance(kinds[1], Record)):
        raise source.error(
            "a pairwise function starts with two records", source.tree,
            found=", ".join(f"{n}: {k}" for n, k in parameters.items()),
            wanted="target: Body, source: Body, then uniform arguments",
        )  # fmt: skip
    if any(isinstance(k, Record) for k in kinds[2:]):
        raise source.error(
            "a pairwise function takes two records",
            source.tree,
            found="a third one",
            wanted="uniform arguments after the two records",
        )
    if not signature.results:
        raise CompileError(
            "a pairwise function returns the contribution of one source",
            source.location(source.tree),
            found="no result",
            wanted=result_annotation(signature),
        )
    return signature


def _elements(signature: Signature) -> list[str]:
    """The two records."""
    return list(signature.parameters)[:2]


PARTS = "parts"  # of what a kernel is specialised to: targets and sources are parts of one array
MOST_NUMBERED = 2**31 - 1  # sources, where results are their numbers in 32 bits


def _proved(function: KernelFunction, arguments: Arguments) -> None:
    """Refuse more sources than an index or a count of a result holds, and indices of tables that
    surely are outside.

    Where targets and sources are parts of one array, say so, and which of them are the same
    elements.
    """
    _, (name, source) = arguments.records.items()
    if len(source) > MOST_NUMBERED and any(r.numbered for r in function.signature.reductions):
        raise ArgumentError(
            f"{function.name}: {name!r} has {len(source):,} elements, and results that are int32 "
            "indices or counts number at most "
            f"{MOST_NUMBERED:,}; divide the sources"
        )
    prove(function, arguments)
    target, _ = arguments.records.values()
    if (shared := shared_elements(target, source)) is not None:
        arguments.variant = (*arguments.variant, PARTS)
        arguments.lengths |= itself_values(shared.step, shared.shift, shared.apart)


SKELETON = Skeleton(
    PAIRWISE,
    _build,
    _counts,
    check=_checked,
    arguments=WITHOUT_ARRAYS,
    advise=advise_layout,
    elements=_elements,
    prove=_proved,
    options=(CHECKS,),
    repeats=repeats,
    tested=kernel_of_tests,
    division=Division.TARGETS,
)


@sealed()
class Pairwise(AbstractKernel):
    """A kernel over pairs, as `@lw.pairwise` makes it.

    Its function takes a target record, a source record and uniform arguments. A call takes an
    array of targets, one of sources, which may be the same one, and the arguments by position or
    name. It returns an array with one result per target, (n,) or (n, components), on the device of
    the arrays, or a tuple of arrays: the sums over the sources, or other reductions. `out=` takes
    the arrays to write to, `plan=` a `lw.Plan`, `checks=True` tests every index into a table
    beforehand.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        search: Search | None = None,
        derived: Derived | None = None,
    ) -> None:
        if search is not None and not isinstance(search, Search):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"search takes a search structure such as lw.AllPairs(), found {shown(search)}"
            )
        self._search = chosen = search or AllPairs()
        every = isinstance(chosen, AllPairs) and chosen.is_plain
        super().__init__(
            SKELETON, function, None if every else lambda calls: SearchCalls(calls, chosen), derived
        )

    def using(self, search: Search) -> Pairwise:
        """The same interaction over another search structure."""
        return Pairwise(self.python, search)

    @brief
    def gradient(self, wrt: str | Iterable[str]) -> PairwiseGradient:
        """The derivative of the sum of all results with respect to fields of records or uniform
        arguments: a pairwise kernel again.

        wrt: "position" (of both records), "target.position", "source.mass", "softening2", or
        several of them. See `PairwiseGradient` for calls and results. Raises `ArgumentError` for
        names that the function does not read, `CompileError` (with the line) for integers and for
        anything without a derivative.
        """
        from lanewise.facade import pairwise_gradient

        return pairwise_gradient(self, wrt)

    @property
    def search(self) -> Search:
        """How sources are found; `using` makes a kernel with another one."""
        return self._search

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._calls.subject.derived is not None:
            raise TypeError(f"{self.__name__} is a part of a gradient, which is pickled as a whole")
        own = named_object(self.__module__, self.__qualname__)
        if isinstance(own, Pairwise) and own is not self and own.python is self.python:
            return Pairwise.using, (own, self.search)  # made of the kernel of this name
        return by_name(self, (Pairwise, (self.python, self.search)))

    def __call__(
        self,
        *arguments: Any,
        out: Any = None,
        plan: Plan | None = None,
        checks: bool = False,
        **named: Any,
    ) -> Any:
        """Run for all targets: an array of sums, of shape (n,) or (n, components), or a tuple of
        them.

        out: an array, or a tuple of them, that takes the results. plan: an `lw.Plan` for this call,
        instead of the tuned or the default one.

        checks: test before the run that every index into a table is inside, as far as nothing
        proves it; raises `VerificationError` with the first target for which one is not. The call
        waits for the tests.
        """
        try:
            return self._run(arguments, named, out, plan, checks)
        except LanewiseError as error:
            raise shortened(error)  # noqa: B904  (its own cause stays)

    @property
    def searched(self) -> Searched | None:
        """The part that compiles and binds calls over a search; None for all pairs."""
        return self._engine.searched if isinstance(self._engine, SearchCalls) else None


@overload
def pairwise(function: Callable[..., Any]) -> Pairwise: ...
@overload
def pairwise(*, search: Search) -> Callable[[Callable[..., Any]], Pairwise]: ...
@settings_by_name
def pairwise(function: Callable[..., Any] | None = None, *, search: Search | None = None) -> Any:
    """Make a kernel of a function of two elements: `@lw.pairwise` or `@lw.pairwise(search=...)`.

    The function takes a target record, a source record and uniform arguments, and returns the
    effect of one source on one target. The annotation of its result determines the reduction over
    all sources: a plain type is the sum; others are `lw.Min`, `lw.ArgMin`, `lw.Count` and more.

        @lw.pairwise
        def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
            d = source.position - target.position
            inv = lw.rsqrt(lw.dot(d, d) + softening2)
            return source.mass * inv**3 * d

        acceleration = pull(bodies, bodies, softening2=1e-4)  # (n, 3) float32

    search: which sources a target meets, such as `lw.Neighbors(radius=...)`, `lw.Nearest(k=...)` or
    `lw.Tree(accuracy=...)`; by default all. Units are those of the records.

    Raises `CompileError` at the first call if the function contains something that the language
    does not have, `ArgumentError` for arguments that do not fit.
    """
    if function is None:
        return lambda f: Pairwise(plain_function("pairwise", f), search)  # pyright: ignore
    return Pairwise(plain_function("pairwise", function), search)


class SearchCalls:
    """An `Engine` that finds the sources of a target with a search.

    `calls` are those of the function.
    """

    def __init__(self, calls: Calls, search: Search) -> None:
        self._calls, self._search = calls, search

    @property
    def searched(self) -> Searched:
        """What compiles and binds calls; the same until the function or what it uses stands for
        something else.
        """
        calls, kept = self._calls, self._calls.kept
        if "searched" not in kept:
            kept["searched"] = Searched(calls, self._search)
        return kept["searched"]

    def call(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any
    ) -> tuple[Any, ...]:
        calls = self._calls
        calls.notice()
        if (mesh := mesh_of((*arguments, *named.values()))) is not None:
            return call_on_mesh(calls, self, mesh, arguments, named, out)
        return self.searched.call(arguments, named, out)

    def compile(self, arguments: Arguments, plan: Plan | None) -> Compiled:
        return self.searched.compile(arguments, plan)

    def bind(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        return self.searched.bind(arguments, out, plan)

    def bind_part(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        """The call of a part of a mesh. Sources are all there, so that every part has the same
        structure.
        """
        return self.bind(arguments, out, plan)

    @property
    def groups(self) -> BindGroups | None:
        """A tree opens its nodes for groups of targets, which parts of a mesh share."""
        return partial(tree_rounds, self.searched) if isinstance(self._search, Tree) else None

    def uses(self, name: str) -> Uses:
        """What the function and the search use of a record parameter."""
        record = self._calls.signature.parameters[name]
        assert isinstance(record, Record)
        return self.searched.uses(name, record)

    def tune(self, arguments: Arguments, plan: Plan | None, seconds: float | None) -> Tuning:
        """Measure structures together with plans; over a tree, what keeps its accuracy."""
        from lanewise.patterns.search.tuning.calibration import calibrate
        from lanewise.patterns.search.tuning.tune import tune_search

        if isinstance(self._search, Tree) and self._search.accuracy is not None:
            return calibrate(self.searched.calibration_job(arguments, plan), seconds)
        return tune_search(self.searched.tuning_job(arguments, plan), seconds)

    def job(self, arguments: Arguments, plan: Plan | None) -> Job:
        raise ArgumentError(
            f"{self._calls.name} runs over {self._search.describe()}: plans are measured together "
            "with structures, by "
            f"{self._calls.name}.tune()"
        )
