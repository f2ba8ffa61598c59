"""Runs of many steps: their schedules, and how much memory is requested at a time among many walls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.types import F16, F32, F64
from lanewise.launch.steps.runner import Runner
from lanewise.patterns.sitewise import steppers
from lanewise.patterns.sitewise.flags import SECTOR
from lanewise.patterns.sitewise.making import LINE, LONG_LINE, site_layout
from lanewise.patterns.sitewise.steppers import LONG_RUN
from lanewise.support import whole_steps
from tests.kernels.test_sitewise import FLOW, VALUES, full, whole


@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
def test_a_run_is_cycles_between_single_steps(monkeypatch: pytest.MonkeyPatch, streaming: str) -> None:
    schedules: list[Any] = []
    # however busy the machine: in one piece
    monkeypatch.setattr(whole_steps, "PIECE_SECONDS", 1e9)
    monkeypatch.setattr(Runner, "run", lambda _, schedule, under_way: schedules.append(list(schedule)))
    sites = full(streaming=streaming)
    FLOW.set_populations(sites, whole())
    stepper = FLOW.stepper(sites, **VALUES)
    for steps in (1, 8, 0, 5):
        stepper.run(steps)
    # steps of a part, (fresh, place in the cycle): the first step of populations that were set
    # stands alone
    assert [[(len(kinds), *stand, n) for (kinds, stand), n in s] for s in schedules] == [
        [(1, (True, 0), 1)],
        [(2, (False, 1), 4)],
        [(2, (False, 1), 2), (1, (False, 1), 1)],
    ]
    assert (sites.step, sites.fresh) == (14, False)


def test_memory_is_asked_for_less_in_long_runs_among_many_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    @contextmanager
    def fetching(nbytes: int) -> Iterator[None]:
        asked.append(nbytes)
        yield
        asked.append(0)

    monkeypatch.setattr(steppers, "get_device", lambda name: SimpleNamespace(fetching=fetching))
    sites = full()
    for dense, steps, wanted in (
        (False, LONG_RUN, []),
        (True, 7, []),
        (True, LONG_RUN // sites.count + 1, [SECTOR, 0]),
    ):
        asked.clear()
        sites.dense = dense
        with ExitStack() as stack:
            for around in FLOW.stepper(sites, **VALUES).task.around:
                stack.enter_context(around(steps))
        assert asked == wanted


@pytest.mark.parametrize(
    ("storage", "extent", "nbytes", "width"),
    [
        (F32, 512, LINE, 32),
        (F32, 512, LONG_LINE, 64),
        (F32, 96, LONG_LINE, 32),
        (F16, 512, LINE, 64),
        (F64, 512, LONG_LINE, 32),
    ],
)
def test_default_layouts_on_a_gpu(storage: Any, extent: int, nbytes: int, width: int) -> None:
    assert site_layout(None, "cuda", storage, extent, nbytes) == lw.AoSoA(width)


@pytest.mark.cuda
def test_a_long_run_among_grains_has_the_same_bits_and_leaves_the_setting_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lanewise.runtime.cuda import cupy
    from lanewise.runtime.cuda_device import MAX_L2_FETCH_GRANULARITY

    runtime, shape = cupy().cuda.runtime, (256, 512)
    before = runtime.deviceGetLimit(MAX_L2_FETCH_GRANULARITY)
    mask = np.where(np.random.default_rng(1).random(shape) < 0.3, 2, 0)
    found: list[bytes] = []
    for long in (LONG_RUN, 1):
        monkeypatch.setattr(steppers, "LONG_RUN", long)
        sites = FLOW.sites(shape, mask=mask, device="cuda")
        assert (sites.dense, sites.layout) == (True, lw.AoSoA(64))
        FLOW.set_populations(sites, whole(shape))
        FLOW.run(sites, 67, **VALUES)
        found.append(FLOW.populations(sites).tobytes())
        assert runtime.deviceGetLimit(MAX_L2_FETCH_GRANULARITY) == before
    assert found[0] == found[1]
