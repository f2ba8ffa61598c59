"""The corpus and gravity on a GPU: against float64 NumPy, the interpreter and themselves; and the occupancy model
against the driver.

About 120 kernels are compiled, which is what takes the time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from lanewise.runtime import cuda
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.runtime.occupancy import LIMITS, resident
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.support.errors import ArgumentError, DeviceError, InputError
from tests.corpus import CASES, ELEMENTWISE, LAYOUTS, PAIRWISE, Case, case
from tests.harness import Input, assert_close, expected, plan_for, run_public

pytestmark = pytest.mark.cuda

DEVICE = "cuda"
SIZES = (1, 31, 33, 1000)
PLANS = {
    "plain": Plan(block=32, tile=32),
    "merged": Plan(block=64, tile=64, targets=4),
    "sliced": Plan(block=128, tile=128, slices=4),
    "untiled": Plan(block=96, tile=0, targets=2),
    "wide tile": Plan(block=64, tile=256, slices=2, unroll=16),
    "parts": Plan(block=32, tile=32, parts=3),
    "all": Plan(block=128, tile=128, targets=2, slices=4, parts=5, unroll=0, min_blocks=2),
    "f64 sums": Plan(block=64, tile=64, accumulate="f64"),
    "f64 sums, all": Plan(block=128, tile=256, targets=2, slices=2, parts=2, accumulate="f64"),
    "largest": Plan(block=512, tile=512, slices=16),  # in float64 more would not fit shared memory
}
ELEMENT_PLANS = {"one warp": Plan(block=32), "default": Plan(block=256), "largest": Plan(block=1024)}


def complete(c: Case, plan: Plan) -> Plan:
    """Every decision made, so that no default makes another kernel for another size."""
    return plan_for(c, plan, "cuda")


def check(c: Case, layout: lw.Layout, plan: Plan, sizes: tuple[int, ...] = SIZES, sources: int | None = None) -> None:
    """Right for every size, and the same bits when it runs again."""
    for n in sizes:
        given = Input(c, n, sources, seed=n)
        found = run_public(given, layout, DEVICE, complete(c, plan))
        assert_close(found, expected(given), c)
        again = run_public(given, layout, DEVICE, complete(c, plan))
        assert [a.tobytes() for a in again] == [f.tobytes() for f in found]


def rotated(cases: tuple[Case, ...], plans: dict[str, Plan]) -> list[Any]:
    """Every case in every layout, with every plan somewhere."""
    names = list(plans)
    return [
        pytest.param(c, layout, plans[name], id=f"{c.name}-{label}-{name}")
        for i, c in enumerate(cases)
        for j, (label, layout) in enumerate(LAYOUTS.items())
        for name in (names[(5 * i + j) % len(names)],)
    ]


# ---------------------------------------------------------------- corpus


@pytest.mark.parametrize(("c", "layout", "plan"), rotated(PAIRWISE, PLANS))
def test_pairwise(c: Case, layout: lw.Layout, plan: Plan) -> None:
    check(c, layout, plan)


@pytest.mark.parametrize(("c", "layout", "plan"), rotated(tuple(c for c in ELEMENTWISE if c.records), ELEMENT_PLANS))
def test_elementwise(c: Case, layout: lw.Layout, plan: Plan) -> None:
    check(c, layout, plan)


@pytest.mark.parametrize("c", [c for c in ELEMENTWISE if not c.records], ids=lambda c: c.name)
def test_plain_arrays(c: Case) -> None:
    check(c, lw.AoS(), ELEMENT_PLANS["default"])


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("c", [case("gravity_potential"), case("count_ranks")], ids=lambda c: c.name)
def test_every_plan(c: Case, plan: str) -> None:
    check(c, lw.SoAoAS(), PLANS[plan], (1, 33, 1000))


@pytest.mark.parametrize("sources", [1, 31, 33, 1000])
@pytest.mark.parametrize("name", ["gravity", "gravity_potential", "count_ranks"])
def test_two_different_arrays(name: str, sources: int) -> None:
    """`same` is never true, and the targets may be fewer than a warp."""
    check(case(name), lw.SoAoAS(), PLANS["all"], (1, 5, 33), sources)


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_agrees_with_the_interpreter(c: Case) -> None:
    """The default plan of a small problem against the IR's own meaning."""
    given = Input(c, 17, seed=3)
    assert_close(run_public(given, lw.SoAoAS(), DEVICE), run_public(given, lw.SoAoAS(), "python"), c)


def test_float64_accumulation_is_closer() -> None:
    """A large sum of equal signs shows it."""
    c = case("gravity_potential")
    given = Input(c, 40, 60_000, seed=1)
    wanted = expected(given)[1]
    native, wide = (
        np.abs(run_public(given, lw.SoAoAS(), DEVICE, complete(c, plan))[1] - wanted).max()
        for plan in (Plan(block=64, tile=64), Plan(block=64, tile=64, accumulate="f64"))
    )
    assert wide < native / 4


