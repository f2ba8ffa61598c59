"""Which indices of functions of sites into tables are proved to be inside, and which are tested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lanewise.frontend.function import Lowered
from lanewise.language import types as t
from lanewise.passes.index_tests import Guards, guards_of, testing
from lanewise.patterns.sitewise.builder import Update
from lanewise.patterns.sitewise.call_kinds import SiteKinds
from lanewise.patterns.sitewise.function import SiteFunction
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_sites import AnySites
from lanewise.patterns.sitewise.values import SiteValues
from lanewise.patterns.skeleton import checks_everywhere
from lanewise.patterns.tables.arguments import check_countable, table_lengths
from lanewise.patterns.tables.ranges import places_reached, refuse, refuse_checks


def prove(
    sites: Sites, values: SiteValues, functions: tuple[SiteFunction, ...]
) -> dict[SiteFunction, Guards]:
    """The tests that the indices of functions into tables need.

    Raises `ArgumentError` for those that surely are outside.
    """
    numbers = {
        n: int(v)
        for n, v in values.environment.items()
        if isinstance(v, (int, np.integer)) and not isinstance(v, bool)
    }
    tests: dict[SiteFunction, Guards] = {}
    for f in functions:
        lowered = f.update.lowered
        lengths = {n: int(values.environment[n]) for n in table_lengths(f.tables)}
        counts = dict.fromkeys(f.elements, sites.count)
        if lowered.numbered:
            check_countable(f.name, counts)
        places = places_reached(lowered, f.tables, counts, numbers)
        # Sites of one kind are not all sites: what all of them would read, none of these may.
        alone = len(sites.present) < 2 and len(functions) == 1
        refuse(
            f.name,
            places if alone else tuple(r for r in places if r.span[0] == r.span[1]),
            lengths,
        )
        tests[f] = guards_of(places)
    return tests


def prove_all(
    kinds: SiteKinds, sites: Sites, values: SiteValues, functions: tuple[SiteFunction, ...]
) -> None:
    """`prove` for the functions of all kinds, and for what writes the fields that they read."""
    prove(sites, values, functions)
    for writer in kinds.writers(dict(values.fields_of)):
        prove(sites, values, (writer,))


def asks_for_tests(kinds: SiteKinds, sites: AnySites, checks: bool) -> bool:
    """Whether a call asks for tests of indices; raises `ArgumentError` where it has no
    tables.
    """
    everywhere = checks is False and checks_everywhere()
    if checks is False and not everywhere:
        return False  # as nearly always: the functions need not be gone through
    known: Any = sites
    functions = kinds.functions_of(known) if isinstance(known, Sites) else ()
    tables = [n for f in functions for n in f.tables]
    return bool(tables) if everywhere else refuse_checks(kinds.name, {"checks": checks}, tables)


def only(
    functions: tuple[SiteFunction, ...], tested: SiteFunction, lowered: Lowered
) -> tuple[Update, ...]:
    """The updates of all functions, of which one is what tests its indices, and the others test
    nothing: each failure is one of that function.
    """
    return tuple(
        replace(o.update, lowered=lowered if o is tested else _untested(o.update.lowered))
        for o in functions
    )


def _untested(lowered: Lowered) -> Lowered:
    """A function that finds no index outside."""
    nothing = testing(replace(lowered.function, body=()), (), {}, frozenset())
    return replace(lowered, function=replace(nothing, parameters=()), results=(t.I64,), numbered=())
