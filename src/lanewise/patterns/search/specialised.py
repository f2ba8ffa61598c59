"""What a call over a search is before anything is compiled: its structure, and the reference kernel
that walks through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of
from lanewise.language.record import Leaf, Record
from lanewise.language.types import Scalar
from lanewise.launch.arguments import Arguments, flatten_uniforms
from lanewise.launch.support import index_type, value_type
from lanewise.layouts import SoAoAS
from lanewise.patterns.search.base import RADIUS2, Search, Structure, Walked, radius2, reach
from lanewise.patterns.search.build import (
    SearchArguments,
    Side,
    build_search,
    inverse_period,
    period,
)
from lanewise.patterns.search.checked_positions import CheckedPositions, Places, check_positions
from lanewise.patterns.search.picker import Picked, SearchPicker
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tree.arguments import TreeArguments
from lanewise.patterns.search.tree.call import FarFields
from lanewise.patterns.search.tree.choice import TreeChoice
from lanewise.patterns.search.tree.search import Tree
from lanewise.patterns.search.tree.structure import TreeStructure
from lanewise.patterns.search.tuning.job import Choice
from lanewise.patterns.search.worlds import Periodic
from lanewise.planning.plan import Plan
from lanewise.records.arrays import RecordArray
from lanewise.records.same_elements import are_same, shared_elements


@dataclass(frozen=True, slots=True)
class Specialised:
    """A call that is ready to be compiled.

    copied: what the sorted copies hold, by parameter; nothing where elements stay in their own
    order. far: the kernels of a tree.
    """

    classified: Arguments
    picked: Picked
    places: Points
    sources: Points
    structure: Structure
    arguments: SearchArguments | TreeArguments
    reference: ir.Kernel
    copied: Mapping[str, tuple[Leaf, ...]]
    environment: dict[str, Any]
    far: FarFields | None

    @property
    def described(self) -> str:
        """The structure, and why it is this one."""
        return f"{self.structure.describe()} ({self.picked.why})"


class Specialiser:
    """What the calls of one kernel over a search are.

    adopted: called when later calls get what was tuned. far: the kernels of far fields, of a tree.
    search: with every number that was left open.
    """

    def __init__(
        self,
        name: str,
        signature: Signature,
        lowered: Lowered,
        search: Search,
        adopted: Callable[[], None],
    ) -> None:
        self.name, self.signature, self.lowered = name, signature, lowered
        precision, axes = check_positions(signature, search.position)
        if (sight := search.sees) is not None:
            target = next(iter(signature.parameters.values()))
            assert isinstance(target, Record)
            place = [x for x in target.leaves if x.field == search.position]
            sight.leaves(name, target.leaves, place)
        self._axes, self._fars = axes, dict[tuple[Any, ...], FarFields]()
        self.far = FarFields(signature, lowered, search, axes) if isinstance(search, Tree) else None
        self.search = search = search if self.far is None else self.far.search
        self.positions = CheckedPositions(
            name,
            search.position,
            search.world,
            reach(search, precision, axes),
            () if self.far is None else self.far.weights,
        )
        self.picker = SearchPicker(
            name, search, self.reference, partial(flatten_uniforms, signature), adopted
        )
        # by what they are specialised to: quicker than by themselves
        self._references: dict[tuple[SearchArguments | TreeArguments, Scalar], ir.Kernel] = {}

    def specialise(
        self,
        classified: Arguments,
        requested: Plan | None,
        choice: Choice | TreeChoice | None = None,
        points: Places | None = None,
    ) -> Specialised:
        """points: those of targets and sources, where they are checked already."""
        places, sources = self.positions.of(classified.records) if points is None else points
        picked = self.picker.pick(classified, sources, requested, choice)
        structure = picked.search.structure(places, sources)
        return self.over(classified, picked, (places, sources), structure)

    def over(
        self, classified: Arguments, picked: Picked, points: Places, structure: Structure
    ) -> Specialised:
        """A call over this structure."""
        (places, sources), search = points, picked.search
        copied = self._copied(classified, structure)
        index = index_type(classified.device)
        arguments = self._arguments(classified, search, structure, copied, index)
        far = self._far_of(search)
        return Specialised(
            classified,
            picked,
            places,
            sources,
            structure,
            arguments,
            self._made(arguments, index, far),
            copied,
            self._environment(classified, search, sources, structure),
            far,
        )

    def _far_of(self, search: Search) -> FarFields | None:
        """The kernels of a tree: that which was requested, or another one that was calibrated."""
        if not isinstance(search, Tree) or self.far is None or search == self.search:
            return self.far if isinstance(search, Tree) else None
        sort = search.method, search.terms, search.accuracy is None
        if sort not in self._fars:
            axes = self._axes
            self._fars[sort] = FarFields(self.signature, self.lowered, search, axes)
        return self._fars[sort]

    def dealt(self, s: Specialised, numbers: Mapping[str, Any]) -> Specialised:
        """The same call over a tree, which walks for some of the groups. numbers: say which."""
        assert isinstance(s.arguments, TreeArguments)
        arguments = replace(s.arguments, dealt=True)
        made = self._made(arguments, index_type(s.classified.device), s.far)
        environment = s.environment | dict(numbers)
        return replace(s, arguments=arguments, reference=made, environment=environment)

    def elsewhere(self, arguments: Arguments, device: str, *, recalled: bool) -> Specialised:
        """A call of these arguments, which lie on the host, as it is on another device. recalled:
        as tune() found it there.
        """
        places, sources = points = self.positions.of(arguments.records)
        there = replace(arguments, device=device)
        picked = self.picker.pick(there, sources, None, None, recalled=recalled)
        s = self.over(arguments, picked, points, picked.search.structure(places, sources))
        classified, index = replace(arguments, device=device), index_type(device)
        made = self._arguments(classified, s.picked.search, s.structure, s.copied, index)
        return replace(
            s, classified=classified, arguments=made, reference=self._made(made, index, s.far)
        )

    def reference(
        self,
        arguments: Arguments,
        search: Search,
        structure: Structure,
        copied: tuple[Leaf, ...],
        index: Scalar,
    ) -> ir.Kernel:
        """The kernel before any decision about it. `copied`: what the sorted copy of the sources
        holds, if there is one.
        """
        sorted_source = {next(reversed(arguments.records)): copied} if copied else {}
        made = self._arguments(arguments, search, structure, sorted_source, index)
        return self._made(made, index, self._far_of(search))

    def copied(self, arguments: Arguments) -> tuple[Leaf, ...]:
        """The leaves that the kernel reads of sources (and of targets that are the same array), the
        position first.
        """
        (target_name, target), (source_name, source) = arguments.records.items()
        names = [source_name, *([target_name] if are_same(target, source) else [])]
        return self._read(source, names)

    def _copied(self, arguments: Arguments, structure: Structure) -> dict[str, tuple[Leaf, ...]]:
        """What is read of the elements that are put in order, by parameter."""
        target_name, source_name = arguments.records
        copied: dict[str, tuple[Leaf, ...]] = {}
        if structure.ordered:
            copied[source_name] = self.copied(arguments)
        if structure.targets_ordered:
            copied[target_name] = self._read(arguments.records[target_name], [target_name])
        return copied

    def _read(self, array: RecordArray, names: Sequence[str]) -> tuple[Leaf, ...]:
        """The leaves of an array that the function reads as one of these parameters, behind those
        of its position.
        """
        used, leaves = {p.name for p in self.lowered.function.parameters}, array.record.leaves
        place = [x for x in leaves if x.field == self.search.position]
        rest = (x for x in leaves if any(f"{n}.{x.name}" in used for n in names))
        looks: tuple[Leaf, ...] = ()
        target = next(iter(self.signature.parameters))
        if (sight := self.search.sees) is not None and target in names:
            looks = sight.leaves(self.name, leaves, place)
        return tuple(dict.fromkeys((*place, *rest, *looks)))

    def _environment(
        self, arguments: Arguments, search: Search, sources: Points, structure: Structure
    ) -> dict[str, Any]:
        real = sources.precision.dtype.type
        values: dict[str, Any] = {count_of(n): len(r) for n, r in arguments.records.items()}
        values |= flatten_uniforms(self.signature, arguments.uniforms) | arguments.lengths
        values[RADIUS2] = radius2(search, sources.precision)
        if (sight := search.sees) is not None and search.radius is not None:
            values |= sight.values(sources.precision, search.radius)
        if isinstance(search.world, Periodic):
            for axis, size in enumerate(search.world.size):
                values |= {period(axis): real(size), inverse_period(axis): real(1 / size)}
        return values | dict(structure.uniforms)

    def _made(
        self, arguments: SearchArguments | TreeArguments, index: Scalar, far: FarFields | None
    ) -> ir.Kernel:
        if (arguments, index) not in self._references:
            if isinstance(arguments, TreeArguments):
                assert far is not None
                made = far.walk(arguments, index)
            else:
                made = build_search(self.lowered, arguments, index)
            self._references[arguments, index] = made
        return self._references[arguments, index]

    def _arguments(
        self,
        arguments: Arguments,
        search: Search,
        structure: Structure,
        copied: Mapping[str, tuple[Leaf, ...]],
        index: Scalar,
    ) -> SearchArguments | TreeArguments:
        (target_name, target), (source_name, source) = arguments.records.items()
        identical, ordered = are_same(target, source), structure.ordered
        sides = {n: Side(n, r.record.leaves, r.layout) for n, r in arguments.records.items()}
        for n, leaves in copied.items():
            sides[n] = Side(n, leaves, SoAoAS())
        if ordered and identical:
            sides[target_name] = Side(target_name, copied[source_name], SoAoAS())
        uniforms = tuple((n, value_type(self.signature.parameters[n])) for n in arguments.uniforms)
        place = tuple(x for x in source.record.leaves if x.field == search.position)
        parts = shared_elements(target, source) is not None
        if isinstance(structure, TreeStructure):
            both, far = (sides[target_name], sides[source_name]), self._far_of(search)
            assert far is not None
            order, leaf = structure.terms, structure.shape.leaf
            return TreeArguments(
                *both,
                uniforms,
                place,
                identical,
                order,
                leaf,
                far.group(index, place[0].type),
                parts=parts,
                estimated=structure.accuracy is not None,
                pairs=structure.pairs,
            )
        assert isinstance(structure, Walked)
        sight = search.sees
        return SearchArguments(
            sides[target_name],
            sides[source_name],
            uniforms,
            place,
            structure.walk(index),
            identical,
            ordered,
            search.radius is not None,
            isinstance(search.world, Periodic),
            search.k,
            tuple(self.signature.arrays.items()),
            parts,
            () if sight is None else sight.leaves(self.name, target.record.leaves, place),
        )
