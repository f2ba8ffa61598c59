"""Helpers, constants and records that stand for something else than they did, as notebook cells leave them."""

from __future__ import annotations

import enum
import linecache
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime import compiling
from lanewise.support.errors import ArgumentError, CompileError


class Notebook:
    """Cells that run one after the other in one namespace, and whose source can be read as IPython's can."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {
            "__name__": "notebook",
            "lw": lw,
            "math": math,
            "SimpleNamespace": SimpleNamespace,
            "enum": enum,
        }
        self.count = 0

    def run(self, text: str) -> None:
        self.count += 1
        name = f"<cell {id(self)} {self.count}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec", dont_inherit=True), self.names)

    def __getattr__(self, name: str) -> Any:
        return self.names[name]


RECORD = "@lw.record\nclass Body:\n    x: lw.f32\n"
CHANGES = {
    "a helper": ("@lw.function\ndef f(x): return 2 * x", "f(b.x)", "@lw.function\ndef f(x): return 3 * x"),
    "a helper of a helper": (
        "@lw.function\ndef g(x): return 2 * x\n@lw.function\ndef f(x): return g(x)", "f(b.x)",
        "@lw.function\ndef g(x): return 3 * x",
    ),
    "a constant of a helper": ("K = 2.0\n@lw.function\ndef f(x): return K * x", "f(b.x)", "K = 3.0"),
    "a constant": ("K = 2.0", "K * b.x", "K = 3.0"),
    "a type of a constant": ("K = 2", "lw.f32(K // 4 * 4 + K / 2 + 1) * b.x", "K = 3.0\n"),
    "a member of a class": ("class C:\n    k = 2.0", "C.k * b.x", "C.k = 3.0"),
    "a class": ("class C:\n    k = 2.0", "C.k * b.x", "class C:\n    k = 3.0"),
    "a member of a namespace": ("c = SimpleNamespace(d=SimpleNamespace(k=2))", "c.d.k * b.x", "c.d.k = 3"),
    "an enumeration": (
        "class E(enum.IntEnum):\n    k = 2", "E.k * b.x", "class E(enum.IntEnum):\n    k = 3",
    ),
    "a tuple": ("T = (1, 2)", "T[1] * b.x", "T = (1, 3)"),
    "an alias of a module's function": ("f = lw.floor", "(f(b.x + 0.5) + b.x)", "f = lw.ceil"),
    "a builtin": ("", "min(b.x, 2 * b.x) * 2", "@lw.function\ndef min(a, b): return a + b / 4"),
}  # fmt: skip


@pytest.fixture(params=CHANGES, ids=lambda name: name.replace(" ", "_"))
def change(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    return CHANGES[request.param]


def kernels(expression: str) -> str:
    return f"""
@lw.elementwise
def one(b: Body) -> lw.f32:
    return {expression}

@lw.pairwise
def pair(b: Body, s: Body) -> lw.f32:
    return {expression}

@lw.pairwise(search=lw.Neighbors(radius=2.0, position="place"))
def near(b: Place, s: Place) -> lw.f32:
    return {expression.replace("b.x", "b.place.x")}
