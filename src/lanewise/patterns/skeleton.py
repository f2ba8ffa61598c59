"""What a pattern makes of a function of the user's: a skeleton around it, and the calls of that."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Protocol

from lanewise.compiler.work import describe_work, estimates_roots
from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.frontend.scattered import adds_in_order
from lanewise.frontend.source import Surroundings
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Pattern, Work
from lanewise.language.record import Record
from lanewise.language.target import is_gpu, target_of
from lanewise.language.types import Scalar, scalar_of
from lanewise.launch.arguments import (
    Arguments,
    bind_value_array,
    classify_arguments,
    flatten_uniforms,
    name_arguments,
)
from lanewise.launch.compiled import Tunable
from lanewise.launch.sized import Repeats, Result
from lanewise.launch.support import Uses, bind_record, index_type, uses_of, value_type
from lanewise.launch.task_list import BoundArray
from lanewise.patterns.results import result_arrays, total_type
from lanewise.patterns.words import moved
from lanewise.records.same_elements import are_same
from lanewise.support.errors import ArgumentError

Environment = dict[str, Any]


def _as_it_is(signature: Signature) -> Signature:
    return signature


def _with_arrays(signature: Signature, values: Mapping[str, Any]) -> Arguments:
    return classify_arguments(signature, values, arrays_allowed=True)


KEYWORDS = ("out", "plan", "seconds")  # of calls of every kernel; `seconds` is that of `tune`
CHECKS = "checks"  # of calls of most: test every index before the run
CHECKED_PROGRAM = "LANEWISE_CHECKS"


@cache
def checks_everywhere() -> bool:
    """Whether the environment asks for tests of indices in all calls of a program; it is read
    once.
    """
    match os.environ.get(CHECKED_PROGRAM, ""):
        case "" | "0":
            return False
        case "1":
            return True
        case other:
            raise ArgumentError(
                f"{CHECKED_PROGRAM}={other!r}: wanted 1, for tests of every index, or 0"
            )


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
    from lanewise.facade import layout_advice

    return layout_advice(arguments.records, kernel)


class Division(Enum):
    """How a call over arrays on a mesh is divided among its parts."""

    ROWS = "rows"  # each part has its own rows of every array
    TARGETS = "targets"  # each part has its own rows of the first array, and all of the second


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What a pattern makes of a function of the user's, and what it asks of calls.

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
    scatter to arrays as well. elsewhere: what arguments on the host would be on another device.
    tested: the kernel that tests a call's indices before it runs.
    division: how calls over a mesh are divided; None where they cannot be.
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
    repeats: Callable[[KernelFunction, Arguments], Repeats] | None = None
    total: bool = False
    options: tuple[str, ...] = ()
    prove: Callable[[KernelFunction, Arguments], None] | None = None
    elements: Callable[[Signature], Iterable[str]] | None = None
    scatters: bool = False
    elsewhere: Callable[[Signature, Arguments, str], Arguments] = moved
    tested: Callable[[KernelFunction, Arguments], ir.Kernel] | None = None
    division: Division | None = None

    def results(self, lowered: Lowered, count: int, axes: tuple[int, ...] = ()) -> list[Result]:
        """The arrays of a call's results."""
        if not self.total:
            return [Result(n, kind, count, axes) for n, kind in result_arrays(lowered)]
        return [Result(n, total_type(scalar_of(kind)), 1) for n, kind in result_arrays(lowered)]


class Derived(Protocol):
    """What makes another kernel of a function: its name, its parameters, and the typed function
    that runs instead of the user's.
    """

    @property
    def name(self) -> str: ...
    def signature(self, written: Signature, /) -> Signature: ...
    def lowered(self, written: Signature, lowered: Lowered, /) -> Lowered: ...


