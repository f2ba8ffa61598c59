"""Accesses that are adjacent in memory, for all values of the indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.analysis.affine import AffineAccess


@dataclass(frozen=True, slots=True)
class AccessGroup:
    """Accesses of one array whose places are fixed distances apart: those of a stencil. low, high:
    of their constants, per dimension.
    """

    accesses: tuple[AffineAccess, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def footprint(self, box: Mapping[str, int]) -> tuple[int, ...] | None:
        """As `AffineAccess.footprint`, of all of them together."""
        one = self.accesses[0].footprint(box)
        return (
            None
            if one is None
            else tuple(
                n + last - first for n, first, last in zip(one, self.low, self.high, strict=True)
            )
        )


def groups(accesses: tuple[AffineAccess, ...]) -> tuple[AccessGroup, ...]:
    """The affine accesses by array, loops and the way that they move."""
    alike: dict[object, list[AffineAccess]] = {}
    for a in accesses:
        if all(i is not None and not i.scaled for i in a.indices):
            loops = tuple(x.statement for x in a.loops)
            key = (
                a.array,
                a.is_store,
                tuple(map(id, loops)),
                tuple(i.moving for i in a.indices if i is not None),
            )
            alike.setdefault(key, []).append(a)
    return tuple(_group(members) for members in alike.values())


def _group(members: list[AffineAccess]) -> AccessGroup:
    constants = [[i.constant for i in a.indices if i is not None] for a in members]
    columns = list(zip(*constants, strict=True))
    return AccessGroup(tuple(members), tuple(map(min, columns)), tuple(map(max, columns)))
