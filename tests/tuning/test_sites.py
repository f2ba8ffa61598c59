"""Plans of the steps of flows: measured on their sites, remembered, and used by later steps with the same bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.cli.products import job_of
from lanewise.launch import tuned_plans as store
from lanewise.launch.trial import Failure
from lanewise.patterns.sitewise.tuning import StepMeasurer
from lanewise.runtime.memory import to_host
from lanewise.sims.lbm.explain import tuned_call
from lanewise.support.errors import ArgumentError, DeviceError
from lanewise.tuning import replay
from tests.mesh import interpreted_gpu


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tuned"
    monkeypatch.setattr(store, "store_directory", lambda: folder)
    return folder


def make_flow() -> Any:
    @lw.sitewise(lw.D2Q9)
    def tuned_flow(f: lw.populations, omega: lw.f32):
        density, momentum = lw.f32(0), lw.vec2(0)
        for q in lw.D2Q9:
            density += f[q]
            momentum += f[q] * q.velocity
        u = momentum / density
        for q in lw.D2Q9:
            c = q.along(u)
            f[q] += omega * (q.weight * density * (1 + 3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u)) - f[q])

    tuned_flow.wall(1, "wall")
    return tuned_flow


def make_sites(flow: Any, streaming: str, device: str) -> Any:
    mask = np.zeros((12, 20), np.uint8)
    mask[4:7, 5:9] = 1
    sites = flow.sites(mask.shape, mask=mask, streaming=streaming, device=device)
    noise = 0.01 * np.random.default_rng(0).standard_normal((9, *mask.shape)).astype("f4")
    start = np.array([q.weight for q in lw.D2Q9], "f4")[:, None, None]
    flow.set_populations(sites, start * (1 + noise))
    return sites


@pytest.mark.quick("in-place-cpu")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("streaming", ["pull", "in-place"])
def test_a_flow_is_tuned_and_keeps_its_bits(streaming: str, device: str, own_store: Path) -> None:
    flow = make_flow()
    sites = make_sites(flow, streaming, device)
    flow.run(sites, 3, omega=1.2)
    before = flow.populations(sites)
    tuning = flow.tune(sites, omega=1.2, seconds=60)
    assert sites.step == 3
    np.testing.assert_array_equal(flow.populations(sites), before)
    assert tuning.factor >= 1
    assert len(tuning.measured) > 1
    assert not [t for t in tuning.failed if t.status == "wrong"]
    assert replay(str(tuning.path)).plan == tuning.plan
    # Another plan wins, and another process runs it: with the same bits.
    flow.run(sites, 4, omega=1.2)
    (path,) = own_store.iterdir()
    data = json.loads(path.read_text())
    data["plan"] = {"branches": "together", **({"block": 128} if device == "cuda" else {"vector_bits": 256})}
    path.write_text(json.dumps(data))
    other = make_flow()
    again = make_sites(other, streaming, device)
    other.run(again, 3, omega=1.2)
    assert (other.compile(again, omega=1.2).plan.branches, other.compile(again, omega=1.2).plan.vector_bits) == (
        "together", 0 if device == "cuda" else 256,
    )  # fmt: skip
    other.run(again, 4, omega=1.2)
    np.testing.assert_array_equal(other.populations(again), flow.populations(sites))
    assert other.compile(again, omega=1.2, plan=lw.Plan(vector_bits=0)).plan.vector_bits == 0


def test_a_plan_that_changes_bits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = make_flow()
    sites = make_sites(flow, "pull", "cpu")
    job = flow.tuning_job(sites, omega=1.2)
    measurer = StepMeasurer(job)
    other = lw.Plan(vector_bits=256).filled(job.default)
    take = StepMeasurer._take
    monkeypatch.setattr(
        StepMeasurer, "_take", lambda self, steps: take(self, steps) + bytes(self._expected is not None)
    )
    found = measurer.prepare([job.default, other])
    assert found == {
        job.default: None,
        other: Failure("wrong", "its sites have other bits than the default plan's; steps keep their bits"),
    }


def test_plans_that_store_several_sites_keep_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walls among them are stored as zeros, which is what they hold."""
    interpreted_gpu.install(monkeypatch)
    monkeypatch.setattr("lanewise.tuning.job.is_compiled", lambda device: True)
    heat = make_heat()
    sites, values = make_fields(heat, interpreted_gpu.NAME)
    job = heat.tuning_job(sites, **values)
    plans = [job.default, *(lw.Plan(targets=n).filled(job.default) for n in (2, 4))]
    assert StepMeasurer(job).prepare(plans) == dict.fromkeys(plans)