class KernelFunction:
    """A function under its skeleton, and what a call of it is made of.

    derived: what another kernel is made of it by. kept: what the kernel makes besides its calls.
    """

    def __init__(
        self, skeleton: Skeleton, function: Callable[..., Any], derived: Derived | None
    ) -> None:
        self.skeleton, self.function, self.derived = skeleton, function, derived
        self.name = function.__name__ if derived is None else derived.name
        self._written: Signature | None = None
        self._signature: Signature | None = None
        self._seen: Surroundings | None = None
        self.begin()

    def begin(self) -> None:
        """Start anew: nothing is typed or kept."""
        self._lowered: Lowered | None = None
        self.kept: dict[Hashable, Any] = {}
        self._works: dict[Hashable, Work] = {}
        self._estimated: bool | None = None

    def changed(self) -> bool:
        """Whether a helper, a constant or a record stands for something else than it did; then it
        starts anew.
        """
        if self._seen is None or self._seen.same():
            return False
        self._written = self._signature = self._seen = None
        self.begin()
        return True

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
                rows=self.skeleton.rows,
                threads=self.skeleton.threads,
                tables=self.skeleton.elements is not None,
                pairs=self.skeleton.pattern.over_pairs,
                scatters=self.skeleton.scatters,
            )
            _check_names(signature, self.skeleton.options)
            self._written = self.skeleton.check(signature)
        return self._written

    @property
    def shaped(self) -> Iterable[str]:
        """The parameters that are tables, or scattered to, with which results must not share
        memory.
        """
        return self.signature.arrays if self.skeleton.elements is not None else ()

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` if it contains something that the language does
        not have.
        """
        if self._lowered is None:
            written = self.written
            records = (n for n, kind in written.parameters.items() if isinstance(kind, Record))
            self._seen = Surroundings(written.source)
            lowered = lower_function(
                written,
                mutable=next(records, None) if self.skeleton.in_place else None,
                elements=frozenset(
                    () if self.skeleton.elements is None else self.skeleton.elements(written)
                ),
            )
            self._lowered = (
                lowered if self.derived is None else self.derived.lowered(written, lowered)
            )
        return self._lowered

    @property
    def own_only(self) -> bool:
        """Whether an element reads no fields but its own."""
        return not self.skeleton.pattern.over_pairs and not self.skeleton.pattern.over_items

    def given(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Arguments:
        """The arguments of a call, checked."""
        options = {n: named[n] for n in self.skeleton.options if n in named}
        own = {n: v for n, v in named.items() if n not in options} if options else named
        result = self.skeleton.arguments(
            self.signature, name_arguments(self.signature, arguments, own)
        )
        result.options = options
        if self.skeleton.prove is not None:
            self.skeleton.prove(self, result)
        return result

    def reference(self, arguments: Arguments) -> ir.Kernel:
        """The kernel before any decision about it."""
        return self.skeleton.build(
            self.lowered, self.signature, arguments, index_type(arguments.device)
        )

    def count(self, arguments: Arguments) -> int:
        """How many elements have a result."""
        return next(iter(self.skeleton.counts(self.name, arguments).values()))

    def results(self, arguments: Arguments, axes: tuple[int, ...] = ()) -> list[Result]:
        """The arrays of a call's results. axes: of elements, if there are several."""
        return self.skeleton.results(self.lowered, self.count(arguments), axes)

    def environment(self, arguments: Arguments) -> Environment:
        """Uniform values and counts, by IR name."""
        beyond = {f"{row}.beyond": count for row, count in arguments.beyond.items()}
        return {
            **flatten_uniforms(self.signature, arguments.uniforms),
            **beyond,
            **arguments.lengths,
            **self.skeleton.counts(self.name, arguments),
        }

    def bound(self, arguments: Arguments) -> dict[str, BoundArray]:
        """The arrays of a call, bound to its memory."""
        kinds = self.signature.parameters
        bound = {n: bind_record(r, self.uses(n)) for n, r in arguments.records.items()}
        bound |= {n: bind_value_array(a, value_type(kinds[n])) for n, a in arguments.arrays.items()}
        beside = (arguments.added | arguments.summed).items()
        return bound | {n: bind_value_array(a, kind) for n, (a, kind) in beside}

    def uses(self, name: str) -> Uses:
        """What is used of a record parameter."""
        record = self.signature.parameters[name]
        assert isinstance(record, Record)
        return uses_of(self.lowered, name, record)

    def all_uses(self, arguments: Arguments) -> dict[str, Uses]:
        """What is used of all records of a call, by parameter."""
        return {n: self.uses(n) for n in arguments.records}

    def repeats(self, arguments: Arguments) -> Repeats | None:
        """What calls like one have to be like besides, if anything."""
        repeats = self.skeleton.repeats
        return None if repeats is None else repeats(self, arguments)

    def work(self, arguments: Arguments) -> Work:
        """What default plans ask of a call."""
        # a plan for no elements is as good as one for one
        count = max(1, self.count(arguments))
        pattern = self.skeleton.pattern
        plain = pattern.suggest is None and (
            pattern.describe is None or not is_gpu(arguments.device)
        )
        if adds_in_order(self.signature.source, self.signature.arrays):
            plain = plain and is_gpu(arguments.device)
        if not pattern.over_pairs and plain:
            items = (
                [*self.skeleton.counts(self.name, arguments).values()][-1]
                if pattern.over_items
                else 0
            )
            alike, estimates = self.skeleton.alike(arguments), self._estimates()
            return Work(pattern, count, alike=alike, items=items, estimates=estimates)
        key = self.kind(arguments)
        if key not in self._works:
            reference = self.reference(arguments)
            self._works[key] = describe_work(reference, count, target_of(arguments.device))
        return self._works[key].at(self.environment(arguments), count)

    def _estimates(self) -> bool:
        if self._estimated is None:
            self._estimated = estimates_roots(self.lowered.function.body)
        return self._estimated

    def kind(self, arguments: Arguments) -> Hashable:
        """What a kernel is specialised to, apart from its plan."""
        layouts = tuple((n, r.record, r.layout) for n, r in arguments.records.items())
        return (
            layouts,
            tuple(arguments.arrays),
            pair_of(arguments),
            arguments.variant,
            arguments.device,
        )


def pair_of(arguments: Arguments) -> tuple[str, str, bool] | None:
    """Of two records: their names, and whether their arrays are one."""
    if len(arguments.records) != 2:
        return None
    (first, a), (second, b) = arguments.records.items()
    return first, second, are_same(a, b)
