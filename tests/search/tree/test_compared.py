"""No numbers of a far field that are wrong without a word: first calls of a kind are compared with all pairs."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from numpy.typing import NDArray

import lanewise as lw
from lanewise.patterns.search.tree import compared
from lanewise.patterns.search.tree.tail import median_and_most

Array = NDArray[Any]


@lw.record
class Source:
    position: lw.dvec3
    p: lw.f64


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def wave(target: Source, source: Source, k: lw.f64) -> lw.f64:
    r = lw.length(source.position - target.position)
    return 0.0 if lw.same(target, source) else source.p * lw.cos(k * r) / r


@lw.pairwise
def growing(target: Source, source: Source, k: lw.f64) -> lw.f64:
    d = source.position - target.position
    return source.p * lw.exp(k * lw.dot(d, d))


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inverse = lw.rsqrt(lw.dot(d, d) + softening2)
    return d * (source.mass * inverse * inverse * inverse)


def sources(count: int, seed: int = 3, layout: Any = None) -> Any:
    rng, record = np.random.default_rng(seed), cast("Any", Source)
    return record.array(position=rng.random((count, 3)), p=rng.random(count), layout=layout or lw.SoA())


def told(call: Any) -> list[str]:
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert all(w.category is lw.FarFieldWarning for w in found)
    return [str(w.message) for w in found]


def test_a_call_whose_expansions_do_not_converge_says_so_once_for_its_kind() -> None:
    b, far = sources(700), wave.using(search=lw.Tree(theta=0.7, order=2, leaf=8))
    with pytest.warns(lw.FarFieldWarning, match="results are not those of all pairs") as caught:
        found = far(b, b, k=60.0)
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert text.startswith("wave over tree: theta 0.7, order 2, leaves of 8: results are not")
    assert "Of 700 targets the median error is " in text
    assert "wanted a median below 0.01 and 99 % below 0.05" in text
    assert text.endswith(
        "as where a function swings or grows within a group: choose a smaller theta, a larger order, accuracy=, or "
        "lw.AllPairs(); lw.far_errors measures what that gives"
    )
    wanted = wave(b, b, k=60.0)
    size = np.maximum(abs(wanted), np.median(abs(wanted)))
    assert f"the median error is {np.median(abs(found - wanted) / size):.1e}" in text
    assert not told(lambda: far(b, b, k=60.0))
    assert not told(lambda: far(b, b, k=50.0))  # of the same kind
    assert not told(lambda: far(b, b, k=0.5))  # right
    assert not told(lambda: far(b, b, k=0.6))
    assert told(lambda: far(b, b, k=130.0))  # the same arrays again, and other values
    assert told(lambda: far(sources(200, 4), b, k=60.0))  # other targets
    assert not told(lambda: far(sources(190, 5), b, k=60.0))
    wide = sources(700)
    wide.position *= 30.0
    assert told(lambda: far(wide, wide, k=60.0))


def test_an_accuracy_that_is_missed() -> None:
    b = sources(600)
    far = growing.using(search=lw.Tree(accuracy=1e-3, leaf=8))
    (text,) = told(lambda: far(b, b, k=10.0))
    assert text.startswith("growing over tree: accuracy 0.001 by estimates, order 3, leaves of 8: results are not")
    assert "relative to the results; wanted 99 % below 0.001. " in text
    assert "as where results cancel, or a function swings or grows within a group: choose growing's tune, " in text
    remedies = (
        "which looks for a tree that keeps it, a smaller accuracy, a smaller theta, a larger order, or lw.AllPairs()"
    )
    assert remedies in text
    errors = abs(far(b, b, k=10.0) / growing(b, b, k=10.0) - 1)
    assert f"99 % are below {np.quantile(errors, 0.99, method='inverted_cdf'):.1e}" in text
    assert not told(lambda: far(b, b, k=-0.1))


def test_no_remedy_is_named_that_would_be_refused() -> None:
    b, far = sources(700), wave.using(search=lw.Tree(theta=0.7, order=2, leaf=8, method="dual"))
    (text,) = told(lambda: far(b, b, k=60.0))
    assert "choose a smaller theta, a larger order, or lw.AllPairs()" in text


def test_lengths_that_leave_the_range_of_float32() -> None:
    rng = np.random.default_rng(1)
    places, mass = rng.random((500, 3)), rng.random(500)
    far = gravity.using(search=lw.Tree(theta=0.5, order=2, leaf=8))

    def call(length: float) -> list[str]:
        b = cast("Any", Body).array(position=places * length, mass=mass * 1e20)
        return told(lambda: far(b, b, softening2=(0.05 * length) ** 2))

    assert not call(1.0)
    (text,) = call(1e17)
    assert "or lengths are such that numbers leave the range of float32: choose " in text
    assert "accuracy=, records of float64, or lw.AllPairs()" in text


def test_results_that_are_no_numbers_are_wrong() -> None:
    rng = np.random.default_rng(1)
    b = cast("Any", Body).array(position=rng.random((500, 3)) * 3e-13, mass=rng.random(500) * 1e-36)
    far = gravity.using(search=lw.Tree(theta=0.5, order=2, leaf=8))
    found: list[Any] = []
    (text,) = told(lambda: found.append(far(b, b, softening2=2e-28)))
    assert np.isfinite(gravity(b, b, softening2=2e-28)).all()
    assert 0.1 < np.isnan(found[0]).mean() < 0.9
    assert "99 % are below inf, the largest is inf" in text


@given(some.lists(some.one_of(some.just(np.inf), some.floats(0, 1)), min_size=1, max_size=300))
def test_99_percent_of_errors_do_not_exceed_one_of_them(found: list[float]) -> None:
    errors = np.array(found)
    median, most = median_and_most(errors)
    assert median == np.median(errors)
    assert np.count_nonzero(errors <= most) >= 0.99 * len(errors) > np.count_nonzero(errors < most)


def test_bound_calls_are_compared_when_they_are_bound_and_their_results_stay() -> None:
    b, far = sources(300), wave.using(search=lw.Tree(theta=0.8, order=2, leaf=8))
    out = np.full(300, 7.0)
    (text,) = told(lambda: far.bind(b, b, k=90.0, out=out))
    assert "Of 300 targets" in text
    assert (out == 7.0).all()
    call = far.bind(b, b, k=80.0)  # of the same kind
    assert not told(lambda: lw.steps([call]).run(2))
    assert not told(lambda: far(b, b, k=90.0))
    fresh = wave.using(search=lw.Tree(theta=0.8, order=2, leaf=8))
    assert told(lambda: lw.steps([fresh.bind(b, b, k=90.0)]))


def test_a_bound_call_that_is_compared_keeps_its_results_where_warnings_are_errors() -> None:
    b, far = sources(300), wave.using(search=lw.Tree(theta=0.8, order=2, leaf=8))
    out = np.full(300, 7.0)
    with pytest.raises(lw.FarFieldWarning, match="wave over tree"):
        far.bind(b, b, k=90.0, out=out)
    assert (out == 7.0).all()


def test_values_of_steps_are_compared_where_they_are_of_another_kind() -> None:
    b, far = sources(300), growing.using(search=lw.Tree(theta=0.8, order=2, leaf=8))
    call = far.bind(b, b, k=lw.by_step(lambda n: 0.01))
    assert not told(lambda: lw.steps([call]).run(3))


@pytest.mark.parametrize(
    "layout", [lw.SoA(), *(pytest.param(x, marks=pytest.mark.slow) for x in (lw.AoSoA(8), lw.AoAS()))], ids=str
)
def test_parts_of_arrays_in_all_layouts(layout: Any) -> None:
    """An element does not meet itself: with itself in it, all pairs would have no number."""
    b, far = sources(700, layout=layout), wave.using(search=lw.Tree(theta=0.5, order=2, leaf=8))
    assert not told(lambda: far(b, b, k=0.5))
    assert not told(lambda: far(b[64:640], b, k=0.5))


def test_results_that_cancel_are_not_wrong() -> None:
    b = sources(700)
    b.p = b.p - np.mean(b.p)
    far = growing.using(search=lw.Tree(theta=0.4, order=2, leaf=8))
    assert not told(lambda: far(b, b, k=-1.0))


def test_all_pairs_without_a_number_say_nothing() -> None:
    b, far = sources(100), wave.using(search=lw.Tree(order=2, leaf=8))
    b.position = [0.25, 0.5, 0.75]  # every distance is zero
    with np.errstate(all="ignore"):
        assert not told(lambda: far(b, b, k=1.0))
    assert not told(lambda: far(b[:0], b, k=1.0))


def test_while_a_graph_is_captured_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    b, far = sources(300), wave.using(search=lw.Tree(theta=0.8, order=2, leaf=8))
    monkeypatch.setattr(compared, "get_device", lambda _: SimpleNamespace(is_capturing=lambda: True))
    assert not told(lambda: far(b, b, k=90.0))
    assert not told(lambda: far.bind(b, b, k=90.0))
    monkeypatch.undo()
    assert told(lambda: far(b, b, k=90.0))  # the call behind it


@lw.pairwise
def mixed(
    target: Source, source: Source, swing: lw.f64, k: lw.f64, grow: lw.f64, g: lw.f64, power: lw.f64, m: lw.f64
) -> lw.f64:
    d = source.position - target.position
    s = lw.dot(d, d) + 1e-3
    return source.p * (swing * lw.cos(k * lw.sqrt(s)) + grow * lw.exp(g * s) + power * s**m)


@lw.pairwise
def mixed_vector(
    target: Source, source: Source, swing: lw.f64, k: lw.f64, grow: lw.f64, g: lw.f64, power: lw.f64, m: lw.f64
) -> lw.dvec3:
    d = source.position - target.position
    s = lw.dot(d, d) + 1e-3
    return d * (source.p * (swing * lw.cos(k * lw.sqrt(s)) + grow * lw.exp(g * s) + power * s**m))


@lw.pairwise
def stretched(
    target: Source, source: Source, swing: lw.f64, k: lw.f64, grow: lw.f64, g: lw.f64, power: lw.f64, m: lw.f64
) -> lw.f64:
    d = source.position - target.position  # not radial: records at chosen points
    s = d.x * d.x + 2 * d.y * d.y + 0.5 * d.z * d.z + 1e-3
    return source.p * (swing * lw.cos(k * lw.sqrt(s)) + grow * lw.exp(g * s) + power * s**m)


CASES = [
    (mixed, "walk"),
    (mixed, "dual"),
    *(pytest.param(*c, marks=pytest.mark.slow) for c in ((mixed_vector, "walk"), (mixed_vector, "dual"))),
    pytest.param(stretched, "walk", marks=pytest.mark.slow),  # no pairs of groups where it is not radial
]
number = some.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 3))


@pytest.mark.slow_cases("mixed-walk")
@pytest.mark.parametrize(("function", "method"), CASES)
@given(
    swing=number,
    k=some.sampled_from([0.1, 3.0, 10.0, 30.0, 100.0]),
    grow=number,
    g=some.sampled_from([-300.0, -30.0, -1.0, 0.5, 3.0, 10.0, 40.0]),
    power=number,
    m=some.sampled_from([-3.0, -1.5, -0.5, 0.5, 2.0]),
    theta=some.sampled_from([0.3, 0.6, 0.9]),
    seed=some.integers(0, 1000),
    signs=some.booleans(),
)
def test_no_linear_function_is_wrong_without_a_word(
    function: Any,
    method: Any,
    swing: float,
    k: float,
    grow: float,
    g: float,
    power: float,
    m: float,
    theta: float,
    seed: int,
    signs: bool,
) -> None:
    b = sources(500, seed)
    if signs:
        b.p = b.p - 0.5
    values = {"swing": swing, "k": k, "grow": grow, "g": g, "power": power, "m": m}
    far = function.using(search=lw.Tree(theta=theta, order=2, leaf=8, method=method))
    found: list[Array] = []
    warned = told(lambda: found.append(np.asarray(far(b, b, **values)).reshape(500, -1)))
    wanted = np.asarray(function(b, b, **values)).reshape(500, -1)
    away, size = (np.linalg.norm(x, axis=1) for x in (found[0] - wanted, wanted))
    errors = away / np.maximum(np.maximum(size, np.median(size)), 1e-300)
    if np.median(errors) > 0.02 or np.quantile(errors, 0.9) > 0.1:
        assert warned
    if np.median(errors) < 0.009 and np.quantile(errors, 0.99) < 0.045:
        assert not warned
