"""Where the elements of a call over a search are: of which type, and which places are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from weakref import WeakKeyDictionary

from lanewise.frontend.function import Signature
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.types import Scalar
from lanewise.patterns.search.points import Points, points_of, read_field
from lanewise.patterns.search.watched import Guard, Look
from lanewise.patterns.search.worlds import Open, World
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.records.field_views import FieldViews
from lanewise.records.same_elements import are_same
from lanewise.support.articles import an

Places = tuple[Points, Points]
"""The positions of the targets and of the sources; one and the same where the arrays are."""


@dataclass(frozen=True, slots=True)
class CheckedPositions:
    """What the calls of a kernel ask of positions.

    name: of the kernel, for errors. field: of both records. reach: the largest coordinate that the
    arithmetic of the search holds. weights: fields of the sources that are summed up in groups,
    where one number that is not finite would be that of all.
    """

    name: str
    field: str
    world: World
    reach: float
    weights: tuple[str, ...] = ()
    # of arrays that are still there: where their coordinates lie is found out once
    _known: WeakKeyDictionary[FieldViews, Points] = dataclass_field(
        default_factory=WeakKeyDictionary[FieldViews, Points], repr=False, compare=False
    )

    def of(self, records: Mapping[str, RecordArray]) -> Places:
        """The positions of targets and sources; raises `ArgumentError` where no search can use
        them.
        """
        target, source = records.values()
        sources = self._points(source)
        places = sources if are_same(target, source) else self._points(target)
        self.check(records, (places, sources))
        return places, sources

    def _points(self, array: RecordArray) -> Points:
        views = places_of(array)
        if (known := self._known.get(views)) is not None:
            read_field(array, self.field)
            return known.again()
        points = self._known[views] = points_of(array, self.field)
        return points

    def check(self, records: Mapping[str, RecordArray], points: Places) -> None:
        """Refuse positions and weights that no search can use."""
        for name, p, world, reach in self._looked_at(records, points):
            p.check(f"{self.name}: {name!r}", world, reach)

    def looks(self, records: Mapping[str, RecordArray], points: Places) -> tuple[Look, ...]:
        """What `check` asks of them."""
        looked = self._looked_at(records, points)
        return tuple((p, p.bounds(world, reach)) for _, p, world, reach in looked if p.count)

    def guards(self, records: Mapping[str, RecordArray], points: Places) -> tuple[Guard, ...]:
        """What looks at the positions and the weights of a bound call each time."""
        return tuple(
            Guard(f"{self.name}: {name!r}", p, world, reach)
            for name, p, world, reach in self._looked_at(records, points)
            if p.count
        )

    def _looked_at(
        self, records: Mapping[str, RecordArray], points: Places
    ) -> list[tuple[str, Points, World, float]]:
        """By parameter, with the bounds of each."""
        _, (name, sources) = records.items()
        weights = [replace(points_of(sources, field), what=field) for field in self.weights]
        return [
            *((n, p, self.world, self.reach) for n, p in _different(records, points)),
            *((name, w, Open(), math.inf) for w in weights),
        ]


def _different(records: Mapping[str, RecordArray], points: Places) -> list[tuple[str, Points]]:
    """Positions by parameter; where the targets are the sources, those of the sources alone."""
    places, sources = points
    return [*zip(records, points, strict=True)][places is sources :]


def moved_since(records: Mapping[str, RecordArray], points: Places) -> bool:
    """Whether records were moved to another layout since their positions were looked at."""
    there = [places_of(array).data for array in records.values()]
    return any(p.data is not data[0] for p, data in zip(points, there, strict=True))


def _is_position(kind: t.ValueType) -> bool:
    return isinstance(kind, t.Vector) and kind.element.is_float and kind.length <= 3


def _elsewhere(record: Record) -> str:
    """A field that could say where an element is, or an example of one."""
    vectors = (f.name for f in record if _is_position(f.type))
    return next(vectors, "place")


def check_positions(signature: Signature, field: str) -> tuple[Scalar, int]:
    """The type of coordinates, and how many axes there are; raises `CompileError` with a caret.

    Both records have the field, with one type, a vector of two or three floats.
    """
    kinds: list[t.Vector] = []
    for argument in signature.source.tree.args.args[:2]:
        record = signature.parameters[argument.arg]
        assert isinstance(record, Record)
        position = record.field(field)
        if position is None:
            raise signature.source.error(
                f"{record.name} has no field {field!r}, which says where an element is",
                argument,
                found=str(record),
                wanted=f"{field}: lw.vec3, or lw.vec2, lw.dvec2, lw.dvec3",
                hint=f"position={_elsewhere(record)!r} of the search names another field",
            )
        if not isinstance(position.type, t.Vector) or not _is_position(position.type):
            raise signature.source.error(
                f"a search needs positions of two or three floats, and {record.name}.{field} is "
                f"{an(position.type)}",
                argument,
                found=f"{field}: {position.type}",
                wanted="lw.vec2, lw.vec3, lw.dvec2 or lw.dvec3",
            )
        kinds.append(position.type)
    if kinds[0] != kinds[1]:
        raise signature.source.error(
            "targets and sources of a search have positions of one type",
            signature.source.tree.args.args[1],
            found=f"{kinds[0]} and {kinds[1]}",
            wanted=f"{kinds[0]} in both records",
        )
    return kinds[0].element, kinds[0].length
