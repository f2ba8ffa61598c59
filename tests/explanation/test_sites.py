"""Explanations of steps over the sites of a lattice: what they say, and that the time that they foresee is that of the
bytes.
"""

import io
import json
import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import lanewise as lw
from lanewise.compiler.optimisations import OPTIMISATIONS
from lanewise.explanation.offline import compile_offline
from lanewise.models.devices import table_model
from lanewise.models.roofline import SiteTraffic, step_time
from lanewise.planning.plan import Plan
from lanewise.support.errors import ArgumentError, InputError
from tests.kernels.test_sitewise import EDGES, FLOW, MASK, VALUES


def compiled(streaming: str, plan: Plan | None = None, device: str = "cpu"):
    sites = FLOW.sites((4, 5), mask=MASK, edges=EDGES, streaming=streaming, device=device)
    sites.step, sites.fresh = 1, False
    return FLOW.compile(sites, plan=plan, **VALUES)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("streaming", ["in-place", "pull", "push"])
@pytest.mark.parametrize("device", ["cpu", "python"])
def test_a_step_is_explained(streaming, device):
    found = compiled(streaming, device=device).explain()
    facts = json.loads(found.json())
    assert [r["field"] for r in facts["optimisations"]] == [o.field for o in OPTIMISATIONS]
    assert all(r["reason"].strip() for r in facts["optimisations"])
    assert (facts["pattern"], facts["counts"], facts["layout"]) == ("sitewise", {"sites": 20}, {"f": "SoA"})
    assert facts["analysis"]["operations"].keys() == {"flow", "source"}
    assert facts["analysis"]["updated_sites"] == 18
    words, bits = (4 * 20, 0) if streaming == "in-place" else (4 * facts["analysis"]["special_sites"], 2 * 20 / 8)
    assert facts["analysis"]["bytes_per_site"] == pytest.approx(2 * 9 * 4 + (words + bits) / 18)
    text = str(found)
    assert max(map(len, text.splitlines())) <= 120
    assert f"5 x 4 sites of D2Q9, {streaming}" in text
    assert "f: 9 f32 read and written by 18 sites" in text
    assert "boxes that fit caches take less" in text
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(found)
    assert "branch splitting" in console.export_text()
    assert (facts["bound"] == {}) == (device == "python")


SUBSETS = tuple(kinds for r in range(1, 5) for kinds in combinations(range(4), r))


def check_forms(found) -> dict[str, Any]:
    """All forms of an explanation are there, without infinities: the facts."""
    shortcuts = "that ignore NaN, infinity and rounding"
    forms = (str(found), found.text(all=True), found._repr_html_(), repr(found), found.json())
    shown = [re.sub(r"\s+", " ", form).replace(shortcuts, "") for form in forms]
    assert not [word for form in shown for word in re.findall(r"\b(?:nan|inf|infinity)\b", form, re.IGNORECASE)]
    assert all(share is None or np.isfinite(share) for share in found.shares())
    return json.loads(forms[-1], parse_constant=pytest.fail)["analysis"]


@pytest.mark.slow
@pytest.mark.parametrize("streaming", ["in-place", "pull", "push"])
@pytest.mark.parametrize("kinds", SUBSETS, ids=str)
def test_masks_of_all_kinds(kinds, streaming):
    check_mask(kinds, streaming)


@pytest.mark.parametrize("kinds", [(1,), (2, 3)], ids=str)
def test_masks_of_some_kinds(kinds):
    check_mask(kinds, "push")


def check_mask(kinds, streaming):
    """Among them those of walls alone: no site is updated."""
    mask = np.resize(kinds, (4, 5))
    sites = FLOW.sites((4, 5), mask=mask, edges=EDGES, streaming=streaming, device="cpu")
    facts = check_forms(FLOW.compile(sites, **VALUES).explain())
    updated = int(np.isin(mask, (0, 1)).sum())
    assert facts["updated_sites"] == updated
    assert (facts["bytes_per_site"] is None) == (updated == 0)


@pytest.mark.parametrize(("shape", "kinds"), [((1, 1), (1,)), ((3, 4), (1, 2)), ((3, 4), (0, 2))], ids=str)
def test_masks_of_stencils(kinds, shape):
    @lw.stencil(lw.D2Q5)
    def kernel(u: lw.Field[lw.f32]) -> lw.f32:
        return u[1]

    kernel.wall(1, "wall")
    kernel.wall(2, "cold", u="level")
    mask = np.resize(kinds, shape)
    sites = kernel.sites(shape, mask=mask, edges={"x": "wall", "y": "cold"}, device="cpu")
    found = kernel.compile(sites, level=0.5).explain()
    assert check_forms(found)["updated_sites"] == (mask == 0).sum()
    assert ("about sites that are skipped: no site is updated" in str(found)) == (0 not in kinds)


def test_the_row_of_the_classes_of_sites():
    together, apart = (compiled("pull", Plan(branches=b)).explain().row("branches") for b in ("together", "apart"))
    assert (together.applied, apart.applied) == (False, True)
    assert apart.reason == "the bulk and the special sites of each kind in separate kernels"
    assert together.reason == "possible with apart; there is no prediction"


