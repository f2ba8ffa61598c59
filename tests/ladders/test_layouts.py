from __future__ import annotations

from dataclasses import replace

import pytest

from lanewise.ladders import layouts
from lanewise.ladders.layouts import BASE, GPU, LADDER, LAYOUTS, SERIAL, Combination, combinations
from lanewise.ladders.problem import FORCE
from lanewise.ladders.rung import Options
from lanewise.launch.support import compile_kernel
from tests.ladders.problems import problem
from tests.ladders.test_tutorial import reference


def test_every_combination_once_and_after_what_it_is_compared_with():
    for quick in (False, True):
        every = combinations(quick)
        assert len(set(every)) == len(every) == len({c.name for c in every}) == (16 if quick else 128)
        assert every[0] == BASE
        for at, c in enumerate(every):
            assert (c.under in every[:at]) if c.under is not None else c == BASE


def test_what_is_compared():
    whole = Combination("SoAoAS", 128, True, 128)
    assert whole.name == "SoAoAS, unroll 128, ICM, block 128"
    assert whole.under == Combination("SoAoAS", 128, False, 256)
    assert Combination("SoAoAS", 128, False, 256).under == Combination("SoAoAS", 1, False, 256)
    assert Combination("SoAoAS", 1, False, 256).under == BASE


def test_figures_of_the_paper():
    figures = {c.name: c.paper for c in combinations(False) if c.paper}
    assert figures == {
        "SoAoAS, unroll 128, block 256": {GPU: 1.18},
        "SoAoAS, unroll 128, ICM, block 128": {GPU: 1.06},
    }


def test_on_a_cpu():
    found = list(layouts.climb(Options("cpu", (300,), quick=True), lambda bodies, seed: problem(bodies, "force")))
    assert [r.name for r in found] == [SERIAL, *(c.name for c in combinations(True))]
    by_name = {r.name: r for r in found}
    serial, base = by_name[SERIAL], by_name[BASE.name]
    for layout in LAYOUTS:
        rung = by_name[replace(BASE, layout=layout).name]
        assert rung.seconds is not None
        assert (rung.relative_error or 1.0) < problem(300).tolerance
        assert rung.extra["over_serial"] == pytest.approx((serial.seconds or 0.0) / rung.seconds)
        assert rung.extra["over_baseline"] == pytest.approx((base.seconds or 0.0) / rung.seconds)
        assert rung.over == (None if layout == "AoS" else BASE.name)
        unrolled = by_name[replace(BASE, layout=layout, unrolled=128).name]
        assert unrolled.extra["skip"] in ("same code", "illegal")
    assert by_name["SoAoAS, unroll 128, block 256"].paper == {GPU: 1.18}
    lines = LADDER.summary(found)
    assert lines[0].startswith("300 bodies: fastest is ")
    assert (
        lines[-1]
        == "paper: 87 times its serial CPU code; 1.18 by full unrolling, 1.06 by code motion and blocks of 128 threads"
    )


def test_sizes():
    assert LADDER.sizes("cuda", False) == (40_000, 100_000, 400_000, 1_000_000)
    assert LADDER.sizes("cpu", False) == (40_000,)


def check_cubins(c: Combination) -> None:
    plan = c.plan("cuda")
    for cubin in compile_kernel(reference(LAYOUTS[c.layout], FORCE), plan, "cuda", requested=plan, arch="sm_90").cubins:
        assert "warning" not in cubin.log.lower(), cubin.log
        assert (cubin.resources.spill_stores, cubin.resources.stack_bytes) == (0, 0), cubin.log
        assert cubin.resources.registers > 0


@pytest.mark.parametrize("c", combinations(False)[::17], ids=lambda c: c.name)
def test_some_compile_for_a_gpu(c):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    check_cubins(c)


@pytest.mark.slow
def test_all_compile_for_a_gpu():
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    for c in combinations(False):
        check_cubins(c)


@pytest.mark.cuda
def test_on_a_gpu():
    found = list(layouts.climb(Options("cuda", (20_000,), quick=True)))
    assert not {r.name: r.skipped for r in found if r.extra.get("skip") in ("wrong", "illegal")}
    assert {r.name for r in found if r.seconds is not None} >= {replace(BASE, layout=name).name for name in LAYOUTS}
