"""What calls take by name belongs to no parameter: functions that give a parameter such a name are refused, whatever the pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import lanewise as lw
from lanewise.patterns.elementwise.kernel import SKELETON
from lanewise.patterns.kernels import kernel_of
from tests.written import module

FUNCTIONS = {
    "elementwise": "@lw.elementwise\ndef f(body: Body, {name}: lw.f32) -> lw.f32:\n    return body.mass * {name}\n",
    "pairwise": "@lw.pairwise\ndef f(target: Body, source: Body, {name}: lw.f32) -> lw.f32:\n    return source.mass * {name}\n",
    "search": "@lw.pairwise(search=lw.Neighbors(radius=1.0))\n"
    "def f(target: Body, source: Body, {name}: lw.f32) -> lw.f32:\n    return source.mass * {name}\n",
    "segmentwise": "@lw.segmentwise\ndef f(item: Body, {name}: lw.f32) -> lw.f32:\n    return item.mass * {name}\n",
    "threadwise": "@lw.threadwise\ndef f(i: lw.index, c: lw.Array1[lw.f32], {name}: lw.f32):\n    c[i] = {name}\n",
    "scattering": "@lw.elementwise\ndef f(body: Body, {name}: lw.Array1[lw.i32]):\n    lw.scatter_add({name}, 0, 1)\n",
}
EVERY = ("out", "plan", "seconds")
OPTIONS = {"segmentwise": (), "threadwise": ("grid", "checks")}
SITES = {
    "sitewise": "@lw.sitewise(lw.D2Q9)\ndef f(g: lw.populations, {name}: lw.f32):\n    g[0] = {name}\n",
    "stencil": "@lw.stencil(lw.D2Q5)\ndef f(u: lw.Field[lw.f32], {name}: lw.f32) -> lw.f32:\n    return u[1] * {name}\n",
}
FIELDS = {
    "sitewise": "@lw.sitewise(lw.D2Q9)\ndef f(g: lw.populations, {name}: lw.Field[lw.f32]):\n    g[0] = {name}[1]\n",
    "stencil": "@lw.stencil(lw.D2Q5)\ndef f({name}: lw.Field[lw.f32]) -> lw.f32:\n    return {name}[1]\n",
    "stencil that reads": "@lw.stencil(lw.D2Q5)\ndef f(u: lw.Field[lw.f32], {name}: lw.Field[lw.f32]) -> lw.f32:\n    return {name}[1]\n",
}


def kernel(text: str, name: str) -> Any:
    return module(text.format(name=name)).f


def refused(act: Callable[[], Any], *parts: str) -> None:
    with pytest.raises(lw.CompileError) as caught:
        act()
    message = str(caught.value)
    assert re.match(r".*\.py:\d+:\d+: ", message)
    for part in (*parts, "^", "wanted: another name"):
        assert part in message


def keywords(pattern: str) -> tuple[str, ...]:
    return (*EVERY, *OPTIONS.get(pattern, ("checks",)))


@pytest.mark.parametrize(("pattern", "name"), [(p, n) for p in FUNCTIONS for n in keywords(p)])
def test_a_parameter_has_no_name_of_a_keyword(pattern: str, name: str) -> None:
    f = kernel(FUNCTIONS[pattern], name)
    refused(lambda: f.signature, f"{name!r} is a keyword of every call", f"  found: {name}: lw.")


@pytest.mark.parametrize("name", keywords("elementwise"))
def test_keywords_of_a_pattern_of_ones_own(name: str) -> None:
    f = kernel_of(SKELETON)(kernel(FUNCTIONS["elementwise"], name).python)
    refused(lambda: f.signature, f"{name!r} is a keyword of every call")


@pytest.mark.parametrize("pattern", [p for p in FUNCTIONS if p != "scattering"])
def test_no_parameter_is_called_self(pattern: str) -> None:
    refused(lambda: kernel(FUNCTIONS[pattern], "self").signature, "'self' is the kernel in every call")


@pytest.mark.parametrize("pattern", SITES)
@pytest.mark.parametrize("name", ["self", "sites", "plan", "checks", "steps", "walls", "weights", "outflow_speed"])
def test_values_of_sites(pattern: str, name: str) -> None:
    f = kernel(SITES[pattern], name)
    refused(
        lambda: f.sites((2, 2)), f"{name!r} is an argument of the call itself", "  found: a value of that name of f"
    )


@pytest.mark.parametrize("name", ["shape", "mask", "edges", "storage", "layout", "device"])
def test_fields_that_sites_begin_with(name: str) -> None:
    refused(
        lambda: kernel(FIELDS["stencil"], name).sites((2, 2)),
        f"{name!r} is an argument of sites()",
        "  found: a field of that name of f",
    )
    # One that is only read begins with nothing.
    assert kernel(FIELDS["stencil that reads"], name).sites((2, 2)).count == 4


@pytest.mark.parametrize(
    ("pattern", "name"), [(p, n) for p in FIELDS for n in ("number", "name")] + [("sitewise", "velocity")]
)
def test_fields_that_walls_have_values_of(pattern: str, name: str) -> None:
    refused(lambda: kernel(FIELDS[pattern], name).sites((2, 2)), f"{name!r} is an argument of wall()")


def test_a_wall_of_a_stencil_does_not_move() -> None:
    f = kernel(FIELDS["stencil"], "velocity")
    f.wall(1, "floor", velocity="speed")
    assert f.sites((2, 2)).count == 4


def test_what_a_call_does_not_take_is_a_name() -> None:
    """Segmentwise calls test no indices, and elementwise ones have no grid."""
    assert kernel(FUNCTIONS["segmentwise"], "checks").signature.names == ["item", "checks"]
    assert kernel(FUNCTIONS["elementwise"], "grid").signature.names == ["body", "grid"]


def test_the_message() -> None:
    text = "@lw.elementwise\ndef f(x: lw.f32, checks: lw.bool) -> lw.f32:\n    return x if checks else -x\n"
    with pytest.raises(lw.CompileError) as caught:
        module(text).f([1.0], checks=False)
    assert str(caught.value) == (
        "kernels.py:2:18: 'checks' is a keyword of every call\n"
        "    def f(x: lw.f32, checks: lw.bool) -> lw.f32:\n                     ^^^^^^^^^^^^^^^\n"
        "  found: checks: lw.bool\n  wanted: another name"
    )
