"""Every loop over lw.Tree has an order of its own: no other loop and no call by hand changes its bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.loops.steps import Steps
from lanewise.runtime.memory import to_host
from tests.search.tree.test_tree_calls import SOFTENING2, bodies, far, kick_drift

Step = tuple[str, int]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@dataclass
class Two:
    """Two loops over the same bodies, by one bound call or by one for each of them."""

    shared: bool
    device: str
    loops: dict[str, Steps] = field(default_factory=dict[str, Steps])
    calls: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.bodies = bodies(300, device=self.device)
        self.search = far(0.7, leaf=16)
        one = self.bound()
        for name in ("a", "b", "by hand"):
            self.calls[name] = one if self.shared else self.bound()
        for name in ("a", "b"):
            self.loops[name] = self.loop(name)

    def bound(self) -> Any:
        return self.search.bind(self.bodies, self.bodies, SOFTENING2)

    def loop(self, name: str) -> Steps:
        force = self.calls[name]
        dt = {"a": 2e-2, "b": -3e-2}[name]
        return lw.steps([force, kick_drift.bind(self.bodies, force.results[0], dt)])

    def take(self, step: Step) -> bytes:
        what, count = step
        match what:
            case "a" | "b":
                self.loops[what].run(count)
            case "by hand":
                self.calls[what]()
                return to_host(self.calls[what].results[0]).tobytes()
            case "plain":
                return to_host(self.search(self.bodies, self.bodies, SOFTENING2)).tobytes()
            case _:  # a loop ends, and another one goes on where it was
                name = what.removeprefix("again ")
                ended = self.loops[name]
                self.loops[name] = self.loop(name)
                self.loops[name].step, self.loops[name].orders = ended.step, ended.orders
        return to_host(self.bodies.data).tobytes()


STEPS = st.one_of(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 40)),
    st.tuples(st.sampled_from(["by hand", "plain", "again a", "again b"]), st.just(1)),
)


@pytest.mark.parametrize("device", DEVICES)
@given(st.lists(STEPS, min_size=2, max_size=8))
@example([("a", 5), ("by hand", 1), ("a", 5)])
@example([("a", 5), ("b", 9), ("a", 5), ("again a", 1), ("plain", 1), ("a", 40)])
def test_loops_and_calls_in_any_order_have_the_bits_of_each_alone(device: str, steps: list[Step]) -> None:
    one, each = Two(shared=True, device=device), Two(shared=False, device=device)
    assert [one.take(s) for s in steps] == [each.take(s) for s in steps]


@pytest.mark.parametrize("device", DEVICES)
def test_a_loop_that_gets_the_orders_of_another_one_takes_up_its_run(device: str) -> None:
    whole, cut = Two(shared=True, device=device), Two(shared=False, device=device)
    whole.take(("a", 45))
    cut.take(("a", 20))
    wrong = cut.loop("a")
    assert not np.array_equal(wrong.orders[0], cut.loops["a"].orders[0])  # it would not do without
    cut.take(("again a", 1))
    cut.take(("a", 25))
    assert to_host(cut.bodies.data).tobytes() == to_host(whole.bodies.data).tobytes()


def test_orders_of_targets_that_are_others() -> None:
    targets, sources = bodies(70, seed=1), bodies(90, seed=2)
    loop = lw.steps([far(0.7, leaf=16).bind(targets, sources, SOFTENING2)])
    assert [len(o) for o in loop.orders] == [90, 70]
    assert all(np.array_equal(np.sort(o), np.arange(len(o))) for o in loop.orders)


def test_orders_that_are_none_are_refused() -> None:
    b = bodies(70)
    loop = lw.steps([far(0.7).bind(b, b, SOFTENING2)])
    before = loop.orders
    for given_, found in (((), "none"), ((np.arange(69),), r"\(69,\)"), ((np.zeros(70, int),), r"\(70,\)")):
        with pytest.raises(
            lw.ArgumentError, match=f"orders of a loop: found arrays of shape {found}; wanted each of 70"
        ):
            loop.orders = given_
    assert np.array_equal(loop.orders[0], before[0])
    assert lw.steps([kick_drift.bind(b, np.zeros((70, 3), np.float32), 0.1)]).orders == ()
