"""The search that a flock flies with: as requested, as tuned, or by rules for where agents are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import lanewise as lw
from lanewise.sims.boids.choice import (
    Chosen,
    check_k,
    collision_search,
    find_search,
    skin_of,
)
from lanewise.sims.boids.parameters import pair_values
from lanewise.sims.boids.placing import world_of
from lanewise.sims.boids.semantics import rules_of
from lanewise.sims.boids.settings import FLAT, Settings
from lanewise.sims.common.searches import picked
from lanewise.support.errors import ArgumentError, InputError

ASKED = "requested"


def choose_search(
    settings: Settings, boids: lw.RecordArray, asked: str | lw.Search | Chosen
) -> Chosen:
    """The search with its own structure, and why it is that one."""
    check_k(settings.k, len(boids), settings.think_every)
    radius, flat = settings.parameters.radius, settings.dimension == FLAT
    if settings.semantics == "seq":
        return Chosen(lw.AllPairs(radius=radius), ASKED)
    wanted = asked.search if isinstance(asked, Chosen) else asked
    world = world_of(settings, skin_of(wanted))
    try:
        search = find_search(wanted, radius, settings.k, world, flat=flat)
        if settings.collide and not isinstance(search, lw.Neighbors | lw.Nearest):
            collision_search(search, settings.parameters.agent_radius)
        if isinstance(search, lw.Neighbors | lw.Nearest):
            return _automatic(settings, boids, search)
    except ArgumentError as error:  # of a search: its arguments come from the user of the flock
        raise InputError(str(error)) from error
    return replace(asked, search=search) if isinstance(asked, Chosen) else Chosen(search, ASKED)


def _automatic(settings: Settings, boids: lw.RecordArray, search: lw.Search) -> Chosen:
    """What was tuned for such a flock, or the choice by rules.

    Who thinks sometimes is not who is measured.
    """
    steer, values = rules_of(settings).steer, pair_values(settings.parameters)
    tuned = settings.think_every == 1
    found = picked(steer, search, boids, boids, tuned=tuned, values=values)
    return Chosen(found.search, found.why, found.plan)


def looks_for(settings: Settings) -> tuple[Any, ...]:
    """What a search follows from."""
    return (
        settings.parameters.radius,
        settings.k,
        settings.world,
        settings.boundary,
        world_of(settings),
    )
