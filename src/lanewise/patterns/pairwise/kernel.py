"""`@pairwise`: the sum of a function over all pairs of targets and sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from lanewise.attributes import sealed
from lanewise.checks import plain_function, shown
from lanewise.errors import ArgumentError, CompileError
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of
from lanewise.launch.arguments import Arguments, classify_arguments
from lanewise.launch.compiled import Call, Compiled, Tunable
from lanewise.launch.support import value_type
from lanewise.naming import by_name, named_object
from lanewise.patterns.calls import Calls, Wing, unpacked
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.patterns.pairwise.pattern import PAIRWISE
from lanewise.patterns.search import AllPairs, Search
from lanewise.patterns.search.searched import Searched
from lanewise.plan import Plan, check_plan
from lanewise.record import Record
from lanewise.types import Scalar

if TYPE_CHECKING:
    from lanewise.tuning.job import Job
    from lanewise.tuning.report import Tuning


def _build(lowered: Lowered, signature: Signature, given: Arguments, index: Scalar) -> ir.Kernel:
    (target_name, target), (source_name, source) = given.records.items()
    kinds = {n: value_type(signature.parameters[n]) for n in given.uniforms}
    arguments = PairwiseArguments(
        (target_name, target.record, target.layout), (source_name, source.record, source.layout), kinds,
        target.data is source.data,
    )  # fmt: skip
    return build_pairwise(lowered, arguments, index)


def _counts(name: str, given: Arguments) -> Mapping[str, int]:
    return {count_of(n): len(r) for n, r in given.records.items()}


def _advise(given: Arguments, kernel: Tunable) -> str:
    from lanewise.advice.advice import layout_advice

    return layout_advice(given.records, kernel)


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


WING = Wing(
    PAIRWISE, _build, _counts, check=_checked,
    arguments=partial(classify_arguments, arrays_allowed=False), advise=_advise,
)  # fmt: skip


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
        self._is_searched = not (isinstance(self._search, AllPairs) and self._search.is_plain)
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self._calls = Calls(WING, function, self, self.bind)

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
        return self._calls.signature

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` for what the language does not have."""
        return self._calls.lowered

    @property
    def searched(self) -> Searched | None:
        """What compiles and binds calls over a search; None where every pair counts."""
        if not self._is_searched:
            return None
        kept = self._calls.kept
        if "searched" not in kept:
            kept["searched"] = Searched(self.__name__, self.signature, self.lowered, self.search, self)
        return kept["searched"]

    def __call__(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Any:
        """The sums for all targets: an array of shape (n,) or (n, components), or a tuple of them."""
        if plan is not None:
            return self.bind(*arguments, out=out, plan=plan, **named)()
        self._calls.notice()
        if (over := self.searched) is not None:
            return unpacked(
                over.call(
                    arguments, named, out, lambda: self._calls.given(arguments, named), partial(self.bind, plan=None)
                )
            )
        return unpacked(self._calls.call(arguments, named, out))

    def compile(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Compiled:
        """The kernel for these arguments, without running it."""
        check_plan(self.__name__, plan)
        given = self._calls.given(arguments, named)
        if (over := self.searched) is not None:
            return over.compile(given, plan, partial(self.bind, plan=plan))
        return self._calls.compile(given, plan)

    def bind(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Call:
        """A call with its memory bound, to run many times."""
        check_plan(self.__name__, plan)
        given = self._calls.given(arguments, named)
        if (over := self.searched) is not None:
            return over.bind(given, out, plan, partial(self.bind, plan=plan))
        return self._calls.bind(given, out, plan)

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

            given = self._calls.given(arguments, named)
            job = over.tuning_job(given, check_plan(self.__name__, plan), partial(self.bind, plan=plan))
            return tune_search(job, seconds)
        return tune_job(self.tuning_job(*arguments, plan=plan, **named), seconds)

    def tuning_job(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Job:
        """What `tune` measures: for programs that watch the search, or replay it."""
        if self._is_searched:
            raise ArgumentError(
                f"{self.__name__} runs over {self.search.describe()}: plans are measured together with structures, by "
                f"{self.__name__}.tune()"
            )
        return self._calls.job(self._calls.given(arguments, named), plan)


@overload
def pairwise(function: Callable[..., Any]) -> Pairwise: ...
@overload
def pairwise(*, search: Search) -> Callable[[Callable[..., Any]], Pairwise]: ...
def pairwise(function: Callable[..., Any] | None = None, *, search: Search | None = None) -> Any:
    """Make a kernel of a function of two elements: `@lw.pairwise` or `@lw.pairwise(search=...)`."""
    if function is None:
        return lambda f: Pairwise(plain_function("pairwise", f), search)  # pyright: ignore
    return Pairwise(plain_function("pairwise", function), search)
