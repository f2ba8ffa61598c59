"""Public classes that take keywords alone say so in words of their own."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import lanewise as lw
from lanewise.errors import LanewiseError


def takes_keywords_only(thing: Any) -> bool:
    if not inspect.isclass(thing) or issubclass(thing, BaseException):
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
    first = next(iter(inspect.signature(PUBLIC[name]).parameters))
    for values in ((0.5,), (0.5, 3), (None,)):
        with pytest.raises(LanewiseError, match=rf"^{name} takes .* by name.*{name}\({first}=\.\.\.\)"):
            PUBLIC[name](*values)


@pytest.mark.parametrize("name", PUBLIC)
def test_an_unknown_name_is_refused_in_words(name: str) -> None:
    first = next(iter(inspect.signature(PUBLIC[name]).parameters))
    with pytest.raises(LanewiseError, match=rf"^{name} has no setting '{first}x'; did you mean '{first}'\?"):
        PUBLIC[name](**{f"{first}x": 1})
