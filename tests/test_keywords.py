"""Public classes that take keywords alone say so in words of their own."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.lbm import obstacles
from lanewise.support.errors import LanewiseError


def takes_keywords_only(thing: Any) -> bool:
    if not inspect.isclass(thing) or issubclass(thing, BaseException) or inspect.isabstract(thing):
        return False
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return False
    return bool(parameters) and all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters)


PUBLIC = {n: v for n in dir(lw) if not n.startswith("_") and takes_keywords_only(v := getattr(lw, n))}


def test_they_are_found() -> None:
    assert {"Neighbors", "Nearest", "AllPairs", "StaticGrid", "DynamicGrid", "Plan"} <= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_value_without_a_name_is_refused_in_words(name: str) -> None:
    """With settings that the class takes these values for, if there are some; else with the names of all."""
    names = list(inspect.signature(PUBLIC[name]).parameters)
    for values in VALUES:
        wanted = proposed(name, values)
        able = math.perm(len(names), len(values)) <= 1000 and any(
            taken(name, n, values) for n in itertools.permutations(names, len(values))
        )
        assert bool(wanted) == able, (values, wanted)
        if wanted:
            assert [v for _, v in wanted] == [repr(v) for v in values]
            assert taken(name, [n for n, _ in wanted], values)


VALUES: list[tuple[Any, ...]] = [
    (0.5,), (3,), (None,), (True,), ("position",), (-1,), (float("nan"),), (0,), (2**40,), ([],), (0.5, 3), (0.6, 4), (4, 0.6),
    (0.6, None), (0.5, 3, 2), (0.6, 4, "position"), ("position", 4, 0.6), (0.6, 4, 0.1, 16), tuple(range(1, 9)), (1,) * 40,
]  # fmt: skip


def proposed(name: str, values: tuple[Any, ...]) -> list[list[str]]:
    """Names and values of what an error proposes; none where it lists the settings instead."""
    with pytest.raises(LanewiseError, match=rf"^{name} takes all arguments by name; found ") as error:
        PUBLIC[name](*values)
    ends = re.fullmatch(r".*?; (wanted|its settings are) (.*)", str(error.value))
    assert ends, error.value
    if ends[1] == "wanted":
        return [w.split("=") for w in ends[2].split(", ")]
    assert ends[2].split(", ") == list(inspect.signature(PUBLIC[name]).parameters)
    return []


def taken(name: str, names: Sequence[str], values: tuple[Any, ...]) -> bool:
    try:
        PUBLIC[name](**dict(zip(names, values, strict=True)))
    except Exception:
        return False
    return True


PROPOSED = {
    "Tree": "theta=0.6, order=4", "StaticGrid": "radius=0.6, k=4", "CellArray": "radius=0.6, k=4", "NeighborLists": "radius=0.6, skin=4", "DynamicGrid": "radius=0.6, k=4",
    "AllPairs": "radius=0.6, k=4", "Nearest": "radius=0.6, k=4",
}  # fmt: skip


@pytest.mark.parametrize("name", PROPOSED)
def test_searches_propose_what_they_take(name: str) -> None:
    assert ", ".join("=".join(w) for w in proposed(name, (0.6, 4))) == PROPOSED[name]
    assert proposed("Nearest", (3,)) == [["k", "3"]]
    assert proposed("Tree", (0.5,)) == [["theta", "0.5"]]


@pytest.mark.parametrize("name", PUBLIC)
def test_an_unknown_name_is_refused_in_words(name: str) -> None:
    first = next(iter(inspect.signature(PUBLIC[name]).parameters))
    with pytest.raises(LanewiseError, match=rf"^{name} has no setting '{first}x'; did you mean '{first}'\?"):
        PUBLIC[name](**{f"{first}x": 1})


@pytest.mark.parametrize("name", PUBLIC)
def test_only_settings_are_listed(name: str) -> None:
    with pytest.raises(
        LanewiseError, match=f"its settings are {', '.join(inspect.signature(PUBLIC[name]).parameters)}$"
    ):
        PUBLIC[name](zzzzzz=1)


def settings(thing: Any) -> tuple[int, list[str]]:
    """How many values may come without a name, and which ones come by name alone."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return 0, []
    kinds = [p.kind for p in parameters]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return 0, []
    named = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    return len(kinds) - len(named) - (inspect.Parameter.VAR_KEYWORD in kinds), named


def calls_with_settings() -> dict[str, Any]:
    """Public functions, classes and methods that take something by name alone."""
    found: dict[str, Any] = {}
    for name in dir(lw):
        thing = getattr(lw, name)
        if name.startswith("_") or not callable(thing):
            continue
        if not inspect.isclass(thing):
            found[name] = thing
        elif not issubclass(thing, (BaseException, Enum)) and not inspect.isabstract(thing):
            found[name] = thing
            methods = ((n, getattr(thing, n)) for n in vars(thing) if not n.startswith("_"))
            found |= {f"{name}.{n}": m for n, m in methods if inspect.isroutine(m)}
    found |= {"record.zeros": Thing.zeros}
    return {n: f for n, f in found.items() if settings(f)[1]}


class Thing(lw.Record):
    x: lw.f32


SETTINGS = calls_with_settings()


