"""Far fields over lw.Tree on a GPU: the order of a CPU, errors as there, graphs, the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.search.builders.hilbert_device import device_order
from lanewise.patterns.search.builders.hilbert_host import HostOrder
from lanewise.patterns.search.points import points_of_values
from lanewise.patterns.search.tree.call import FarFields
from lanewise.patterns.search.tree.group import LARGEST
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import to_host
from tests.search.clouds import CLOUDS, cloud
from tests.search.tree.test_compared import sources, told, wave
from tests.search.tree.test_tree_calls import (
    SOFTENING2,
    bodies,
    errors,
    exact,
    far,
    gravity,
    kick_drift,
)

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize(("axes", "dtype"), [(3, "f4"), (2, "f8")])
@pytest.mark.parametrize("count", [1, 500, 300_001])
def test_the_order_is_that_of_a_cpu(name: str, axes: int, dtype: str, count: int) -> None:
    x, _ = cloud(name, count, axes, dtype)
    there = get_device("cuda").arrays.asarray(x)
    made = device_order(points_of_values(there, "cuda"))
    host = HostOrder(points_of_values(x, "cpu"))
    host.build(host.order)
    for _ in range(2):  # the second time over what the first one left
        made.build(made.order)
        assert np.array_equal(to_host(made.order), host.order)


def found_by(kernel: Any, *arguments: Any) -> Any:
    return to_host(kernel(*arguments))


@pytest.mark.parametrize("leaf", [5, 32, 100])
@pytest.mark.parametrize("order", [0, 1, 4])
def test_errors_are_those_of_a_cpu(order: int, leaf: int) -> None:
    here, there = bodies(3000), bodies(3000, device="cuda")
    wanted = exact(here, here, lambda i: i)
    search = far(0.5, order, leaf)
    cpu, gpu = (
        np.quantile(errors(f, wanted), (0.5, 0.99))
        for f in (search(here, here, SOFTENING2), found_by(search, there, there, SOFTENING2))
    )
    assert np.all(gpu < 1.5 * cpu + 1e-6)


@pytest.mark.parametrize("count", [1, 2, 31, 33, 100_000])
def test_any_number_of_bodies(count: int) -> None:
    b, some = bodies(count, device="cuda"), slice(0, 200)
    found = found_by(far(0.5, 2), b, b, SOFTENING2)[some]
    host = bodies(count)
    wanted = exact(host[some], host, lambda i: i)
    assert np.quantile(errors(found, wanted), 0.99) < 5e-3


@pytest.mark.parametrize("leaf", [1, 3])
def test_a_leaf_of_one_body_is_not_far_from_itself(leaf: int) -> None:
    b = bodies(301, device="cuda")
    assert np.isfinite(found_by(far(leaf=leaf), b, b, 0.0)).all()


def test_other_targets_and_parts() -> None:
    targets, b = bodies(333, 1, "cuda"), bodies(700, device="cuda")
    found = found_by(far(), targets, b, SOFTENING2)
    assert np.quantile(errors(found, exact(bodies(333, 1), bodies(700))), 0.99) < 3e-3
    found = found_by(far(), b[100:300], b, SOFTENING2)
    host = bodies(700)
    wanted = exact(host[100:300], host, lambda i: i + 100)
    assert np.quantile(errors(found, wanted), 0.99) < 3e-3


def test_all_bodies_in_one_place_and_one_far_away() -> None:
    b = bodies(2000, device="cuda")
    b.position = [0.1, 0.2, 0.3]
    assert not found_by(far(), b, b, SOFTENING2).any()
    b, host = bodies(2000, device="cuda"), bodies(2000)
    b.position[7] = host.position[7] = 1e6
    found = found_by(far(), b, b, SOFTENING2)
    assert np.quantile(errors(found, exact(host, host, lambda i: i)), 0.99) < 3e-3


@pytest.mark.parametrize("layout", [lw.AoS(), lw.SoA(), lw.AoSoA(32)], ids=str)
def test_layouts_and_runs_change_no_bit(layout: Any) -> None:
    arrays = bodies(5000, device="cuda"), bodies(5000, device="cuda", layout=layout)
    found = [found_by(far(), b, b, SOFTENING2) for b in (*arrays, arrays[0])]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def run_in(pieces: tuple[int, ...], every: int = 1) -> Any:
    b = bodies(3000, device="cuda")
    force = far(0.7).bind(b, b, SOFTENING2)
    loop = lw.steps([lw.every(every, force), kick_drift.bind(b, force.results[0], 1e-3)])
    force()
    assert {row.runs for row in loop.explain().calls} == {"graphs"}
    for piece in pieces:
        loop.run(piece)
    return to_host(b.position)


@pytest.mark.parametrize("every", [1, 3])
def test_no_bit_depends_on_where_a_run_is_cut(every: int) -> None:
    assert np.array_equal(run_in((200,), every), run_in((1, 30, 2, 67, 100), every))


def test_a_loop_finds_places_that_are_no_numbers() -> None:
    b = bodies(3000, device="cuda")
    loop = lw.steps([far(0.7).bind(b, b, SOFTENING2)])
    loop.run(40)
    b.position[17] = np.nan
    with pytest.raises(lw.ArgumentError, match="the position of element 17 is"):
        loop.run(3)


def test_a_call_refuses_places_that_are_no_numbers() -> None:
    b = bodies(3000, device="cuda")
    call = far(0.7).bind(b, b, SOFTENING2)
    call()
    b.position[17] = np.nan
    for attempt in (call, lambda: far(0.7)(b, b, SOFTENING2)):
        with pytest.raises(lw.ArgumentError, match="the position of element 17 is"):
            attempt()


def test_weights_that_are_no_numbers_are_named() -> None:
    b = bodies(3000, device="cuda")
    call = far(0.7).bind(b, b, SOFTENING2)
    loop = lw.steps([call])
    loop.run(40)
    far(0.7)(b, b, SOFTENING2)
    b.mass[17] = np.inf
    for attempt in (call, lambda: far(0.7)(b, b, SOFTENING2), lambda: loop.run(3)):
        with pytest.raises(lw.ArgumentError, match="'source': the mass of element 17 is inf; a search"):
            attempt()


def test_profiles_name_every_task() -> None:
    b, profile = bodies(3000, device="cuda"), lw.Profile()
    lw.steps([far(0.7).bind(b, b, SOFTENING2)], profile=profile).run(100)
    told = str(profile)
    for name in ("order", "gather", "gravity_leaf_moments", "gravity_parent_moments", "gravity"):
        assert name in told


@pytest.fixture
def groups_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU too, so that it meets what a GPU meets."""
    monkeypatch.setattr(FarFields, "group", lambda self, index, precision: LARGEST)