# ---------------------------------------------------------------- reductions


def _wide(a: np.ndarray[Any, Any]) -> Any:
    return a.astype(np.float64 if a.dtype.kind == "f" else np.int64)


@pytest.mark.parametrize("operation", ["sum", "min", "max"])
@pytest.mark.parametrize("name", ["speed", "march", "histogram"])
def test_reductions(name: str, operation: str) -> None:
    c = case(name)
    for n in (1, 33, 1000, 5000):
        given = Input(c, n, seed=n)
        wanted = expected(given)[: len(c.kernel.lowered.results)]
        records = given.records(lw.AoS(), DEVICE)
        arrays = {k: _on_device(a) for k, a in given.arrays.items()}
        reduce = getattr(c.kernel, operation)
        found, again = (reduce(*records, **arrays, **c.values) for _ in range(2))
        assert found == again
        for f, w in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            np.testing.assert_allclose(f, getattr(_wide(w), operation)(), rtol=1e-5)


def test_reductions_of_whole_arrays() -> None:
    values = np.random.default_rng(0).normal(size=(1001, 3)).astype("f4")
    there = _on_device(values)
    np.testing.assert_allclose(lw.sum(there), values.sum(0, dtype="f8"), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(lw.min(there), values.min(0))
    np.testing.assert_array_equal(lw.max(there), values.max(0))


def _on_device(array: np.ndarray[Any, Any]) -> Any:
    if DEVICE == "cpu":
        return array
    import cupy

    return cupy.asarray(array)


# ---------------------------------------------------------------- what kernels take


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_the_driver_says_of_a_kernel_what_its_machine_code_says(c: Case) -> None:
    """Of every kernel that a call launches: registers, static shared memory, stack."""
    given = Input(c, 100)
    records, arrays = given.records(lw.SoAoAS(), DEVICE), {k: _on_device(a) for k, a in given.arrays.items()}
    executable = c.kernel.compile(*records, **arrays, **c.values).executable
    for cubin, kernel in zip(executable.cubins, executable.kernels, strict=True):
        said, stated = kernel._kernel.attributes, cubin.resources
        found = (int(said.num_regs), int(said.shared_size_bytes), int(said.local_size_bytes))
        assert found == (stated.registers, stated.shared_bytes, stated.stack_bytes)


def test_what_has_been_compiled_before_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler that comes with a driver keeps code of its own, and says nothing of it when it returns it."""
    text = 'extern "C" __global__ void thrice_kernel(float *a) { a[threadIdx.x] *= 3.0f; }'
    found = []
    for folder in ("first", "second"):
        monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path / folder))
        found.append(compile_cubin(text, "thrice", cuda.architecture(DEVICE)))
    assert found[0].resources == found[1].resources
    assert "registers" in found[1].log


# ---------------------------------------------------------------- the occupancy model


OCCUPANCY_PLANS = [
    *(Plan(block=block, tile=block, targets=targets) for block in (32, 96, 256, 512, 1024) for targets in (1, 4)),
    Plan(block=128, tile=1152),  # nearly 48 KiB of shared memory in float64
    Plan(block=64, tile=768, slices=2),
    Plan(block=256, tile=256, targets=4, min_blocks=4),  # registers are capped
]


@pytest.mark.parametrize("plan", OCCUPANCY_PLANS, ids=str)
@pytest.mark.parametrize("name", ["gravity_f64", "lennard_jones"])
def test_occupancy_model_agrees_with_the_driver(name: str, plan: Plan) -> None:
    arch = cuda.architecture(DEVICE)
    if arch not in LIMITS:
        pytest.skip(f"the model does not know {arch}")
    c = case(name)
    records = Input(c, 100).records(lw.SoAoAS(), DEVICE)
    executable = c.kernel.compile(*records, **c.values, plan=complete(c, plan)).executable
    resources, threads = executable.cubins[0].resources, executable.program.kernels[0].grid.threads
    found = resident(arch, threads, resources.registers, resources.shared_bytes).blocks
    occupancy = executable.kernels[0]._kernel.occupancy  # the driver's own calculation
    assert found == int(occupancy.max_active_blocks_per_multiprocessor(threads, 0)), resources


# ---------------------------------------------------------------- gravity


def _simulation(device: str, precision: str, count: int = 2000, **options: Any) -> Simulation:
    particles = make_initial_conditions("plummer", count, seed=5)
    return Simulation(make_bodies(particles, precision=precision, device=device), softening=0.05, **options)


def _state(simulation: Simulation) -> dict[str, np.ndarray[Any, Any]]:
    return simulation.bodies.numpy()


@pytest.mark.parametrize("precision", ["f32", "mixed", "f64"])
def test_gravity_keeps_energy_agrees_with_cpu_and_repeats(precision: str) -> None:
    first, second, host = (_simulation(d, precision) for d in (DEVICE, DEVICE, "cpu"))
    before = first.energy()
    np.testing.assert_allclose(before, host.energy(), rtol=1e-6 if precision != "f64" else 1e-12)
    for s in (first, second, host):
        s.run(steps=40, dt=1e-3)
    assert abs(first.energy() / before - 1) < 1e-5
    close = {"f32": 2e-4, "mixed": 2e-4, "f64": 1e-10}[precision]
    for name, values in _state(first).items():
        assert values.tobytes() == _state(second)[name].tobytes()
        np.testing.assert_allclose(values, _state(host)[name], rtol=0, atol=close)


@pytest.mark.parametrize("integrator", ["euler", "yoshida4"])
def test_other_integrators(integrator: str) -> None:
    there, here = (_simulation(d, "f64", 300, integrator=integrator) for d in (DEVICE, "cpu"))
    for s in (there, here):
        s.run(steps=20, dt=1e-3)
    for name, values in _state(there).items():
        np.testing.assert_allclose(values, _state(here)[name], rtol=0, atol=1e-11)


def test_pieces_change_no_bit() -> None:
    """Graphs of many steps and of one are the same launches; a callback only cuts them."""
    whole, pieces = _simulation(DEVICE, "f32"), _simulation(DEVICE, "f32")
    whole.run(steps=50, dt=1e-3)
    seen: list[int] = []
    pieces.run(steps=50, dt=1e-3, callback=lambda s: seen.append(s.step), every=7)
    assert seen == [7, 14, 21, 28, 35, 42, 49, 50]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(_state(whole).values(), _state(pieces).values(), strict=True))


@pytest.mark.parametrize("precision", ["f32", "mixed", "f64"])
def test_resume_continues_bit_for_bit(precision: str, tmp_path: Path) -> None:
    from lanewise.sims.gravity.checkpoint import Pace, read_checkpoint, write_checkpoint
    from lanewise.sims.gravity.options import Settings

    particles = make_initial_conditions("plummer", 500, seed=5)
    whole = _simulation(DEVICE, precision, 500)
    whole.run(steps=20, dt=1e-3)
    half = _simulation(DEVICE, precision, 500)
    half.run(steps=10, dt=1e-3)
    layout = str(half.bodies.layout)
    settings = Settings(steps=20, dt=1e-3, softening=0.05, precision=precision, layout=layout, device=DEVICE, seed=5)
    pace = Pace(diagnostics_every=0, snapshot_every=0, checkpoint_seconds=60.0)
    write_checkpoint(tmp_path / "half.h5", half, particles, settings, [half.diagnostics()], pace, overwrite=False)
    read = read_checkpoint(tmp_path / "half.h5")
    bodies = make_bodies(read.particles, precision=precision, device=DEVICE)
    rest = Simulation(bodies, softening=0.05, step=read.step)
    rest.run(steps=10, dt=1e-3)
    assert rest.step == 20
    assert all(a.tobytes() == b.tobytes() for a, b in zip(_state(whole).values(), _state(rest).values(), strict=True))


def test_a_broken_run_names_step_and_body() -> None:
    particles = make_initial_conditions("plummer", 64, seed=1)
    bodies = make_bodies(particles, device=DEVICE)
    velocity = particles.velocity.astype("f4")
    velocity[11] = 2e19  # its square is infinite, its force on the others is not
    bodies.velocity = velocity
    with pytest.raises(InputError, match=r"^step 1: body 11 has no finite position or velocity any more"):
        Simulation(bodies, softening=0.1).run(steps=3, dt=1e-3)


# ---------------------------------------------------------------- errors that need a GPU


def test_records_on_different_devices() -> None:
    c = case("gravity")
    given = Input(c, 5, 6)
    target, source = given.records(lw.SoA(), "cpu")[0], given.records(lw.SoA(), DEVICE)[1]
    with pytest.raises(ArgumentError) as error:
        c.kernel(target, source, **c.values)
    assert str(error.value) == "gravity: the records lie on different devices (cpu, cuda); move them with .to(device)"


def test_a_gpu_that_does_not_exist() -> None:
    with pytest.raises(
        DeviceError, match=r"^device 'cuda:99' does not exist: this machine has \d+ GPUs?, numbered from 0$"
    ):
        Input(case("gravity"), 5).records(lw.SoA(), "cuda:99")


def test_a_plan_that_does_not_fit_leaves_the_gpu_usable() -> None:
    """A block of 1024 threads with more registers than there are is refused by the compiler or capped by it, not
    launched broken.
    """
    check(case("lennard_jones"), lw.SoAoAS(), Plan(block=1024, tile=1024, targets=4), (33,))
