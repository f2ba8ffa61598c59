"""SoAoAS: a structure of arrays of aligned structures. The leaves are grouped, each group is an array of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lanewise.errors import RecordError
from lanewise.layouts.base import VECTOR_BYTES, Arrangement, Buffer, Layout, Slot, place_structure
from lanewise.record import Leaf

Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, init=False)
class SoAoAS(Layout):
    """Groups of fields, each padded to 4, 8 or 16 bytes and loaded as one vector, each in an array of its own.

    `groups` names the fields of every group, for example `(("position", "mass"), ("velocity",))`; fields not named
    follow in groups of their own. Without it fields are packed in order of declaration, a vector field never divided,
    into groups of at most 16 bytes.
    """

    groups: Groups

    def __init__(self, groups: Iterable[Iterable[str]] = ()) -> None:
        named = tuple((group,) if isinstance(group, str) else tuple(group) for group in groups)
        if not all(named):
            raise RecordError("SoAoAS got an empty group; a group names at least one field")
        object.__setattr__(self, "groups", named)

    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        slots: list[Slot] = []
        buffers: list[Buffer] = []
        for group in self.grouped(leaves):
            name = "_".join(dict.fromkeys(leaf.field for leaf in group))
            size = sum(leaf.type.size for leaf in group)
            align = next((a for a in (1, 2, 4, 8) if size <= a), VECTOR_BYTES)
            placed, buffer = place_structure(name, group, len(buffers), align=max(align, *(x.type.size for x in group)))
            slots += placed
            buffers.append(buffer)
        return Arrangement(tuple(slots), tuple(buffers))

    def grouped(self, leaves: Sequence[Leaf]) -> list[list[Leaf]]:
        """The leaves of each group, in order."""
        by_field: dict[str, list[Leaf]] = {}
        for leaf in leaves:
            by_field.setdefault(leaf.field, []).append(leaf)
        groups: list[list[Leaf]] = []
        for names in self.groups:
            if unknown := [n for n in names if n not in by_field]:
                raise RecordError(
                    f"SoAoAS names a field {unknown[0]!r} that is missing or named twice; left are {', '.join(by_field) or 'none'}"
                )
            if len(set(names)) < len(names):
                raise RecordError(f"SoAoAS names a field twice in the group {' '.join(names)}")
            groups.append([leaf for name in names for leaf in by_field.pop(name)])
        return groups + _pack(list(by_field.values()))

    def __str__(self) -> str:
        return f"SoAoAS({' | '.join(' '.join(g) for g in self.groups)})" if self.groups else "SoAoAS"


def _pack(fields: list[list[Leaf]]) -> list[list[Leaf]]:
    """First fit of whole fields into groups of one scalar size and at most 16 bytes."""
    groups: list[list[Leaf]] = []
    for field in fields:
        size = field[0].type.size
        for group in groups:
            if group[0].type.size == size and (len(group) + len(field)) * size <= VECTOR_BYTES:
                group.extend(field)
                break
        else:
            groups.append(list(field))
    return groups
