"""The ladder of lattice Boltzmann flow: every version is right on a CPU, and compiles for a GPU."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lanewise.compiler.pipeline import build_program
from lanewise.ladders import find_ladder, lbm, lbm_run
from lanewise.ladders.lbm import (
    AUTOMATIC,
    BOTH,
    BRANCHES,
    GPU,
    LADDER,
    LOOPS,
    ONE,
    SIZES,
    boxes,
    climb,
    forms,
    paper_of,
    summary,
)
from lanewise.ladders.lbm_flow import BOUNDARY, COLUMN, OMEGA, ROW, SOLID, STREAM, SiteBox, make_flow, values_of
from lanewise.ladders.lbm_model import SplitKernel, equation_1
from lanewise.ladders.lbm_run import SiteRunner
from lanewise.ladders.lbm_sites import mark_densely, predicted_seconds
from lanewise.ladders.lbm_truth import STEPS, FlowForm, Truth, make_truth
from lanewise.ladders.rung import Options, Rung, as_json
from lanewise.language.lattices import D2Q9, D3Q19
from lanewise.language.target import Machine
from lanewise.language.types import I32
from lanewise.launch.executable import Executable, build_executable
from lanewise.layouts import AoSoA
from lanewise.models.devices import table_model
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.flags import make_flags
from lanewise.patterns.sitewise.kinds import read_edges
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.patterns.sitewise.sites import DENSE as MANY
from lanewise.patterns.sitewise.sites import LEAST_DENSE, Sites
from lanewise.support.errors import InputError, PlanError
from tests.lbm.reference import Reference, Wall

SITES = 32**2


FEW = (ONE, BRANCHES, "f16 storage")  # versions that are soon compiled


def some_forms(*names: str) -> Callable[[str, bool], list[tuple[FlowForm, str | None]]]:
    return lambda device, quick: [(form, under) for form, under in forms(device, quick) if form.name in names]


@pytest.fixture(scope="module")
def rungs() -> Iterator[list[Rung]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lbm, "forms", some_forms(*FEW))
        yield list(climb(Options("cpu", (SITES,), quick=True)))


def short(rung: Rung) -> str:
    return rung.name.removeprefix("D2Q9, ")


def check(rungs: list[Rung]) -> None:
    """Every version is measured, right, and compared with the one that it says."""
    by_name = {r.name: r for r in rungs}
    for r in rungs:
        if short(r) == "f16 storage":
            assert r.skipped == "float16 storage is for GPUs, and this is a CPU"
            continue
        assert r.skipped is None
        assert r.relative_error is not None
        assert r.relative_error < (1e-12 if short(r) == "f64" else 1e-5)
        assert r.seconds is not None
        assert r.extra["mlups"] == pytest.approx(r.extra["sites_per_second"] * 1e-6)  # type: ignore[operator]
        if r.over is not None:
            assert r.speedup == pytest.approx((by_name[r.over].seconds or 0.0) / r.seconds)


def test_versions_are_measured_and_right(rungs: list[Rung]) -> None:
    assert [short(r) for r in rungs] == list(FEW)
    check(rungs)
    one, split = rungs[0], rungs[1]
    assert (one.over, split.over) == (None, f"D2Q9, {ONE}")
    assert (one.extra["kernels"], one.extra["branches"], split.extra["branches"]) == (1, "together", "apart")
    assert "equation_1" not in one.extra
    assert str(split.extra["equation_1_branches"]).count("rho = 1") == 3  # bulk, solids, boundary
    assert split.extra["equation_1_T"] == one.seconds


@pytest.mark.slow
def test_all_versions() -> None:
    rungs = list(climb(Options("cpu", (SITES,), quick=False)))
    assert [short(r) for r in rungs] == [form.name for form, _ in forms("cpu", False)]
    check(rungs)
    by_name = {short(r): r for r in rungs}
    assert by_name["in-place, SoA"].over == "D2Q9, pull, SoA"
    assert by_name[AUTOMATIC].over == "D2Q9, pull, AoS"
    assert by_name[LOOPS].over == by_name[BOTH].over == f"D2Q9, {ONE}"
    assert by_name[LOOPS].extra["kernels"] == 1
    assert by_name[BOTH].extra["kernels"] == (by_name[BRANCHES].extra["kernels"] or 0) + 1  # type: ignore[operator]
    assert str(by_name[BOTH].extra["equation_1_branches"]).count("rho = 1") == 4


def test_report(rungs: list[Rung]) -> None:
    found = json.loads(json.dumps(as_json({"name": "here"}, LADDER, rungs)))
    wanted = {
        "lattice",
        "shape",
        "mlups",
        "bandwidth_fraction",
        "branches",
        "kernels",
        "bytes_per_site",
        "registers",
        "occupancy",
    }
    assert all(wanted <= row.keys() for row in found["rungs"] if row["skipped"] is None)
    assert find_ladder("lbm") is LADDER
    assert LADDER.elements == "sites"


def _always(truth: Truth) -> Callable[..., Truth]:
    def make(whole: SiteBox, seed: int, *, walls: bool) -> Truth:
        del whole, seed, walls
        return truth

    return make


def test_wrong_populations_have_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_other_solids(form: FlowForm, lattice: Any) -> Any:
        return make_flow(lattice, form.precision, walls=not form.walls)

    truth = make_truth(SiteBox(D2Q9, (32, 32)), 0, walls=False)
    monkeypatch.setattr(lbm_run, "make_truth", _always(truth))
    monkeypatch.setattr(FlowForm, "flow", with_other_solids)
    monkeypatch.setattr(lbm, "forms", some_forms(ONE))
    rung = next(iter(climb(Options("cpu", (SITES,), quick=True))))
    assert rung.seconds is None
    assert rung.extra["skip"] == "wrong"
    assert str(rung.skipped).startswith("wrong: the relative error against float64 is ")


# ---------------------------------------------------------------- the problem


def test_the_mask() -> None:
    box = SiteBox(D2Q9, (40, 72))
    together, split = box.mask("together"), box.mask("split")
    assert (split[0, 1:-1] == ROW).all()
    assert (split[-1, 1:-1] == ROW).all()
    assert (split[1:-1, 0] == COLUMN).all()
    assert (split[1:-1, -1] == COLUMN).all()
    np.testing.assert_array_equal(together, np.where(split >= ROW, BOUNDARY, split))
    assert (split == SOLID).sum() == 2 * 52  # two whole discs of radius 4 in cells of 32
    cube = SiteBox(D3Q19, (30, 30, 30)).mask("split")
    assert (cube[:, :, 0] == COLUMN).sum() + (cube[0] == ROW).sum() + (cube[:, 0] == ROW).sum() > 2500
    assert set(np.unique(cube)) == {0, SOLID, ROW, COLUMN}


@pytest.mark.parametrize("lattice", [D2Q9, pytest.param(D3Q19, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("walls", [False, True])
def test_the_truth_is_that_of_the_reference(lattice: Any, walls: bool) -> None:
    box = SiteBox(lattice, (33, 41) if lattice is D2Q9 else (24, 26, 25))
    truth = make_truth(box, 3, walls=walls)
    velocities = np.array(lattice.velocities, np.float64)
    weights = np.array([float(w) for w in lattice.weights])[:, None]

    def equilibrium(excess: Any, u: Any) -> Any:
        c = velocities @ u
        return weights * (excess + (1 + excess) * (3 * c + 4.5 * c * c - 1.5 * (u * u).sum(axis=0)))

    def fluid(f: Any) -> None:
        excess = f.sum(axis=0)
        f += OMEGA * (equilibrium(excess, velocities.T @ f / (1 + excess)) - f)

    def boundary(f: Any) -> None:
        f[...] = equilibrium(f.sum(axis=0), np.array(STREAM[: lattice.dimension])[:, None])

    def solid(f: Any) -> None:
        f[...] = f[list(lattice.opposite)]

    kinds = {0: fluid, SOLID: Wall("solid") if walls else solid, BOUNDARY: boundary}
    reference = Reference(lattice, box.shape, box.mask("together"), kinds=kinds)
    reference.f = truth.arriving.astype(np.float64)
    for _ in range(STEPS):
        reference.step()
    wanted = np.where(reference.fluid, reference.f, 0.0)
    # What arrives first was rounded to float32, so that all versions start from the same numbers.
    np.testing.assert_allclose(np.where(reference.fluid, truth.after, 0.0), wanted, atol=1e-8)


# ---------------------------------------------------------------- sizes


def test_boxes() -> None:
    assert boxes(128**2) == (SiteBox(D2Q9, (128, 128)),)
    assert boxes(96**3) == (SiteBox(D3Q19, (96, 96, 96)),)
    assert boxes(2**24) == (SiteBox(D2Q9, (4096, 4096)), SiteBox(D3Q19, (256, 256, 256)))
    for device in ("cpu", "cuda"):
        for quick in (False, True):
            assert all(boxes(n) for n in SIZES(device, quick))


def test_a_number_that_is_no_box() -> None:
    with pytest.raises(InputError) as refusal:
        boxes(100_000)
    assert str(refusal.value) == (
        "100,000 sites: wanted a square for a D2Q9 box or a cube for a D3Q19 box, of edges of 16 or more; near are "
        "316^2 = 99,856 and 46^3 = 97,336"
    )
    with pytest.raises(InputError, match="near are 16\\^2 = 256"):
        boxes(4)


def test_figures_of_the_paper() -> None:
    found = [(form.name, paper_of(form, SiteBox(D2Q9, (128, 128)))) for form, _ in forms("cuda", False)]
    assert [(n, p) for n, p in found if p] == [(BOTH, {GPU: 1.301})]
    assert paper_of(FlowForm(name=BOTH), SiteBox(D2Q9, (256, 256))) == {GPU: 1.24}
    assert paper_of(FlowForm(name=BOTH), SiteBox(D2Q9, (512, 512))) is None


# ---------------------------------------------------------------- equation 1 and what is said


def test_equation_1() -> None:
    parts = (SplitKernel("bulk", 0, 0.75, 1.0), SplitKernel("kind1", 1, 0.25, 0.5))
    model = replace(table_model("sm_90"), graph_launch_seconds=1e-6)
    found = equation_1(10e-6, 0.5, parts, {0: 8e-6, 1: 16e-6}.__getitem__, model)
    assert found.speedup == pytest.approx(10 / (6 * 0.5 / 1.0 + 4 * 0.5 / 0.5 + 1))
    assert found.as_extra()["equation_1_sigma"] == 1e-6
    assert found.as_extra()["equation_1_branches"] == "bulk: t = 6 us, rho = 1; kind1: t = 4 us, rho = 0.5"


def rung(name: str, seconds: float, **extra: Any) -> Rung:
    extra = {"lattice": "D2Q9", "shape": "128x128", "storage": "f32", "mlups": 16.384e-3 / seconds, **extra}
    speedup = extra.pop("speedup", None)
    return Rung(name=f"D2Q9, {name}", bodies=16_384, seconds=seconds, speedup=speedup, extra=extra)


@pytest.mark.parametrize(
    ("gain", "choice", "verdict"),
    [
        (0.5, "together", "does not pay here; lanewise's automatic choice is branches='together', as the measurement says"),
        (0.5, "apart", "does not pay here; lanewise's automatic choice is branches='apart', which the measurement does not support"),
        (1.5, "apart", "pays here; lanewise's automatic choice is branches='apart', as the measurement says"),
        (1.01, "together", "does not pay here: no change; lanewise's automatic choice is branches='together', as the measurement says"),
    ],
)  # fmt: skip
def test_the_summary_says_whether_splitting_pays(gain: float, choice: str, verdict: str) -> None:
    split = replace(rung(BOTH, 2e-6 / gain, speedup=gain, equation_1=0.9), paper={GPU: 1.301})
    lines = summary([rung(ONE, 2e-6), split, rung(AUTOMATIC, 1.9e-6, branches=choice)])
    assert f"(eq. 1 says 0.900, 1.301 on the paper's {GPU})" in lines[1]
    assert lines[2] == f"D2Q9 128x128: splitting branches {verdict}"


# ---------------------------------------------------------------- many special sites


@pytest.mark.parametrize(
    ("box", "dense"), [(SiteBox(D3Q19, (64, 64, 64)), True), (SiteBox(D2Q9, (512, 512)), False)], ids=str
)
def test_boxes_that_a_gpu_has_no_lists_for(box: SiteBox, dense: bool) -> None:
    """More than a tenth of their sites has a word, with or without words for what lies at faces."""
    numbers: frozenset[int] = frozenset()
    for placed in (True, False):
        words = make_flags(
            box.lattice, box.mask("together"), read_edges({}, box.lattice.dimension, {}), numbers, placed=placed
        )
        assert box.count >= LEAST_DENSE
        assert (np.count_nonzero(words) > MANY * box.count) == dense


@pytest.mark.parametrize("name", [BRANCHES, BOTH])
def test_without_lists_nothing_is_split(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel itself refuses, too, and the ladder says why in its own words."""
    make = FlowForm.sites

    def dense(self: FlowForm, *given: Any) -> Sites:
        sites = make(self, *given)
        mark_densely(sites, True)
        return sites

    (form,) = (f for f, _ in forms("cpu", False) if f.name == name)
    box = SiteBox(D2Q9, (32, 32))
    sites = dense(form, box, "cpu")
    sites.fresh = False  # the phase that follows links
    with pytest.raises(PlanError, match="so many of its sites are special that each reads its flags"):
        form.flow(D2Q9).compile(sites, plan=form.plan, **values_of(D2Q9))
    monkeypatch.setattr(FlowForm, "sites", dense)
    rung = SiteRunner(Options("cpu", (SITES,), quick=True), box).measure(form, None)
    assert (rung.skipped, rung.seconds) == (lbm_run.DENSE, None)


