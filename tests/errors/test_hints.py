"""Hints are right: names that are elsewhere exist there, and a proposed annotation is the one that compiles."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.elsewhere import ELSEWHERE


class Body(lw.Record):
    position: lw.vec3
    mass: lw.f32
    kind: lw.i32


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_that_are_elsewhere_are_there(name: str) -> None:
    with pytest.raises(AttributeError) as missing:
        getattr(lw, name)
    assert str(missing.value) == f"module 'lanewise' has no attribute {name!r}; use {ELSEWHERE[name]}"
    for module, there in re.findall(r"\b(math|lw)\.(\w+)", ELSEWHERE[name]):
        assert hasattr({"math": math, "lw": lw}[module], there)


def test_names_that_are_alike_are_proposed() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'sqt'; did you mean 'sqrt'\?$"):
        lw.sqt  # pyright: ignore[reportAttributeAccessIssue]  # noqa: B018
    assert not hasattr(lw, "__wrapped__")


def mass(target: Body, source: Body):
    return source.mass * 2


def away(target: Body, source: Body):
    d = source.position - target.position
    if lw.same(target, source):
        return d
    return d * lw.rsqrt(lw.dot(d, d))


def both(target: Body, source: Body):
    return source.kind, source.position


def wide(target: Body, source: Body):
    return lw.f64(source.mass)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (mass, "lw.f32"),
        (away, "lw.vec3"),
        (both, "tuple[lw.i32, lw.vec3]"),
        (wide, "lw.f64"),
    ],
)
def test_the_annotation_that_is_proposed_compiles(function: Callable[..., Any], kind: str) -> None:
    bodies = Body.array(position=np.eye(3), mass=1.0, kind=[1, 2, 3])
    with pytest.raises(lw.CompileError) as lacking:
        lw.pairwise(function)(bodies, bodies)
    assert str(lacking.value).splitlines()[-1] == f"  wanted: -> {kind}"
    function.__annotations__["return"] = eval(kind)
    try:
        lw.pairwise(function)(bodies, bodies)
    finally:
        del function.__annotations__["return"]


def test_a_function_with_another_mistake_is_given_an_example() -> None:
    def wrong(target: Body, source: Body):  # pyright: ignore[reportUnknownParameterType]
        return lw.erfinv(source.mass)  # pyright: ignore[reportAttributeAccessIssue]

    bodies = Body.array(position=np.eye(3), mass=1.0, kind=[1, 2, 3])
    with pytest.raises(lw.CompileError, match=r"wanted: -> lw\.f32 \(or another type\)$"):
        lw.pairwise(wrong)(bodies, bodies)
