"""`@pairwise`: for every target, the sum of a function over the sources that a search finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, overload

from lanewise.errors import ArgumentError, CompileError
from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.ir.names import count_of
from lanewise.kernels.arguments import (
    Arguments,
    bind_value_array,
    flatten_uniforms,
    make_outputs,
    name_arguments,
    sort_arguments,
)  # fmt: skip
from lanewise.kernels.compiled import Call, Compiled
from lanewise.kernels.support import bind_record, compile_kernel, describe_layouts, index_type, machine_of, value_type
from lanewise.layouts import SoA
from lanewise.patterns.elementwise import result_arrays
from lanewise.patterns.pairwise import PairwiseArguments, build_pairwise
from lanewise.plan import Plan
from lanewise.plans import Work, complete_plan
from lanewise.record import Record
from lanewise.search import AllPairs, Search


class Pairwise:
    """A kernel over pairs.

    Its function takes a target record, a source record and values for all; its results are summed over the sources.
    """

    def __init__(self, function: Callable[..., Any], search: Search | None = None) -> None:
        if search is not None and not isinstance(search, Search):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"search takes a search structure such as lw.AllPairs(), found {search!r}")
        self.python = function
        self.search = search or AllPairs()
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._signature: Signature | None = None
        self._lowered: Lowered | None = None
        self._compiled: dict[Any, Compiled] = {}

    def using(self, search: Search) -> Pairwise:
        """The same interaction over another search structure."""
        return Pairwise(self.python, search)

    @property
    def signature(self) -> Signature:
        self._signature = self._signature or _checked(read_signature(self.python))
        return self._signature

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` for what the language does not have."""
        self._lowered = self._lowered or lower_function(self.signature)
        return self._lowered

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """The sums for all targets: an array of shape (n,) or (n, components), or a tuple of them."""
        return self.bind(*arguments, out=out, **named)()

    def compile(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Compiled:
        """The kernel for these arguments, without running it."""
        return self._specialise(self._sorted(arguments, named), plan)

    def bind(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Call:
        """A call with its memory bound, to run many times."""
        given = self._sorted(arguments, named)
        compiled = self._specialise(given, plan)
        bound = {n: bind_record(r) for n, r in given.records.items()}
        target = next(iter(given.records.values()))
        named_results = result_arrays(self.lowered)
        results = make_outputs(self.__name__, [kind for _, kind in named_results], len(target), given.device, out)
        bound |= {n: bind_value_array(a, kind) for (n, kind), a in zip(named_results, results, strict=True)}
        counts = {count_of(n): len(r) for n, r in given.records.items()}
        environment = {**flatten_uniforms(self.signature, given.uniforms), **counts}
        return Call(compiled.executable.prepare(bound, environment), tuple(results), compiled)

    def _sorted(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Arguments:
        return sort_arguments(self.signature, name_arguments(self.signature, arguments, named), arrays_allowed=False)

    def _specialise(self, given: Arguments, plan: Plan | None) -> Compiled:
        (target_name, target), (source_name, source) = given.records.items()
        wide = any(r.type.size == 8 for r in self.lowered.function.results)
        complete = complete_plan(
            plan, machine_of(given.device), Work("pairwise", len(target), wide, source.layout != SoA())
        )
        identical = target.data is source.data
        key = (target.layout, source.layout, identical, given.device, complete)
        if key not in self._compiled:
            kinds = {n: value_type(self.signature.parameters[n]) for n in given.uniforms}
            pattern = PairwiseArguments(
                (target_name, target.record, target.layout),
                (source_name, source.record, source.layout),
                kinds,
                identical,  # type: ignore[arg-type]
            )
            naive = build_pairwise(self.lowered, pattern, index_type(given.device))
            executable = compile_kernel(naive, complete, given.device, wanted=plan)
            self._compiled[key] = Compiled(
                self.__name__, executable, partial(self.bind, plan=complete), describe_layouts(given.records)
            )
        return self._compiled[key]


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
        return lambda f: Pairwise(f, search)  # pyright: ignore
    return Pairwise(function)