# ---------------------------------------------------------------- GPUs

CUDA_FORMS = {form.name: form for form, _ in forms("cuda", False)}


def compiled(form: FlowForm, box: SiteBox, step: int) -> tuple[Sites, Executable]:
    """What a GPU of compute capability 9.0 would run, without one."""
    form = replace(form, layout=form.layout or AoSoA(32), streaming=form.streaming or "pull")
    flow, sites, values = form.flow(box.lattice), form.sites(box, "python"), values_of(box.lattice)
    given = flow.kinds.values(sites, values)  # pyright: ignore[reportPrivateUsage]
    reference = build_sitewise(flow.kernels.arguments(sites, step, False, given), I32)  # pyright: ignore[reportPrivateUsage]
    plan = complete_site_plan(form.plan, Machine("cuda", 132), reference)
    return sites, build_executable(build_program(reference, plan, "cuda"), "cuda", arch="sm_90")


@pytest.mark.quick(
    "pull, SoA-<lanewise lattice D2Q9>",
    "pull, AoSoA(32)-<lanewise lattice D2Q9>",
    "in-place, AoSoA(32)-<lanewise lattice D2Q9>",
    "branches split-<lanewise lattice D2Q9>",
    "automatic-<lanewise lattice D2Q9>",
    "half-way walls-<lanewise lattice D2Q9>",
    "f16 storage-<lanewise lattice D2Q9>",
    "f64-<lanewise lattice D2Q9>",
)
@pytest.mark.parametrize("lattice", [D2Q9, pytest.param(D3Q19, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("name", CUDA_FORMS)
def test_compiles_for_sm_90(name: str, lattice: Any) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    form, box = CUDA_FORMS[name], SiteBox(lattice, (64, 64) if lattice is D2Q9 else (32, 32, 32))
    for step in (0, 1) if form.streaming == "in-place" else (0,):
        sites, executable = compiled(form, box, step)
        split = form.apart
        assert (len(executable.cubins) > 1) == split
        for cubin in executable.cubins:
            assert 0 < cubin.resources.registers <= 128
        sites.step, sites.fresh = step, False
        expected = predicted_seconds(sites, executable, values_of(lattice), table_model("sm_90"))
        assert (expected is None) == (split or form.streaming in ("push", "in-place"))
        assert expected is None or 1e-7 < expected < 1e-3


@pytest.mark.cuda
@pytest.mark.parametrize("count", [128**2, 32**3, 512**2])  # 512^2 is 64^3, too, where nothing is split
def test_on_a_gpu(count: int) -> None:
    found = list(climb(Options("cuda", (count,), quick=True)))
    assert len(found) == len(boxes(count)) * len(list(forms("cuda", True)))
    for r in found:
        assert r.skipped is None or r.skipped == lbm_run.DENSE, (r.name, r.skipped)
        if r.seconds is not None and r.extra["branches"] == "apart":
            assert isinstance(factor := r.extra["equation_1"], float)
            assert factor > 0
    assert lbm.best_layout("cuda") == next(r.layout for r in found if r.name.endswith(f", {AUTOMATIC}"))