def test_calls_with_settings_are_found() -> None:
    wanted = {
        "nearest",
        "neighbors",
        "save",
        "load",
        "ragged",
        "cumsum",
        "histogram",
        "Population",
        "pairwise",
        "Profile.span",
    }
    assert wanted <= set(SETTINGS)
    assert {"Population.apply", "RecordArray.zeros", "record.zeros", "choose_layout", "Sitewise.sites"} <= set(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_without_its_name_is_refused_in_words(name: str) -> None:
    count, named = settings(SETTINGS[name])
    for more in (1, 3):
        with pytest.raises(LanewiseError, match=f"{named[0]}") as caught:
            SETTINGS[name](*[None] * (count + more))
        assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("name", SETTINGS)
def test_only_settings_that_take_a_value_are_proposed_for_it(name: str) -> None:
    """By their annotations, where these are alone; nothing is a text and a number and a truth."""
    count, _ = settings(SETTINGS[name])
    plain = {"bool": bool, "int": int, "str": str, "float": (int, float)}
    parameters = inspect.signature(SETTINGS[name]).parameters
    for value in (1e-4, "a text", True):
        with pytest.raises(LanewiseError) as refused:
            SETTINGS[name](*[None] * count, value)
        asked = re.search(rf"; wanted (\w+)={re.escape(repr(value))}$", str(refused.value))
        kind = None if asked is None else plain.get(str(parameters[asked[1]].annotation))
        assert kind is None or isinstance(value, kind)
        assert kind is not int or value is not True


INTRINSICS = [n for n in dir(lw) if hasattr(getattr(lw, n), "__lanewise_intrinsic__") and n not in ("min", "max")]


@pytest.mark.parametrize("name", INTRINSICS)
def test_functions_of_numbers_have_their_number_of_arguments(name: str) -> None:
    """One more is no array to write to, as NumPy's functions have it."""
    function = getattr(lw, name)
    works = [n for n in range(5) if not refused(function, [np.full(3, 0.5)] * n)]
    assert len(works) == 1
    assert works[0] > 0
    kept = np.full(3, 7.0)
    with pytest.raises(LanewiseError, match=rf"^lw\.{name} takes {works[0]} arguments?, found {works[0] + 1}$"):
        function(*[np.full(3, 0.5)] * works[0], kept)
    assert kept.tolist() == [7.0] * 3


def refused(function: Any, arguments: list[Any]) -> bool:
    try:
        function(*arguments)
    except LanewiseError:
        return True
    return False


def test_other_wrong_arguments_have_errors_of_their_own() -> None:
    table = np.arange(4.0)
    for edge in (np.array(["clamp", "zero"]), np.zeros((2, 2)), ["clamp"], None):
        with pytest.raises(LanewiseError, match=r"^lw\.interpolate\(edge=.*wanted one of 'clamp'"):
            lw.interpolate(table, 1.0, edge=edge)  # pyright: ignore[reportArgumentType]
    with pytest.raises(LanewiseError, match=r"^lw\.interpolate: the table is not an array of numbers"):
        lw.interpolate([[1.0, 2.0], [3.0]], 1.0)
    people = lw.Population(Numbered.array(id=np.arange(3)), ids="id")
    for kernel in (float, int, Thing, 0.5, None):
        with pytest.raises(LanewiseError, match=r"^a population takes a kernel, found"):
            people.step(kernel)  # pyright: ignore[reportArgumentType]


class Numbered(lw.Record):
    id: lw.i64


class Disc(lw.Record):
    centre: lw.vec2
    radius: lw.f32


@lw.elementwise
def area(disc: Disc, scale: lw.f32) -> lw.f32:
    return scale * lw.pi * disc.radius**2


MISSPELLED: dict[str, tuple[Any, type[Exception], str]] = {
    "a function": (
        lambda: obstacles.disc((9, 9), center=(4, 4), radius=2),
        TypeError,
        "disc.* 'center'; did you mean 'centre'?",
    ),
    "a method": (
        lambda: area.bind(Disc.zeros(2), scael=1.0),
        lw.ArgumentError,
        "no parameter 'scael'.*; did you mean 'scale'?",
    ),
    "fields of an array": (
        lambda: Disc.array(center=(0, 0)),
        lw.ArgumentError,
        "its fields are centre, radius; did you mean 'centre'?",
    ),
    "fields of a record": (lambda: Disc(raduis=1), AttributeError, "no field 'raduis'.*; did you mean 'radius'?"),
    "a field": (lambda: Disc.zeros(2).center, AttributeError, "no field 'center'.*; did you mean 'centre'?"),
    "a function of arrays": (
        lambda: lw.neighbors(np.zeros((3, 3)), radios=1),
        TypeError,
        "'radios'; did you mean 'radius'?",
    ),
}


@pytest.mark.parametrize("what", MISSPELLED)
def test_a_misspelled_name_is_told_the_one_that_it_is_like(what: str) -> None:
    attempt, error, text = MISSPELLED[what]
    with pytest.raises(error, match=text.replace("?", r"\?")):
        attempt()


def test_a_name_like_none_has_the_words_of_python() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'nothing'$"):
        obstacles.disc((9, 9), (4, 4), 2, nothing=1)
