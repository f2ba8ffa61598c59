"""How tests are run on the second of two GPUs: who is helped to compute where an array lies, and what is left out.
Needs no GPU.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import second_gpu
from tests.second_gpu import CHOSEN, LEFT_OUT, Function, Library, Noted, asked_by_lanewise, lead_to_their_arrays

ROOT = Path(__file__).parent.parent
HERE: list[str] = []
"""Where the stand-ins below compute."""


class Base:
    """A stand-in for CuPy's arrays, whose results say where they were computed."""

    size = 3

    def sum(self) -> str:
        return HERE[-1] if HERE else "current"

    def __add__(self, other: Any) -> str:
        return HERE[-1] if HERE else "current"

    def __hash__(self) -> int:
        return 1

    def _inner(self) -> str:
        return self.sum()


class Array(Base):
    pass


@contextmanager
def there(arguments: Iterable[Any]) -> Generator[None]:
    HERE.append("there" if any(isinstance(x, Base) for x in arguments) else "second")
    try:
        yield
    finally:
        HERE.pop()


lead_to_their_arrays(Array, there)


def of_lanewise(text: str, **names: Any) -> Any:
    """The value of an expression in a module of lanewise."""
    return eval(text, {"__name__": "lanewise.stand_in", **names})


def test_arrays_compute_where_they_lie_for_tests_alone() -> None:
    a = Array()
    assert a.sum() == a + 1 == "there"
    assert of_lanewise("a.sum()", a=a) == of_lanewise("a + 1", a=a) == "current"
    assert of_lanewise("f()", f=lambda: a + 1) == "there"  # a function of a test that lanewise calls
    assert (Array.__hash__, Array._inner, Array.size) == (Base.__hash__, Base._inner, 3)


def test_functions_compute_where_their_arrays_lie_for_tests_alone() -> None:
    def zeros(*arguments: Any) -> str:
        return HERE[-1] if HERE else "current"

    zeros.at = lambda *arguments: zeros()  # type: ignore[attr-defined]
    library = Library(type("cupy", (), {"zeros": staticmethod(zeros), "ndarray": Array, "pi": 3}), there)
    assert isinstance(library.zeros, Function)
    assert (library.ndarray, library.pi) == (Array, 3)
    assert (library.zeros(3), library.zeros(Array()), library.zeros.at(Array())) == ("second", "there", "there")
    assert of_lanewise("zeros(3)", zeros=library.zeros) == "current"


def test_who_asks() -> None:
    assert not asked_by_lanewise()
    assert of_lanewise("asked()", asked=asked_by_lanewise)
    assert not of_lanewise("f()", f=lambda: asked_by_lanewise())


def test_chosen_gpus_are_known_while_their_blocks_last() -> None:
    def fails() -> None:
        with Noted(there(()), 0):
            assert CHOSEN.numbers == [1, 0]
            raise ArithmeticError

    with Noted(there(()), 1):
        with pytest.raises(ArithmeticError):
            fails()
        assert CHOSEN.numbers == [1]
    assert CHOSEN.numbers == []


def test_the_names_are_swapped() -> None:
    numbers = [second_gpu.number_of(n) for n in ("cuda", "cuda:1", "cuda:2")]
    assert numbers == [1, 0, 2]
    assert [second_gpu.name_of(n) for n in numbers] == ["cuda", "cuda:1", "cuda:2"]


def test_what_is_left_out_exists() -> None:
    for name in LEFT_OUT:
        path, _, test = name.partition("::")
        assert re.search(rf"^def {test.partition('[')[0]}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