@pytest.mark.usefixtures("groups_of_a_gpu")
def test_a_call_whose_expansions_do_not_converge_says_so() -> None:
    here, there = sources(2000), sources(2000).to("cuda")
    far = wave.using(search=lw.Tree(theta=0.7, order=2))
    (text,) = told(lambda: far(there, there, k=60.0))
    (other,) = told(lambda: far(here, here, k=60.0))
    assert "Of 2,000 targets the median error is " in text
    assert text.partition("% are")[0][:90] == other.partition("% are")[0][:90]
    assert not told(lambda: far(there, there, k=50.0))
    assert not told(lambda: far(there, there, k=0.5))
    out = get_device("cuda").arrays.full(2000, 7.0)
    assert told(lambda: far.bind(there, there, k=600.0, out=out))
    assert (to_host(out) == 7.0).all()
    fresh = wave.using(search=lw.Tree(theta=0.7, order=2))
    assert told(lambda: lw.steps([fresh.bind(there, there, k=60.0)]).run(3))


@pytest.mark.usefixtures("groups_of_a_gpu")
def test_errors_are_measured() -> None:
    b = bodies(3000, device="cuda")
    found = lw.far_errors(far(0.5, 4), b, b, again=True, softening2=SOFTENING2)
    host = bodies(3000)
    here = lw.far_errors(far(0.5, 4), host, host, again=True, softening2=SOFTENING2)
    assert found.targets == here.targets == 3000
    assert found.median == pytest.approx(here.median, rel=0.2)
    assert found.most == pytest.approx(here.most, rel=0.2)


def test_gradients() -> None:
    b = bodies(2000, device="cuda")
    near, away = (found_by(f.gradient("target.position"), b, b, SOFTENING2) for f in (gravity, far(0.5, 2)))
    assert np.quantile(errors(away, near.astype(np.float64)), 0.99) < 2e-2