@pytest.mark.parametrize("case", ["cavity", "karman"])
def test_the_default_is_what_a_run_takes(case: str) -> None:
    """Also where the phases of a cycle differ: along the frame of a cavity only one of two has classes to
    keep apart.
    """
    job: Any = job_of(tuned_call("cpu", 400, "f32", None, {}, case))
    kernels, sites = job.flow.kernels, job.sites
    taken = [
        [k.step(sites, step, False, job.values, plan).executable.program.plan for step in range(len(sites.form.phases))]
        for k, plan in ((kernels, None), (kernels, job.default))
    ]
    assert taken[0] == taken[1]


def test_what_is_tuned_for_one_flow_is_not_for_another(own_store: Path) -> None:
    flow = make_flow()
    sites = make_sites(flow, "pull", "cpu")
    key = flow.kernels.key(sites, flow.kinds.values(sites, {"omega": 1.2}))
    plain = flow.sites((12, 20), streaming="pull", device="cpu")
    assert flow.kernels.key(plain, flow.kinds.values(plain, {"omega": 1.2})) != key
    assert key.kernel == "tuned_flow"


def test_mistakes() -> None:
    flow = make_flow()
    sites = make_sites(flow, "pull", "cpu")
    with pytest.raises(ArgumentError, match="seconds=0: wanted a positive number"):
        flow.tune(sites, omega=1.2, seconds=0)
    with pytest.raises(ArgumentError, match="omega"):
        flow.tune(sites)
    interpreted = flow.sites((4, 4), device="python")
    with pytest.raises(DeviceError, match="the device 'python' interprets kernels and has no plans to compare"):
        flow.tune(interpreted, omega=1.2)


def make_heat() -> Any:
    """With a wall, two fields, and a kind whose function differs."""

    @lw.stencil(lw.D2Q5)
    def tuned_heat(
        u: lw.Field[lw.f32], v: lw.Field[lw.f32], k: lw.Field[lw.f32], rate: lw.f32
    ) -> tuple[lw.f32, lw.f32]:
        spread = u[1] + u[2] + u[3] + u[4] - 4.0 * u[0]
        return u[0] + rate * k[0] * spread, 0.5 * (v[0] + v[3]) + 0.1 * u[0]

    @tuned_heat.kind(2, "source")
    def source(u: lw.Field[lw.f32], v: lw.Field[lw.f32]) -> tuple[lw.f32, lw.f32]:
        return u[0] + 0.25, v[0]

    tuned_heat.wall(1, "wall", u="level")
    return tuned_heat


def make_fields(heat: Any, device: str) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    mask = np.zeros((13, 20), np.uint8)
    mask[4:7, 5:9], mask[9, 3:6] = 1, 2
    u, v, k = rng.uniform(0.5, 1.5, (3, *mask.shape))
    return heat.sites(mask.shape, mask=mask, u=u, v=v, device=device), {"k": k, "rate": 0.1, "level": 2.0}


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_stencil_is_tuned_and_keeps_its_bits(device: str, own_store: Path) -> None:
    heat = make_heat()
    sites, values = make_fields(heat, device)
    heat.run(sites, 3, **values)
    before = [to_host(heat.field(sites, n)) for n in ("u", "v")]
    tuning = heat.tune(sites, **values, seconds=60)
    assert sites.step == 3
    for name, array in zip(("u", "v"), before, strict=True):
        np.testing.assert_array_equal(to_host(heat.field(sites, name)), array)
    assert (tuning.factor >= 1, len(tuning.measured) > 1) == (True, True)
    assert not [t for t in tuning.failed if t.status == "wrong"]
    assert replay(str(tuning.path)).plan == tuning.plan
    heat.run(sites, 4, **values)
    # another plan wins, and another process runs it: with the same bits
    (path,) = own_store.iterdir()
    other = {"branches": "together", **({"block": 128} if device == "cuda" else {})}
    path.write_text(json.dumps({**json.loads(path.read_text()), "plan": other}))
    again = make_heat()
    others, values = make_fields(again, device)
    again.run(others, 3, **values)
    compiled = again.compile(others, **values)
    assert (compiled.plan.branches, compiled.explain().origin) == ("together", "tune()")
    again.run(others, 4, **values)
    for name in ("u", "v"):
        np.testing.assert_array_equal(to_host(again.field(others, name)), to_host(heat.field(sites, name)))
