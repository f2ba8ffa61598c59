"""What tests of ladders share: small problems, options, and functions that are wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import lanewise as lw
from lanewise.ladders.problem import ACCELERATION, FORCE, Problem
from lanewise.ladders.run import Runner
from lanewise.ladders.rung import Options
from lanewise.sims.gravity.physics import Body


@lw.pairwise
def wrong_power(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0)
    d = source.position - target.position
    inverse = 1 / lw.sqrt(lw.dot(d, d) + softening2)
    return source.mass * inverse**2 * d


@lw.pairwise
def slightly_wrong(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0)
    d = source.position - target.position
    inverse = 1 / lw.sqrt(lw.dot(d, d) + softening2)
    return source.mass * inverse**3 * d * 1.0001


@cache
def problem(bodies: int, law: str = "acceleration") -> Problem:
    return Problem(bodies, law=LAWS[law])


def runner(bodies: int = 300, law: str = "acceleration") -> Runner:
    return Runner(Options("cpu", (bodies,), quick=True), problem(bodies, law))


LAWS = {
    "acceleration": ACCELERATION,
    "force": FORCE,
    "wrong power": replace(ACCELERATION, kernel=wrong_power),
    "slightly wrong": replace(ACCELERATION, kernel=slightly_wrong),
}
