"""SoAoAS: a structure of arrays of aligned structures.

The leaves are grouped, each group is its own array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lanewise.language.record import Leaf
from lanewise.layouts.base import VECTOR_BYTES, Arrangement, Buffer, Layout, Slot, place_structure
from lanewise.support.attributes import frozen
from lanewise.support.checks import shown
from lanewise.support.errors import RecordError
from lanewise.support.kinds import Unfit, listed

Groups = tuple[tuple[str, ...], ...]


@frozen
@dataclass(frozen=True, slots=True, init=False)
class SoAoAS(Layout):
    """Groups of fields, each padded to 4, 8 or 16 bytes and loaded as one vector, each in a
    separate array.

    `groups` names the fields of every group, for example `(("position", "mass"), ("velocity",))`;
    fields not named follow in separate groups. A component such as `"velocity.x"` names a part of a
    field: groups then need no padding, but reading that field gives a copy. Without `groups`,
    fields are packed in order of declaration into groups of at most 16 bytes; vector fields are
    never divided. New arrays on GPUs begin in this layout, until their first call chooses one
    (docs/layouts.md).
    """

    groups: Groups

    def __init__(self, groups: Iterable[Iterable[str]] = ()) -> None:
        try:
            named = tuple(
                (group,) if isinstance(group, str) else listed(group) for group in listed(groups)
            )
        except Unfit:
            named = ((None,),)
        if not all(isinstance(name, str) for group in named for name in group):
            raise RecordError(
                f'SoAoAS({shown(groups)}): wanted groups of names of fields, as in (("position", '
                '"mass"), ("velocity",))'
            )
        if not all(named):
            raise RecordError("SoAoAS got an empty group; a group names at least one field")
        object.__setattr__(self, "groups", named)

    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        slots: list[Slot] = []
        buffers: list[Buffer] = []
        for group in self.grouped(leaves):
            name = _group_name(group, leaves)
            size = sum(leaf.type.size for leaf in group)
            align = next((a for a in (1, 2, 4, 8) if size <= a), VECTOR_BYTES)
            placed, buffer = place_structure(
                name, group, len(buffers), align=max(align, *(x.type.size for x in group))
            )
            slots += placed
            buffers.append(buffer)
        return Arrangement(tuple(slots), tuple(buffers))

    def grouped(self, leaves: Sequence[Leaf]) -> list[list[Leaf]]:
        """The leaves of each group, in order."""
        left = {leaf.name: leaf for leaf in leaves}
        groups: list[list[Leaf]] = []
        for names in self.groups:
            if len(set(names)) < len(names):
                raise RecordError(f"SoAoAS names a field twice in the group {' '.join(names)}")
            groups.append(
                [left.pop(leaf.name) for name in names for leaf in _named(name, left, leaves)]
            )
        by_field: dict[str, list[Leaf]] = {}
        for leaf in left.values():
            by_field.setdefault(leaf.field, []).append(leaf)
        return groups + _pack(list(by_field.values()))

    def __str__(self) -> str:
        return (
            f"SoAoAS({' | '.join(' '.join(g) for g in self.groups)})" if self.groups else "SoAoAS"
        )


def _named(name: str, left: Mapping[str, Leaf], leaves: Sequence[Leaf]) -> list[Leaf]:
    """The leaves of a field, or of all fields of a record within the record, or the one component
    that is meant; raises `RecordError` when one is missing or was taken.
    """
    matches = [leaf for leaf in leaves if leaf.name == name or leaf.name.startswith(f"{name}.")]
    if not matches or any(leaf.name not in left for leaf in matches):
        fields = ", ".join(dict.fromkeys(leaf.field for leaf in left.values())) or "none"
        raise RecordError(
            f"SoAoAS names a field {name!r} that is missing or named twice; left are {fields}"
        )
    return matches


def _group_name(group: Sequence[Leaf], leaves: Sequence[Leaf]) -> str:
    """Its fields, joined; a part of a field carries its components: `velocity.xy`."""
    names: list[str] = []
    for field in dict.fromkeys(leaf.field for leaf in group):
        parts = [leaf.name for leaf in group if leaf.field == field]
        whole = len(parts) == sum(leaf.field == field for leaf in leaves)
        names.append(field if whole else f"{field}.{''.join(p[len(field) + 1 :] for p in parts)}")
    return "_".join(names)


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
