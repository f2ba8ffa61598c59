"""Errors of results over a tree against all pairs: measured once for calls of a kind, and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch import tuned_plans as store
from lanewise.launch.tuned_plans import StoreWarning


class Star(lw.Record):
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def pull(target: Star, source: Star, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise
def potential(target: Star, source: Star) -> tuple[lw.f32, lw.f32]:
    d = source.position - target.position
    weight = 0.0 if lw.same(target, source) else source.mass * lw.rsqrt(lw.dot(d, d))
    return weight, source.mass


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")


def stars(count: int, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return Star.array(position=rng.normal(size=(count, 3)), mass=rng.uniform(0.5, 1.5, count))


def test_errors_are_those_of_all_pairs_and_measured_once() -> None:
    cloud = stars(700)
    far = pull.using(search=lw.Tree(theta=0.7, order=2))
    x, m = (np.asarray(a, np.float64) for a in (cloud.position, cloud.mass))
    d = x[None] - x[:, None]
    wanted = np.einsum("j,ijc->ic", m, d / (np.sum(d * d, axis=2, keepdims=True) + 1e-4) ** 1.5)
    away = np.linalg.norm(far(cloud, cloud, softening2=1e-4) - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    first = lw.far_errors(far, cloud, cloud, softening2=1e-4)
    assert (first.median, first.most, first.largest) == pytest.approx(
        (np.median(away), np.percentile(away, 99, method="inverted_cdf"), away.max()), rel=1e-3, abs=1e-6
    )
    assert (first.predicted, first.holds, first.targets, first.kept) == (None, None, 700, False)
    assert "predicted none; median " in str(first)
    assert str(first).endswith("(of 700 targets against all pairs, measured now)")
    again = lw.far_errors(far, stars(700, 2), stars(700, 3), softening2=1e-4)  # two arrays: another kind
    assert not again.kept
    kept = lw.far_errors(far, cloud, cloud, softening2=1e-4)
    assert kept.kept
    assert kept.as_dict() == {**first.as_dict(), "kept": True}
    assert not lw.far_errors(far, cloud, cloud, softening2=1e-4, again=True).kept
    assert not lw.far_errors(far, cloud, cloud, softening2=1e-3).kept
    assert not lw.far_errors(pull.using(search=lw.Tree(theta=0.6, order=2)), cloud, cloud, softening2=1e-4).kept


def test_of_many_targets_some_are_looked_at_and_an_accuracy_is_what_was_predicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = stars(4000)
    monkeypatch.setenv("LANEWISE_TUNED", "off")
    good = lw.far_errors(pull.using(search=lw.Tree(accuracy=1e-2, order=2)), cloud, cloud, softening2=1e-4)
    assert (good.targets, good.predicted, good.holds) == (800, 1e-2, True)
    assert 0 < good.median < good.most <= 1e-2
    assert str(good).startswith("predicted 99 % below 1.0e-02; median ")
    assert not lw.far_errors(pull.using(search=lw.Tree(accuracy=1e-2, order=2)), cloud, cloud, softening2=1e-4).kept


def test_an_element_that_meets_itself_and_several_results() -> None:
    cloud = stars(1300)
    found = lw.far_errors(potential.using(search=lw.Tree(theta=0.5, order=3)), cloud, cloud)
    assert 1e-6 < found.median < found.largest < 1e-2


def test_what_is_refused_and_what_is_damaged(tmp_path: Path) -> None:
    cloud = stars(40)
    only = "far_errors takes only function and targets and sources without a name; found "
    for given, wanted in (
        ((1e-4,), "0.0001; wanted softening2=0.0001"),
        ((1e-4, True), "0.0001, True; wanted softening2=0.0001, again=True"),
        ((1e-4, 3), "0.0001, 3; its settings are softening2, again"),
    ):
        with pytest.raises(TypeError) as refused:
            lw.far_errors(pull, cloud, cloud, *given)  # pyright: ignore[reportCallIssue]
        assert str(refused.value) == only + wanted
    with pytest.raises(TypeError, match=r"found 0\.0001; its settings are again$"):
        lw.far_errors(potential, cloud, cloud, 1e-4)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"lw.far_errors takes a pairwise function over a tree, found 3"):
        lw.far_errors(3, cloud, cloud)  # pyright: ignore[reportArgumentType]
    with pytest.raises(lw.ArgumentError, match=r"wanted pull.using\(search=lw.Tree\(...\)\)"):
        lw.far_errors(pull, cloud, cloud, softening2=0.1)
    with pytest.raises(lw.ArgumentError, match="there are no targets to look at"):
        lw.far_errors(pull.using(search=lw.Tree()), cloud[:0], cloud, softening2=0.1)
    twins = stars(8)
    twins.position[5] = twins.position[2]
    with pytest.raises(
        lw.ArgumentError, match=r"over all pairs the result of target 2 is \[nan\], \[.*\], and no error"
    ):
        lw.far_errors(potential.using(search=lw.Tree()), twins, twins)
    far = pull.using(search=lw.Tree())
    lw.far_errors(far, cloud, cloud, softening2=0.1)
    (file,) = (tmp_path / "tuned").glob("*.json")
    file.write_text(file.read_text().replace('"median"', '"medium"'))
    with pytest.warns(StoreWarning, match="it holds no errors"):
        assert not lw.far_errors(far, cloud, cloud, softening2=0.1).kept
