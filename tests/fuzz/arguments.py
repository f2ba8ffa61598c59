"""Good calls of everything public, with one or two arguments replaced by what does not belong there.

A call works, or ends in an error of lanewise's own; nothing else. Python's AttributeError and IndexError are right
where a field or a row is not there.
"""

from __future__ import annotations

import contextlib
import datetime
import fractions
import warnings
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.support.errors import LanewiseError
from tests.fuzz.campaign import Campaign, Case
from tests.pickled_kernels import Grain, attract, grow
from tests.public_calls import CALLS, COMPILING, SLOW, folder


class Hostile:
    """Whose every method raises."""

    def _fail(self, *arguments: Any, **named: Any) -> Any:
        raise RuntimeError("hostile")

    __array__ = __len__ = __iter__ = __index__ = __float__ = __int__ = __eq__ = __lt__ = __getitem__ = __dlpack__ = (
        _fail
    )
    __bool__ = __contains__ = __call__ = __fspath__ = __add__ = __radd__ = __mul__ = __rmul__ = _fail
    __hash__ = object.__hash__


class Unspeakable(Hostile):
    """Whose text raises, too."""

    __repr__ = __str__ = Hostile._fail


class Pretender:
    """It says that it is an array, of a GPU."""

    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (0, False), "version": 3}  # noqa: RUF012


class Endless:
    """It has a length, and no elements."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        raise KeyError(index)


@lw.record
class Other:
    a: lw.f32


def function_without_types(x):
    return x


POOL: list[Callable[[], Any]] = [
    lambda: None, lambda: float("nan"), lambda: float("inf"), lambda: -float("inf"), lambda: -1, lambda: 0, lambda: 2**70, lambda: -(10**400),
    lambda: 0.5, lambda: 1e300, lambda: -0.0, lambda: True, lambda: 1j, lambda: "", lambda: "text", lambda: "position", lambda: b"bytes",
    lambda: bytearray(3), lambda: [], lambda: (), lambda: {}, lambda: set(), lambda: {"a": 1}, lambda: {1: "a"}, lambda: [1, "a"],
    lambda: [[1, 2], [3]], lambda: [None], lambda: ["a", "b"], lambda: [float("nan")] * 3, lambda: range(3), lambda: frozenset({1}),
    lambda: iter([1, 2, 3]), lambda: (x for x in (1, "a")), lambda: np.zeros(0), lambda: np.zeros((2, 2, 2, 2)), lambda: np.full(6, np.nan),
    lambda: np.array("text"), lambda: np.array(["a", "b"]), lambda: np.array([None, 1]), lambda: np.array(5), lambda: np.array(5.5),
    lambda: np.zeros(6, complex), lambda: np.zeros(6, "M8[s]"), lambda: np.zeros(6, [("a", "f4")]), lambda: np.zeros((6, 3), ">f8"),
    lambda: np.zeros(6, "f2"), lambda: np.ones((6, 3)) * 1e300, lambda: np.ma.masked_array(np.ones(6), mask=[1, 0, 0, 0, 0, 0]),
    lambda: np.float32(3), lambda: np.int64(-(2**62)), lambda: np.bool_(True), lambda: np.datetime64("2026-01-01"), Hostile, Unspeakable,
    Pretender, Endless, object, lambda: object, lambda: int, lambda: len, lambda: np, lambda: function_without_types, lambda: lambda x: x,
    lambda: Other.zeros(3), lambda: Grain.zeros(2), lambda: Grain, lambda: Grain(mass=1), lambda: grow, lambda: attract,
    lambda: lw.f32, lambda: lw.vec3, lambda: lw.vec3(1, 2, 3), lambda: lw.D3Q19, lambda: lw.Plan(tile=3), lambda: lw.AoSoA, lambda: lw.SoAoAS(),
    lambda: lw.AllPairs(k=1), lambda: lw.Periodic((1, 1)), lambda: lw.Open, lambda: lw.Profile(), lambda: "cuda", lambda: "cuda:99",
    lambda: fractions.Fraction(1, 3), lambda: datetime.datetime(2026, 1, 1), lambda: ValueError("error"), lambda: NotImplemented,
    lambda: Ellipsis, lambda: slice(3), lambda: memoryview(b"abc"), lambda: "/no/such/folder/file.csv", lambda: "/", lambda: "~",
]  # fmt: skip

# Python's own protocol: a field or a row that is not there.
PROTOCOL = dict.fromkeys(
    [
        "RecordArray.row",
        "RecordArray.part",
        "RecordArray.mask",
        "RecordArray.assigned",
        "Ragged.row",
        "RaggedArray.list",
    ],
    IndexError,
)


def places(name: str) -> list[int | str]:
    """Of the arguments of a call of this name: numbers and names."""
    _, arguments, named = {**CALLS, **SLOW}[name]()
    return [*range(len(arguments)), *named]


def try_call(name: str, random: Random) -> tuple[str, str]:
    """`call_with` for one or two arguments at random."""
    there = places(name)
    chosen = random.sample(there, min(len(there), random.choice((1, 1, 1, 2))))
    return call_with(name, {place: random.randrange(len(POOL)) for place in chosen})


def call_with(name: str, chosen: Mapping[int | str, int]) -> tuple[str, str]:
    """The outcome of a call of this name with arguments of these numbers of the pool, and a text that shows it; raises
    what no user should see.
    """
    function, arguments, named = {**CALLS, **SLOW}[name]()
    shown: list[str] = []
    for place, number in chosen.items():
        value = POOL[number]()
        if (place in ("callback", "report") or (name, place) == ("Population.step", 0)) and callable(value):
            continue  # what it raises is the user's
        target: Any = arguments if isinstance(place, int) else named
        target[place] = value
        shown.append(f"{place}=POOL[{number}]")
    text = f"{name}({', '.join(shown)})"
    try:
        with warnings.catch_warnings(), contextlib.chdir(folder()):  # where names of files may be written
            warnings.simplefilter("ignore")
            function(*arguments, **named)
    except LanewiseError as error:
        if not str(error).strip():
            raise AssertionError(f"{text}: an error without words") from error
        return type(error).__name__, text
    except PROTOCOL.get(name, ()):
        return "protocol", text
    except Exception as error:
        error.add_note(text)
        raise
    return "works", text


def body(case: Case) -> str:
    return _body(case, [*CALLS, *SLOW])


def quick_body(case: Case) -> str:
    """Without what compiles the kernels of a product first."""
    return _body(case, [n for n in CALLS if not n.startswith(COMPILING)])


def _body(case: Case, names: list[str]) -> str:
    name = case.random.choice(names)
    case.shown = name
    outcome, case.shown = try_call(name, case.random)
    case.counts[name.partition(".")[0]] += 1
    return outcome


ARGUMENTS = Campaign("arguments", body, limit=120.0, renew=2000, memory=0)
QUICK = Campaign("arguments-quick", quick_body, limit=60.0, renew=500, memory=0)
