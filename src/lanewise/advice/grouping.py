"""Hot and cold fields: group what kernels use together and equally often, and split the groups at the width of a load.

The procedure of the Gravit study (section 6): fields of like access frequency form structures, structures wider than a
load are divided, each becomes an array. What the study decides by hand is decided by a cost here: whether two groups
are better as one, and whether a group keeps its fields whole or fills its loads with components.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from lanewise.advice.cost import Access
from lanewise.layouts.base import VECTOR_BYTES, Layout
from lanewise.layouts.soaoas import SoAoAS
from lanewise.record import Leaf

Group = tuple[Leaf, ...]
Score = Callable[[Layout], float]
WORTH = 1e-3  # a merge that gains less changes nothing
WORTH_DIVIDING = 0.02  # a field in two arrays is no view any more: that must pay


def by_frequency(leaves: Sequence[Leaf], accesses: Sequence[Access]) -> list[Group]:
    """Whole fields with the same role in every access, in order of declaration; fields that nobody uses come last."""
    groups: dict[tuple[tuple[bool, bool], ...], list[Leaf]] = {}
    for field in dict.fromkeys(leaf.field for leaf in leaves):
        own = [leaf for leaf in leaves if leaf.field == field]
        names = {leaf.name for leaf in own}
        signature = tuple((not names.isdisjoint(a.read), not names.isdisjoint(a.written)) for a in accesses)
        groups.setdefault(signature, []).extend(own)
    cold = tuple((False, False) for _ in accesses)
    return [tuple(g) for s, g in groups.items() if s != cold] + [tuple(g) for s, g in groups.items() if s == cold]


def hot_cold(leaves: Sequence[Leaf], accesses: Sequence[Access], score: Score) -> SoAoAS:
    """The grouped layout with the least score that merging groups and dividing fields reaches."""
    merged = _merged(by_frequency(leaves, accesses), score)
    pieces = [whole_fields(g) for g in merged]
    for n, group in enumerate(merged):
        trial = [*pieces[:n], by_components(group), *pieces[n + 1 :]]
        if score(layout_of(trial)) < (1 - WORTH_DIVIDING) * score(layout_of(pieces)):
            pieces = trial
    return layout_of(pieces)


def _merged(groups: list[Group], score: Score) -> list[Group]:
    """Join the pair of groups that gains most, until none gains."""
    while len(groups) > 1:
        now = score(layout_of([whole_fields(g) for g in groups]))
        trials = [_join(groups, a, b) for a, b in combinations(range(len(groups)), 2)]
        best = min(trials, key=lambda t: score(layout_of([whole_fields(g) for g in t])))
        if score(layout_of([whole_fields(g) for g in best])) >= (1 - WORTH) * now:
            break
        groups = best
    return groups


def _join(groups: list[Group], a: int, b: int) -> list[Group]:
    return [*groups[:a], groups[a] + groups[b], *groups[a + 1 : b], *groups[b + 1 :]]


def whole_fields(group: Group) -> list[Group]:
    """First fit of whole fields, of one size, into loads of at most 16 bytes."""
    pieces: list[list[Leaf]] = []
    for field in dict.fromkeys(leaf.field for leaf in group):
        own = [leaf for leaf in group if leaf.field == field]
        for piece in pieces:
            if piece[0].type == own[0].type and _nbytes(piece) + _nbytes(own) <= VECTOR_BYTES:
                piece.extend(own)
                break
        else:
            pieces.append(own)
    return [tuple(p) for p in pieces]


def by_components(group: Group) -> list[Group]:
    """Loads of 16 bytes, then 8, then single values, of one type each and without padding."""
    pieces: list[Group] = []
    for kind in dict.fromkeys(leaf.type for leaf in group):
        left = [leaf for leaf in group if leaf.type == kind]
        while left:
            lanes = max(n for n in (1, 2, 4) if n == 1 or (n <= len(left) and n * kind.size <= VECTOR_BYTES))
            pieces.append(tuple(left[:lanes]))
            left = left[lanes:]
    return pieces


def layout_of(pieces: Sequence[Sequence[Group]]) -> SoAoAS:
    """The layout whose structures are these pieces; fields that are whole are named as fields."""
    flat = [piece for group in pieces for piece in group]
    sizes: dict[str, int] = {}
    for leaf in (leaf for piece in flat for leaf in piece):
        sizes[leaf.field] = sizes.get(leaf.field, 0) + 1
    return SoAoAS([_names(piece, sizes) for piece in flat])


def _names(piece: Group, sizes: dict[str, int]) -> list[str]:
    names: list[str] = []
    for leaf in piece:
        whole = sum(x.field == leaf.field for x in piece) == sizes[leaf.field]
        names.append(leaf.field if whole else leaf.name)
    return list(dict.fromkeys(names))


def _nbytes(piece: Sequence[Leaf]) -> int:
    return sum(leaf.type.size for leaf in piece)
