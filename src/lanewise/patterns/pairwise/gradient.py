"""The gradient of sums over pairs: pairwise kernels again.

    E_i = sum_j f(a_i, b_j, u),  L = sum_i c_i E_i dL/da_i = sum_j c_i df/da(a_i, b_j)        over
    targets, as E itself dL/db_j = sum_i c_i df/db(a_i, b_j)        the same with the roles
    exchanged: a sum for every source over all targets dL/du   = sum_i sum_j c_i df/du(a_i, b_j)  a
    sum for every target, and their total
Where targets and sources are one array, both roles of an element are added up in one kernel, over
the same pairs. The cotangents c are a field of the targets: of a copy of the fields that the
gradient reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from lanewise.derivatives.gradient import Cotangents, Gradient, GradientValue, gradient
from lanewise.frontend.function import Lowered, Signature
from lanewise.language import types as t
from lanewise.language.record import Field, Record
from lanewise.launch.arguments import name_arguments
from lanewise.launch.sized import Result
from lanewise.patterns.elementwise.totals import sum_
from lanewise.patterns.gradients import (
    AbstractGradient,
    Places,
    by_place,
    cotangent_kinds,
    derived_function,
    gradient_name,
    modes,
)
from lanewise.patterns.pairwise.cotangents import Cotangent
from lanewise.patterns.pairwise.gradient_checks import check_exchange, check_target, pair_of_records
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search import AllPairs, Search
from lanewise.patterns.variables import cotangent_leaves, cotangents_of
from lanewise.planning.plan import Plan
from lanewise.records.arrays import RecordArray
from lanewise.records.same_elements import are_same, shared_elements
from lanewise.runtime.memory import Need
from lanewise.support.articles import an
from lanewise.support.attributes import sealed
from lanewise.support.errors import ArgumentError, brief


@dataclass(frozen=True, slots=True)
class _Part:
    """A kernel of a gradient, a `Derived`.

    asked: by the place in what the user requested. exchanged: it is summed over targets. weighed:
    the cotangents are fields of the targets.
    identical: targets and sources are one array.
    """

    kernel: str
    asked: Places
    exchanged: bool
    weighed: bool
    identical: bool
    position: str | None  # the field that a search reads

    @property
    def name(self) -> str:
        return gradient_name(self.kernel)

    def gradient(self, written: Signature, lowered: Lowered) -> Gradient:
        """The function that is summed, and how it was made."""
        records = pair_of_records(written)
        none = (None,) * len(lowered.function.results)
        cotangents = Cotangents(cotangent_leaves(lowered) if self.weighed else none)
        return gradient(
            lowered.function, self.name, [a for _, a in self.asked], cotangents, records
        )

    def lowered(self, written: Signature, lowered: Lowered, /) -> Lowered:
        return derived_function(self.gradient(written, lowered).function, self.asked)

    def signature(self, written: Signature, /) -> Signature:
        """The element of a result comes first; where there are cotangents the targets have them as
        fields.
        """
        target, source = pair_of_records(written)
        kinds: dict[str, Record | t.ValueType] = dict(written.parameters)
        if self.weighed:
            kinds[target] = self.weighed_record(written)
            if self.identical:
                kinds[source] = kinds[target]
        if self.exchanged:
            kinds = {source: kinds.pop(source), target: kinds.pop(target)} | kinds
        return replace(
            written, parameters=kinds, results=[a.kind for _, a in self.asked], reductions=()
        )

    def weighed_record(self, written: Signature) -> Record:
        """The targets with their cotangents: all fields of the record that a kernel may read, and
        the cotangents.
        """
        target, _ = pair_of_records(written)
        record = written.parameters[target]
        assert isinstance(record, Record)
        added = tuple(Field(n, k) for n, k in cotangent_kinds(written.results).items())
        return Record(record.name, (*record.fields, *added), record.parts)


@dataclass(frozen=True, slots=True)
class _Made:
    """What a gradient is for one kind of call: its kernels, each with its part."""

    parts: tuple[tuple[_Part, Pairwise], ...]


def _results(made: _Made, target: RecordArray, source: RecordArray) -> Iterator[Need]:
    """The memory of what the kernels give: a row for each target, or for each source."""
    for part, _ in made.parts:
        rows = len(source if part.exchanged else target)
        for _, asked in part.asked:
            yield Need(target.device, Result("", asked.kind, rows).nbytes, f"{rows:,} derivatives")


@sealed()
class PairwiseGradient(AbstractGradient[Pairwise]):
    """The derivative of the sum over all targets i of cotangent_i * E_i, where E is what the kernel
    returns.

    It is called with the arguments of the kernel, and `cotangent=`, an array like the kernel's
    result (a tuple of them for several results, None for one that does not count; without it every
    cotangent is 1). The result is an array like the field with one row for each
    element: for "target.position" one for each target, for "source.position" one for each source. A
    name without a record, such as "position", is the field of the records that the function reads
    it of; of both only where both are one array, whose elements then count as targets and as
    sources. For a uniform argument the result is a number (or an array of its components), added up
    in float64. Several names give a tuple.
    """

    _classes = "over targets and one over sources"

    def __init__(self, kernel: Pairwise, wrt: str | Iterable[str]) -> None:
        super().__init__(kernel, wrt)
        self._sought.check_words(self._words(), "field or parameter")
        self._sought.variables()

    def __reduce__(self) -> tuple[Any, ...]:
        return pairwise_gradient, (self._kernel, self._sought.wrt)

    def using(self, search: Search) -> PairwiseGradient:
        """The same gradient over another search structure."""
        return pairwise_gradient(self._kernel.using(search), self._sought.wrt)

    # ------------------------------------------------------------ calls

    @brief
    def __call__(
        self, *arguments: Any, cotangent: Any = None, plan: Plan | None = None, **named: Any
    ) -> Any:
        """The derivatives, as the class says."""
        values, made = self._prepared(arguments, named, weighed=cotangent is not None)
        if cotangent is None:
            return self._run(made, values, None, plan)
        target, source = (values[n] for n in self._roles())
        check_target(self._kernel, target)
        parts = shared_elements(target, source) is not None
        try:
            results = _results(made, target, source)
            weighing = self._weighed(made.parts[0][0], target, cotangent, results, parts=parts)
            with weighing as weighed:
                return self._run(made, values, weighed, plan)
        except ArgumentError:
            self._sought.calls.given(arguments, named)  # which says what is wrong with targets
            raise

    def _run(
        self, made: _Made, values: dict[str, Any], weighed: RecordArray | None, plan: Plan | None
    ) -> Any:
        """The results of all kernels, in the order of the names."""
        results: dict[int, Any] = {}
        for part, kernel in made.parts:
            outputs = kernel(**self._arguments(part, values, weighed), plan=plan)
            for place, output in by_place(part.asked, outputs).items():
                total = not self._sought.variables()[place].records
                results[place] = sum_(output) if total else output
        return self._sought.ordered(results)

    def mode(self, *arguments: Any, **named: Any) -> str:
        """How the derivatives of such a call are made: "reverse (6 scalar inputs)", or "forward"
        with its reason.
        """
        _, made = self._prepared(arguments, named)
        calls = self._sought.calls
        gradients = [part.gradient(calls.subject.written, calls.lowered) for part, _ in made.parts]
        return modes(gradients)

    # ------------------------------------------------------------ what a call is made of

    def _words(self) -> list[str]:
        parameters = self._kernel.signature.parameters
        return [
            n
            for p, k in parameters.items()
            for n in (p, *([f.name for f in k] if isinstance(k, Record) else []))
        ]

    def _roles(self) -> tuple[str, str]:
        """The parameters that are targets and sources."""
        kept = self._sought.kept()
        if "roles" not in kept:
            kept["roles"] = pair_of_records(self._kernel.signature)
        return kept["roles"]

    def _prepared(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], *, weighed: bool = False
    ) -> tuple[dict[str, Any], _Made]:
        """The arguments by name, and the kernels of such a call, `weighed` by cotangents."""
        values = name_arguments(self._kernel.signature, arguments, named)
        target, source = (values[n] for n in self._roles())
        if not (isinstance(target, RecordArray) and isinstance(source, RecordArray)):
            self._sought.calls.given(arguments, named)  # which says what is wrong
        self._sought.calls.settles(arguments, named)  # before targets are copied as they lie
        identical = are_same(target, source)
        kept, key = self._sought.kept(), ("gradient", self._sought.names, identical, weighed)
        if key not in kept:
            kept[key] = self._made(identical, weighed=weighed)
        return values, kept[key]

    def _weighed(
        self,
        part: _Part,
        target: RecordArray,
        cotangent: Any,
        made: Iterable[Need],
        *,
        parts: bool,
    ) -> AbstractContextManager[RecordArray]:
        """The targets with their cotangents, as long as the context lasts. made: what the call is
        about to allocate besides.
        """
        calls, name, kept = self._sought.calls, self._kernel.__name__, self._sought.kept()
        cotangents = cotangents_of(name, calls.lowered, cotangent)
        if "cotangent" not in kept:
            of_leaf = {x.name: x.field for x in target.record.leaves}
            leaves = (p.name.partition(".")[2] for p in calls.lowered.function.parameters)
            read = {of_leaf[leaf] for leaf in leaves if leaf in of_leaf}
            fields = frozenset(read if part.position is None else {*read, part.position})
            kept["cotangent"] = Cotangent(
                name,
                target.record,
                part.weighed_record(calls.subject.written),
                fields,
                tuple(cotangents),
            )
        return kept["cotangent"].beside(target, cotangents, made, parts=parts)

    def _arguments(
        self, part: _Part, values: dict[str, Any], weighed: RecordArray | None
    ) -> dict[str, Any]:
        if weighed is None:
            return values
        target, source = self._roles()
        return values | {target: weighed} | ({source: weighed} if part.identical else {})

    def _unweighed(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[Pairwise]]:
        values, made = self._prepared(arguments, named)
        return values, [kernel for _, kernel in made.parts]

    def _made(self, identical: bool, *, weighed: bool) -> _Made:
        """The kernels for calls with one array or two."""
        target, source = pair_of_records(self._kernel.signature)
        here: list[tuple[int, GradientValue]] = []
        exchanged: list[tuple[int, GradientValue]] = []
        for place, v in enumerate(self._sought.variables()):
            named = v.name != v.field
            if not v.records:
                here.append((place, GradientValue(v.leaves(), v.kind)))
            elif identical and not named:
                roles = target in v.records, source in v.records
                here.append((place, GradientValue(v.leaves(target), v.kind, *roles)))
            elif len(v.records) > 1:
                raise ArgumentError(
                    f"{self._kernel.__name__}.gradient: targets and sources are two arrays here, "
                    f"and both have {an(v.name)}; "
                    f"wrt={f'{target}.{v.field}'!r} or wrt={f'{source}.{v.field}'!r}"
                )
            elif v.records == (target,):
                here.append((place, GradientValue(v.leaves(target), v.kind)))
            elif identical:  # the same pairs, seen from the source
                here.append(
                    (place, GradientValue(v.leaves(target), v.kind, here=False, there=True))
                )
            else:
                exchanged.append((place, GradientValue(v.leaves(source), v.kind)))
        search = self._kernel.search
        if exchanged or any(a.there for _, a in here):
            check_exchange(self._kernel, search)
        position = None if isinstance(search, AllPairs) and search.is_plain else search.position
        parts = [
            _Part(self._kernel.__name__, tuple(group), other, weighed, identical, position)
            for group, other in ((here, False), (exchanged, True)) if group
        ]  # fmt: skip
        return _Made(tuple((p, Pairwise(self._kernel.python, search, p)) for p in parts))


def pairwise_gradient(kernel: Pairwise, wrt: str | Iterable[str]) -> PairwiseGradient:
    """What `kernel.gradient(wrt)` gives."""
    return PairwiseGradient(kernel, wrt)