"""


PLACE = "@lw.record\nclass Place:\n    place: lw.vec2\n"


def test_the_next_call_has_the_new_one(change: tuple[str, str, str]) -> None:
    before, expression, after = change
    book = Notebook()
    book.run(RECORD + PLACE)
    if before:
        book.run(before)
    book.run(kernels(expression))
    bodies = book.Body.array(x=[1.0, 2.0], device="python")
    places = book.Place.array(place=[[1.0, 0.0], [2.0, 0.0]], device="python")
    calls: list[Callable[[], Any]] = [
        lambda: book.one(bodies), lambda: book.pair(bodies, bodies), lambda: book.near(places, places),
        lambda: book.one.compile(bodies)(bodies), lambda: book.one.bind(bodies)(), lambda: book.one.sum(bodies),
    ]  # fmt: skip
    bound = book.one.bind(bodies)
    old = [np.array(call()) for call in calls]
    book.run(after)
    new = [np.array(call()) for call in calls]
    for o, n in zip(old, new, strict=True):
        assert not np.array_equal(o, n)
    fresh = Notebook()
    fresh.names |= {n: v for n, v in book.names.items() if n not in ("one", "pair", "near")}
    fresh.run(kernels(expression))
    book = fresh
    assert all(np.array_equal(n, call()) for n, call in zip(new, calls, strict=True))
    assert np.array_equal(bound(), old[0])  # a bound call stays what it is


def test_closures_are_watched_too() -> None:
    def make() -> tuple[Any, Callable[[float], None]]:
        k = 2.0

        @lw.elementwise
        def scaled(b: Row) -> lw.f32:
            return k * b.x

        def change(value: float) -> None:
            nonlocal k
            k = value

        return scaled, change

    scaled, change = make()
    rows = Row.array(x=[1.0, 2.0], device="python")  # type: ignore[attr-defined]
    assert scaled(rows).tolist() == [2, 4]
    change(3.0)
    assert scaled(rows).tolist() == [3, 6]


@lw.record
class Row:
    x: lw.f32


def test_what_is_as_it_was_is_not_compiled_again() -> None:
    book = Notebook()
    helper = "K = 2.5\n@lw.function\ndef f(x): return K * x"
    book.run(RECORD + PLACE)
    book.run(helper)
    book.run(kernels("f(b.x)"))
    bodies = book.Body.array(x=[1.0, 2.0])
    book.one(bodies)
    lowered, count = book.one.lowered, compiling.count()
    book.run("K = 2.5; unused = 3")
    book.one(bodies)
    assert book.one.lowered is lowered
    book.run(helper)  # the cell runs again: another function, of the same text
    book.run(RECORD)
    assert book.one(bodies).tolist() == [2.5, 5.0]
    assert book.one(book.Body.array(x=[1.0, 2.0])).tolist() == [2.5, 5.0]
    assert book.one.lowered is not lowered
    assert compiling.count() == count


def test_an_error_of_the_new_one_is_told_and_can_be_mended() -> None:
    book = Notebook()
    book.run(RECORD + PLACE)
    book.run("K = 2.0")
    book.run(kernels("K * b.x"))
    bodies = book.Body.array(x=[1.0], device="python")
    assert book.one(bodies).tolist() == [2]
    book.run("K = 'two'")
    with pytest.raises(CompileError):
        book.one(bodies)
    book.run("K = 4.0")
    assert book.one(bodies).tolist() == [4]


def test_an_array_of_a_redefined_record_says_what_to_do() -> None:
    book = Notebook()
    book.run(RECORD + PLACE)
    book.run(kernels("b.x"))
    book.one(book.Body.array(x=[1.0], device="python"))
    book.run(RECORD + "    y: lw.f32\n")
    with pytest.raises(ArgumentError) as error:
        book.one(book.Body.zeros(2, device="python"))
    assert str(error.value) == (
        "one: 'b' must be an array of Body, found an array of another Body: its record is Body(x: f32, y: f32), and that of the Body "
        "that this kernel was made with Body(x: f32); run the kernel's cell again"
    )
    book.run(kernels("b.x"))
    assert book.one(book.Body.zeros(2, device="python")).tolist() == [0, 0]


def test_functions_of_sites_are_watched() -> None:
    book = Notebook()
    book.run("K = 2.0")
    book.run("""
@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations):
    f[0] = f[0] * K

def first(f: lw.populations) -> lw.f32:
    return K * f[0]
""")
    sites = book.flow.sites((4, 4), device="python")
    look = book.flow.observer(book.first)
    book.flow.set_populations(sites, np.ones((9, 4, 4), "f4"))
    book.flow(sites)
    assert look(sites).max() == 4.0
    book.run("K = 3.0")
    assert look(sites).max() == 6.0
    book.flow(sites)
    assert book.flow.populations(sites)[0].max() == 6.0
