"""What has no gradient is refused, with its place, what was found, what is wanted and what to do."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests import corpus_kernels as corpus
from tests.corpus import CASES

HEAD = """import lanewise as lw

@lw.record
class Ion:
    position: lw.vec2
    rank: lw.i32
    bound: lw.bool
    charge: lw.f32

"""
PAIR = """@lw.pairwise
def energy(target: Ion, source: Ion, number: lw.i32, scale: lw.f32) -> lw.f32:
    d = source.position - target.position
    close = target.rank == source.rank and source.bound
    return scale * lw.f32(number) / (lw.dot(d, d) + 1.0) if close else 0.0

"""
CASES_OF_NAMES = {
    "a field of integers": ("target.rank", PAIR),
    "booleans of both": ("bound", PAIR),
    "an integer for all": ("number", PAIR),
    "not a name": (3, PAIR),
    "no name": ((), PAIR),
    "a name twice": (("scale", "scale"), PAIR),
    "a misspelt name": ("target.positon", PAIR),
    "a component": ("source.position.x", PAIR),
    "a component of a number": ("rank.x", PAIR),
    "a component of both": ("position.x", PAIR),
    "a record": ("target", PAIR),
    "what is not read": ("source.charge", PAIR),
    "results of integers": (
        "position",
        "@lw.pairwise\ndef energy(target: Ion, source: Ion) -> lw.i32:\n    return lw.i32(source.position.x > target.position.x)\n",
    ),
    "a record in place": (
        "position",
        "@lw.elementwise\ndef energy(ion: Ion, dt: lw.f32):\n    ion.position += ion.charge * dt\n",
    ),
    "two records of one elementwise function": (
        "charge",
        "@lw.elementwise\ndef energy(a: Ion, b: Ion) -> lw.f32:\n    return a.charge * b.charge\n",
    ),
    "a parameter called cotangent": (
        "x",
        "@lw.elementwise\ndef energy(x: lw.f32, cotangent: lw.f32) -> lw.f32:\n    return x * cotangent\n",
    ),
    "the smallest of all pairs": (
        "position",
        "@lw.pairwise\ndef energy(target: Ion, source: Ion) -> tuple[lw.f32, lw.Min[lw.f32]]:\n    return source.position.x, target.position.x\n",
    ),
    "the three smallest": (
        "position",
        "@lw.pairwise\ndef energy(target: Ion, source: Ion) -> lw.KMin[lw.f32, 3]:\n    return source.position.x - target.position.x\n",
    ),
    "a table": (
        "position",
        "@lw.pairwise\ndef energy(target: Ion, source: Ion, weights: lw.Array2[lw.f32]) -> lw.f32:\n"
        "    weight = weights[target.rank, source.rank]\n    return weight * source.position.x\n",
    ),
    "a table that is interpolated": (
        "x",
        '@lw.elementwise\ndef energy(x: lw.f32, law: lw.Array1[lw.f32]) -> lw.f32:\n    return x * lw.interpolate(law, x, edge="clamp")\n',
    ),
    "with respect to a table": (
        "law",
        "@lw.elementwise\ndef energy(x: lw.f32, i: lw.i32, law: lw.Array1[lw.f32]) -> lw.f32:\n    return x * law[i] if i > 0 else x\n",
    ),
    "the length of a table": (
        "x",
        "@lw.elementwise\ndef energy(x: lw.f32, law: lw.Array1[lw.f32]) -> lw.f32:\n    return x * lw.f32(len(law))\n",
    ),
    "an index of an element": (
        "charge",
        "@lw.elementwise\ndef energy(ion: Ion) -> lw.f32:\n    return ion.charge * lw.f32(lw.index_of(ion))\n",
    ),
    "an index of a source": (
        "charge",
        "@lw.pairwise\ndef energy(target: Ion, source: Ion) -> lw.f32:\n    if lw.index_of(source) == target.rank:\n        return source.charge\n    return 0.0\n",
    ),
    "another pattern": (
        "x",
        "@lw.threadwise\ndef energy(i: lw.index, x: lw.Array1[lw.f32]):\n    x[i] = 2.0 * x[i]\n",
    ),
}


def kernel_of(source: str, directory: Path) -> Any:
    path = directory / "ions.py"
    path.write_text(HEAD + source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("ions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.energy


def test_names(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    texts: list[str] = []
    for number, (what, (wrt, source)) in enumerate(CASES_OF_NAMES.items()):
        directory = tmp_path / str(number)
        directory.mkdir()
        with pytest.raises((lw.ArgumentError, lw.CompileError)) as error:
            kernel_of(source, directory).gradient(wrt=wrt)
        texts.append(f"# {what}\n{str(error.value).replace(f'{directory}/', '')}\n")
    golden("names", "\n".join(texts))


@lw.pairwise
def placed(target: corpus.DBody, source: corpus.DBody) -> lw.f64:
    """Depends on where the source is, not only on the difference."""
    d = source.position - target.position
    return source.position.x * lw.dot(d, d)


def test_calls(golden: Callable[[str, str], None]) -> None:
    rng = np.random.default_rng(1)
    fields = CASES[0].fill(rng, 5)
    a, b = corpus.Body.array(**fields), corpus.Body.array(**fields)
    d = corpus.DBody.array(position=rng.random((5, 3)), mass=np.ones(5))
    potential, nearest = corpus.gravity_potential, corpus.gravity.using(lw.Nearest(k=3))
    ones = np.ones(5, "f4")
    periodic = placed.using(lw.Neighbors(radius=0.4, world=lw.Periodic((1.0, 1.0, 1.0))))
    calls: dict[str, Callable[[], Any]] = {
        "two arrays, a field of both": lambda: corpus.gravity.gradient(wrt="position")(a, b, 0.1),
        "a missing argument": lambda: corpus.gravity.gradient(wrt="position")(a, a),
        "no array of records": lambda: corpus.gravity.gradient(wrt="position")(a, ones, 0.1),
        "cotangents of another shape": lambda: corpus.gravity.gradient(wrt="position")(
            a, a, 0.1, cotangent=np.ones(4, "f4")
        ),
        "one cotangent for two results": lambda: potential.gradient(wrt="position")(a, a, 0.1, cotangent=ones),
        "a cotangent of a boolean": lambda: corpus.saxpy_norm.gradient(wrt="a")(
            2.0, np.ones((5, 3)), np.ones((5, 3)), cotangent=(ones, ones)
        ),
        "sources of the nearest": lambda: nearest.gradient(wrt="source.position")(a, b, 0.1),
        "positions themselves in a periodic world": lambda: periodic.gradient(wrt="position")(d, d),
        "two kernels to compile": lambda: corpus.gravity.gradient(wrt=("target.position", "source.mass")).compile(
            a, b, 0.1
        ),
    }
    texts: list[str] = []
    for what, call in calls.items():
        with pytest.raises(lw.ArgumentError) as error:
            call()
        texts.append(f"# {what}\n{error.value}\n")
    golden("calls", "\n".join(texts))


def test_assignments_are_refused() -> None:
    gradient = corpus.gravity.gradient(wrt="position")
    with pytest.raises(AttributeError):
        gradient.wrt = ("mass",)


def test_the_gradient_of_a_gradient() -> None:
    @lw.elementwise
    def square(x: lw.f32) -> lw.f32:
        return x * x

    for gradient, wrt in ((square.gradient("x"), "x"), (corpus.gravity.gradient("position"), "position")):
        with pytest.raises(
            lw.ArgumentError, match=r"\.gradient: there are no second derivatives; write the first one as"
        ):
            gradient.gradient(wrt)
