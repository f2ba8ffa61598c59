"""The report of the zoo's bench says which share of the kernels meets each target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw

pytest.importorskip("bench.zoo", reason="benches are not installed")
from bench.zoo import report
from bench.zoo_predictions import report as report_of_predictions
from bench.zoo_predictions import walk_of
from bench.zoo_records import _layouts  # pyright: ignore[reportPrivateUsage]
from bench.zoo_records import report as report_of_records

ABOUT = {"machine": {"GPU": "a GPU"}, "size": "full", "offline": False}


def row(seed: int, ms: float, best: float, predicted: float, bound: float) -> dict[str, Any]:
    return {
        "seed": seed, "family": "row", "ms": ms, "best_ms": best, "predicted_ms": predicted, "bound_ms": bound,
        "plan": "block=256", "best": "block=128", "each": {"default": [predicted, ms], "block=128": [best, best]},
    }  # fmt: skip


def test_shares_of_the_targets() -> None:
    rows = [
        row(1, 1.0, 1.0, 1.0, 0.5),
        row(3, 1.1, 1.0, 1.4, 0.55),
        row(5, 3.0, 1.0, 6.0, 0.3),
        row(7, 1.0, 1.0, 0.9, 0.9),
    ]
    text = "\n".join(report(rows, ABOUT))
    for line in (
        "| default within 5 % of the best plan tried | 95 % | 50% |",
        "| within 15 % | 100 % | 75% |",
        "| predicted / measured within 0.85 to 1.15 | 90 % | 50% |",
        "| within 0.67 to 1.5 | 100 % | 75% |",
        "| share of the bound, median | 60 % | 50% |",
        "| wrong or failed | 0 | 0 |",
    ):
        assert line in text
    assert "seed" not in text  # odd ones judge, and are not looked at


def test_wrong_and_failed_kernels_are_counted_and_named() -> None:
    rows = [row(2, 1.0, 1.0, 1.0, 0.5) | {"wrong": "block=64 differs"}, {"seed": 5, "failed": "ValueError: no"}]
    text = "\n".join(report(rows, ABOUT))
    assert "| wrong or failed | 0 | 2 |" in text
    assert "- seed 2: block=64 differs" in text
    assert "- seed 5: ValueError: no" in text
    assert "- seed 2, row: 1 ms by block=256; 1 by block=128" in text


def test_a_kernel_whose_default_alone_was_measured_is_no_hit() -> None:
    rows = [row(1, 2.0, 1.0, 1.0, 0.5), row(3, 1.0, 1.0, 1.0, 0.5) | {"each": {"default": [1.0, 1.0]}}]
    text = "\n".join(report(rows, ABOUT))
    assert "Of 1 of them the default plan alone was measured in time: left out below." in text
    assert "| default within 5 % of the best plan tried | 95 % | 0% |" in text


@pytest.mark.parametrize(("kernels", "line"), [
    (4, "| elements | 4 | 1.00 | 2.50 | 4.00 |"),
    (9, "| elements | 9 | 1.00 | 5.00 | 9.00 |"),
    (21, "| elements | 21 | 2.00 | 11.00 | 20.00 |"),
])  # fmt: skip
def test_of_few_kernels_over_records_the_least_and_the_most_are_told(kernels: int, line: str) -> None:
    times = dict.fromkeys((*_layouts({}), "auto", "default"), 1.0)
    rows = [
        {
            "seed": 2 * n + 1,
            "family": "elements",
            "layout": str(lw.SoA()),
            "auto": str(lw.SoA()),
            "predicted_ms": n + 1.0,
            "each": times,
        }
        for n in range(kernels)
    ]
    assert line in list(report_of_records(rows, ABOUT | {"device": "cuda"}))


def test_a_run_that_was_cut_off_at_once_has_a_report() -> None:
    assert "0 kernels" in "\n".join(report([], ABOUT))


def predicted(seed: int, family: str, ratio: float) -> dict[str, Any]:
    return {"what": f"arrays {seed}", "seed": seed, "family": family, "predicted_ms": ratio, "ms": 1.0}


@pytest.mark.parametrize(("kernels", "line"), [
    (4, "| row | 4 | 1.00 | 2.50 | 4.00 | 1 | 4 |"),
    (21, "| row | 21 | 2.00 | 11.00 | 20.00 | 1 | 21 |"),
])  # fmt: skip
def test_odd_seeds_judge_predictions(kernels: int, line: str) -> None:
    odd = [predicted(2 * n + 1, "row", n + 1.0) for n in range(kernels)]
    even = [predicted(2 * n, "row", 100.0) for n in range(kernels)]
    text = list(
        report_of_predictions([*odd, *even, {"what": "arrays 5", "failed": "wrong"}], ABOUT | {"device": "cpu"})
    )
    assert text.index(line) < text.index("\nEven seeds, to which models may be fitted:\n")
    assert "Wrong or failed: 1." in text
    assert "- arrays 5: wrong" in text


@lw.record
class Place:
    position: lw.vec3
    mass: lw.f32


@lw.pairwise(search=lw.Neighbors(radius=0.1))
def near(target: Place, source: Place) -> lw.f32:
    return source.mass


def test_a_walk_by_itself_computes_what_the_call_does() -> None:
    """Through the structure that the call has left, as often as is asked."""
    rng = np.random.default_rng(0)
    places = Place.array(position=rng.random((5_000, 3), np.float32), mass=np.ones(5_000, np.float32), device="cpu")
    call = near.bind(places, places)
    wanted = np.array(call())
    walk = walk_of(call)
    for _ in range(2):
        np.asarray(call.results[0])[...] = -1.0
        walk()
        assert np.array_equal(np.asarray(call.results[0]), wanted)
    assert wanted.min() >= 1