def test_only_steps_are_explained():
    call = compiled("pull")
    with pytest.raises(ArgumentError, match=r"^flow: explained is what flow\.compile\(sites, \.\.\.\) gives$"):
        replace(call, step=None).explain()


@pytest.mark.parametrize(
    ("storage", "copies", "together", "words", "mlups"),
    [
        (4, 2, 1, False, 27_141),
        (4, 1, 1, True, 23_794),
        (2, 2, 2, False, 52_890),
        (2, 2, 1, False, 41_168),
        (2, 1, 1, True, 33_955),
    ],
)
def test_the_foreseen_time_is_near_the_measured_one(storage, copies, together, words, mlups):
    """D3Q19 on 512 x 512 x 256 sites of an NVIDIA H200: bench/results/gpu_lbm.md."""
    count = 512 * 512 * 256
    traffic = SiteTraffic(count, count, 0, 19, storage, copies, words)
    bound, _, seconds = step_time(traffic, 200, False, table_model("sm_90"), together)
    assert bound.limiter == "memory"
    assert count / seconds / 1e6 == pytest.approx(mlups, rel=0.06)


def test_a_flow_is_explained_without_sites_and_without_a_gpu():
    offline = compile_offline(FLOW, 10_000, "cuda", arch="sm_90", layout=lw.SoA())
    facts = offline.explain().as_dict()
    assert facts["counts"] == {"sites": 10_000}
    assert facts["layout"] == {"f": "SoA"}
    assert facts["resources"]["registers"] > 0
    assert facts["bound"]["unit"] == "memory"
    assert 'extern "C" __global__' in offline.executable.source
    with pytest.raises(InputError, match=r"^flow has no value 'level' to set; it has omega$"):
        compile_offline(FLOW, 100, "cpu", values={"level": 1.0})


def test_more_operations_than_bytes():
    traffic = SiteTraffic(1000, 1000, 0, 9, 8, 2, False, 1)
    bound, _, seconds = step_time(traffic, 100_000, True, table_model("sm_90"))
    assert bound.limiter == "fp64"
    assert seconds >= bound.seconds
    assert np.isfinite(seconds)


@lw.stencil(lw.D2Q5)
def fused(t: lw.Field[lw.f32]) -> lw.f32:
    x = t[1]
    for _ in range(64):
        x = x * t[2] + t[3]
    return x


@lw.stencil(lw.D2Q5)
def either(t: lw.Field[lw.f32]) -> lw.f32:
    x = t[1]
    if x > 0.5:
        for _ in range(64):
            x = x * t[2] + t[3]
    return x


@pytest.mark.parametrize(("kernel", "most"), [(fused, 64), (either, 0)])
def test_the_least_time_of_a_step_counts_what_every_site_does(kernel, most):
    """A product and the sum that takes it in are one instruction, and a branch may be passed over."""
    found = compile_offline(kernel, 1 << 22, "cuda", arch="sm_90").explain(measure_resources=False)
    model, sites = table_model("sm_90"), found.counts["sites"]
    memory = model.beyond_caches(2 * 4 * sites) / model.most_bandwidth
    least = max(most * sites / (model.cycles * model.fp32_lanes), memory)
    assert found.bound.seconds <= 1.001 * least
    assert found.bound.seconds >= 0.9 * least


@lw.stencil(lw.D2Q5)
def by_argument(t: lw.Field[lw.f32], n: lw.i32) -> lw.f32:
    x = t[1]
    for _ in range(n):
        x = 0.5 * (x + t[2] * t[3])
    return x


@lw.stencil(lw.D2Q5)
def by_data(t: lw.Field[lw.f32], n: lw.i32) -> lw.f32:
    x = t[1]
    while x > 1e-3:
        x = 0.5 * x * t[2]
    return x


def rounds(count: int) -> Any:
    @lw.stencil(lw.D2Q5)
    def constant(t: lw.Field[lw.f32], n: lw.i32) -> lw.f32:
        x = t[1]
        for _ in range(count):
            x = 0.5 * (x + t[2] * t[3])
        return x

    return constant


many, few = rounds(1000), rounds(30)


@pytest.mark.parametrize(("kernel", "foreseen"), [(by_argument, False), (by_data, False), (many, False), (few, True)])
def test_loops_that_the_model_of_steps_does_not_know_have_no_prediction(kernel: Any, foreseen: bool) -> None:
    """The prediction was that of one round, up to 3,800 times too fast."""
    sites = kernel.sites((500, 500), t=np.ones((500, 500), np.float32))
    found = kernel.compile(sites, n=1000).explain()
    assert (found.bound.predicted_seconds is not None) == foreseen
    assert ("no bound and no prediction" in str(found)) != foreseen
    assert ("sites are computed one after the other" in str(found)) != foreseen
    assert all((row.predicted is not None) == foreseen for row in found.launches)


def test_every_round_of_a_loop_counts() -> None:
    sites = few.sites((2000, 2000), t=np.ones((2000, 2000), np.float32))
    busy = few.compile(sites, n=1).explain().bound.units
    assert busy["fp32"] > 80 * 2000 * 2000 / 16 / 2 / 6e9
