"""The example of Vicsek's model: ordered with little noise, disordered with much, as published; and it is short."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "vicsek.py"
MODEL = ("make_model",)
LINES = 24


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(EXAMPLE)])
        return runpy.run_path(str(EXAMPLE), run_name="vicsek")


@pytest.mark.parametrize("dimension", [2, 3])
def test_order_and_disorder(example: dict[str, Any], dimension: int) -> None:
    order_after = example["order_after"]
    assert order_after(dimension, 0.1, 300, 200) > 0.9
    assert 0.3 < order_after(dimension, 3.0, 300, 200) < 0.9
    assert order_after(dimension, 2 * np.pi, 300, 200) < 0.2


def test_turns_are_even(example: dict[str, Any]) -> None:
    """Headings of a lone flock turn by up to half the noise, as often by little as by much, and in every direction."""
    for dimension in (2, 3):
        record, _, move = example["make_model"](dimension, 10.0)
        count, noise = 20_000, 3.0
        heading = np.zeros((count, dimension))
        heading[:, 0] = 1.0
        numbers = np.arange(count, dtype=np.uint32)
        flock = record.array(position=np.full((count, dimension), 9.99), heading=heading, number=numbers)
        move(flock, heading.astype(np.float32), 5, noise)
        np.testing.assert_allclose(np.linalg.norm(flock.heading, axis=1), 1, rtol=1e-5)
        angle = np.arccos(np.clip(flock.heading[:, 0], -1, 1))
        assert angle.max() <= noise / 2 + 1e-3
        found, _ = np.histogram(angle, 10, (0, noise / 2))
        assert np.abs(found / count - 0.1).max() < 0.012  # five standard deviations
        aside = flock.heading[:, 1:] / np.linalg.norm(flock.heading[:, 1:], axis=1, keepdims=True)
        assert np.abs(aside.mean(axis=0)).max() < 0.035
        np.testing.assert_allclose((aside**2).mean(axis=0), 1 / (dimension - 1), atol=0.02)
        assert (flock.position >= 0).all()
        assert (flock.position < 10).all()


def test_the_model_is_short() -> None:
    source = EXAMPLE.read_text(encoding="utf-8")
    functions = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
    assert {f.name for f in functions} >= set(MODEL)
    lines = source.splitlines()
    count = 0
    for f in functions:
        if f.name in MODEL:
            first = min([f.lineno, *(d.lineno for d in f.decorator_list)]) - 1
            text = [x.strip() for x in lines[first : f.end_lineno]]
            count += sum(bool(x) and not x.startswith(("#", '"""')) for x in text)
    assert count < LINES
