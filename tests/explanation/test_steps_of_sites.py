"""Explanations of a loop and of one step of it say the same of every launch over sites."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.kernels.test_sitewise import EDGES, FLOW, MASK, VALUES


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


@lw.stencil(lw.D2Q5)
def wave(u: lw.Field[lw.f32], speed: lw.f32) -> lw.f32:
    return u[0] + speed * speed * lw.sqrt(lw.abs(u[1] + u[2] + u[3] + u[4] - 4 * u[0]))


def plate(kernel: Any, name: str) -> Any:
    return kernel.sites((6, 9), **{name: np.ones((6, 9), np.float32)})


def flow(streaming: str, edges: Any) -> tuple[Any, Any, dict[str, Any]]:
    sites = FLOW.sites((4, 5), mask=MASK, edges=edges, streaming=streaming)
    FLOW.set_populations(sites, np.ones((9, 4, 5), np.float32))
    return FLOW, sites, VALUES


STEPS: dict[str, Any] = {
    "stencil": lambda: (heat, plate(heat, "t"), {"rate": 0.2}),
    "in place": lambda: flow("in-place", EDGES),
    "pull": lambda: flow("pull", EDGES),
    "outlet": lambda: flow("pull", {"x": ("periodic", "periodic"), "y": ("wall", "outflow")}),
}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("taken", [0, 1])
def test_a_step_and_a_loop_say_the_same(name: str, taken: int) -> None:
    kernel, sites, values = STEPS[name]()
    stepper = kernel.stepper(sites, **values)
    stepper.run(taken)
    step = kernel.compile(sites, **values).explain(measure_resources=False)
    loop = lw.steps([stepper]).explain()
    assert step.launches
    assert step.launches == loop.launches
    times = [row.predicted for row in loop.launches]  # of no site on a CPU: 0
    assert None not in times
    assert any(times)


def test_each_of_several_sites_has_its_own_rate() -> None:
    (hot, rate), (drum, speed) = (plate(heat, "t"), {"rate": 0.2}), (plate(wave, "u"), {"speed": 0.1})
    each = [
        *heat.compile(hot, **rate).explain(measure_resources=False).launches,
        *wave.compile(drum, **speed).explain(measure_resources=False).launches,
    ]
    steppers = [heat.stepper(hot, **rate), wave.stepper(drum, **speed)]
    assert list(lw.steps(steppers).explain().launches) == each
    assert list(lw.steps([lw.couple(*steppers)]).explain().launches) == each
