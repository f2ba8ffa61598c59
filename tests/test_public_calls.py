"""The table of public calls has everything that is public, and its calls are good."""

from __future__ import annotations

import pytest

from lanewise.support.errors import InputError
from tests.public_calls import ABSENT, CALLS, COMPILING, EXEMPT, SLOW, public_names


def test_nothing_public_is_missing_from_the_table():
    named = {*CALLS, *SLOW, *EXEMPT}
    assert [n for n in public_names() if n not in named] == []
    assert [n for n in EXEMPT if n not in public_names()] == []


def call(name: str) -> None:
    function, arguments, named = {**CALLS, **SLOW}[name]()
    if name in ABSENT:
        with pytest.raises(InputError, match="no such file"):
            function(*arguments, **named)
        return
    function(*arguments, **named)


def test_its_calls_are_good():
    for name in CALLS:
        if not name.startswith(COMPILING):
            call(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(n for n in CALLS if n.startswith(COMPILING)), *SLOW])
def test_its_slow_calls_are_good(name):
    call(name)
