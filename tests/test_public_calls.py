"""The table of public calls has everything that is public, and its calls are good."""

from __future__ import annotations

import traceback

import pytest

from lanewise.support.errors import PACKAGE, InputError, LanewiseError
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


# ------------------------------------------------------------ what a traceback shows

PLAIN = (
    "Record", "Record.row", "device", "function", "max", "min", "record", "sum", "window", "boids.Boundary", "boids.State",
    "dvec", "ivec", "vec", "drandom", "normal", "random", "scatter_", "unit_vector", "lbm.Units.", "boids.Boid", "gravity.Body",
    "obstacles.", "pairwise", "lbm.Units",
)  # fmt: skip
"""How names begin of records, units, and functions of kernels that run as plain Python: their own few frames are shown."""
WRONG: tuple[object, ...] = (object(), -1, "nonsense", [1, "x"], 3.5, None)


def frames_of(error: BaseException) -> list[str]:
    """The functions of lanewise in a traceback."""
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__)]
    return [f.f_code.co_qualname for f in frames if f.f_code.co_filename.startswith(PACKAGE)]


def longest_of(name: str) -> list[str]:
    """The most frames of lanewise in the errors of calls with one wrong argument."""
    longest: list[str] = []
    _, given, known = CALLS[name]()
    for place in (*range(len(given)), *known):
        for wrong in WRONG:
            function, arguments, named = CALLS[name]()
            if isinstance(place, int):
                arguments[place] = wrong
            else:
                named[place] = wrong
            try:
                function(*arguments, **named)
            except LanewiseError as error:
                longest = max(longest, frames_of(error), key=len)
            except Exception:  # Python's own
                pass
    return longest


@pytest.mark.filterwarnings("ignore")
def test_errors_show_one_frame_of_lanewise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [n for n in CALLS if not n.startswith((*COMPILING, *PLAIN)) and n not in ABSENT]
    assert {n: f for n in names if len(f := longest_of(n)) > 1} == {}
