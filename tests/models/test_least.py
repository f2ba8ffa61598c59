"""The least time is a bound: nothing that was ever measured is faster, and what data decide is not in it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from bench.gpu_reductions import PLANS, closest, gaussian, powers, soft
from bench.gpu_scatter import add32, add64, count32, largest
from bench.gpu_tables import between, copied, drawn
from bench.gpu_tables import looked_up as looked
from bench.optimiser import SUBJECTS
from lanewise.cli.products import compiled
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.optimisations import BuiltPrograms
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.explanation.estimate import Estimates
from lanewise.explanation.offline import compile_offline
from lanewise.explanation.report import Explanation
from lanewise.ir.names import COUNT, length_of
from lanewise.ladders.compiler_problems import BENCHMARKS
from lanewise.ladders.compiler_run import bound_of
from lanewise.ladders.run import predict_executable
from lanewise.language.target import Machine
from lanewise.language.types import I32
from lanewise.launch.arguments import Arguments
from lanewise.models.devices import table_model
from lanewise.models.least import least_time
from lanewise.models.predict import predict
from lanewise.models.roofline import SiteTraffic, step_time
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.elementwise.scattered import scattered_arrays_of
from lanewise.patterns.elementwise.scattering import build_scattering
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.planning.plan import NEUTRAL
from lanewise.sims.boids.explain import explained as boids
from lanewise.sims.waves.explain import explained as waves
from tests import corpus_kernels
from tests.corpus import ELEMENTWISE, PAIRWISE
from tests.models.measured import RESULTS, plan_of, product_rows, sweep_rows
from tests.models.subjects import environment, reference
from tests.models.threadwise_rows import Shaped
from tests.models.threadwise_rows import rows as threadwise_rows

H200 = table_model("sm_90")


@dataclass(frozen=True)
class Measured:
    """One time of a result file, the explanation that speaks of it, and how far a prediction may be off."""

    file: str
    row: str
    seconds: float
    explain: Callable[[], Explanation]
    times: float = 2.5

    def __str__(self) -> str:
        return f"{self.file}: {self.row}"


def read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text())


def _waves(sfts: int, dterms: int) -> Explanation:
    values = {"sfts": sfts, "detectors": 2, **({"dterms": dterms} if dterms else {})}
    (call,) = waves("cuda", 1_000_000, "f32", None, values)[1]
    return compiled(call, "cuda", "sm_90").explain(measure_resources=False)


def demodulation() -> list[Measured]:
    rows = read("gpu_waves.json")["rows"]
    best = {
        kind: min(float(np.median(r["seconds"])) for r in rows if r["version"].startswith(kind))
        for kind in ("interpolated", "dirichlet, AoS, targets=1, block=128")
    }
    return [
        Measured("gpu_waves.json", "interpolated", best["interpolated"], lambda: _waves(45, 0)),
        Measured("gpu_waves.json", "dirichlet", best["dirichlet, AoS, targets=1, block=128"], lambda: _waves(45, 8)),
    ]


def _flock(agents: int, world: float, kernel: int) -> Explanation:
    values = {"world": world, "k": 7, "radius": 18**0.5}
    call = boids("cuda", agents, "f32", None, values)[1][kernel]
    return compiled(call, "cuda", "sm_90").explain(measure_resources=False)


def flocks() -> list[Measured]:
    """Stages of a step: where agents fill the world evenly, as dense as a million in a world of 400."""
    found: list[Measured] = []
    for section in read("gpu_boids.json")["sections"]:
        for row in section["rows"] if section["title"] == "Stages of a step, ms" else ():
            named = dict(zip(section["header"], row, strict=True))
            size, kind = named["agents, search"].split(", ")
            agents = 2 ** int(size.removeprefix("2^"))
            if kind == "static-grid" and agents <= 2**20:  # more take long to make
                world = 400 * (agents / 2**20) ** (1 / 3)
                for kernel, stage in enumerate(("search", "update")):
                    found.append(
                        Measured(
                            "gpu_boids.json",
                            f"{size} {stage}",
                            named[stage] / 1e3,
                            partial(_flock, agents, world, kernel),
                        )
                    )
    return found


EVERY = [*demodulation(), *flocks()]


@pytest.mark.slow
@pytest.mark.parametrize("measured", EVERY, ids=str)
def test_products_are_never_faster_than_their_bound(measured: Measured) -> None:
    """And what `explain` foresees of them is near what was measured, with or without a bound."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    found = measured.explain().bound
    assert found is not None
    assert found.seconds is None or found.seconds < measured.seconds
    assert found.predicted_seconds is not None
    assert measured.seconds / measured.times < found.predicted_seconds < measured.seconds * measured.times


@pytest.mark.parametrize("row", [*sweep_rows(), *product_rows()], ids=str)
def test_gravity_is_never_faster_than_its_bound(row: Any) -> None:
    built = row.program()
    least = least_time(built, row.environment, H200)
    assert (
        0.3 * row.bodies**2 / row.pairs_per_second * (row.bodies > 10_000)
        < least.seconds
        < row.bodies**2 / row.pairs_per_second
    )


def optimised() -> list[dict[str, Any]]:
    return read("optimiser_cuda.json")["rows"]


@pytest.mark.parametrize("row", optimised(), ids=lambda r: f"{r['kernel']} {r['elements']}")
def test_the_fastest_plan_of_a_search_is_not_faster_than_its_bound(row: dict[str, Any]) -> None:
    subject = next(s for s in SUBJECTS if s.name == row["kernel"])
    for name, measured in (("default", row["default"]), ("best", row["exhaustive"])):
        plan = plan_of(row[f"{name}_plan"]).filled(NEUTRAL)
        built = build_program(reference(subject), plan, "cuda")
        assert least_time(built, environment(subject, row["elements"]), H200).seconds < measured


def steps() -> list[tuple[str, SiteTraffic, float]]:
    """Flows and stencils: the least that their sites move, without flags and special sites, and the time of a step."""
    found: list[tuple[str, SiteTraffic, float]] = []
    for row in read("gpu_lbm.json")["rows"]:
        lattice, real, *rest = row["version"].split(", ")
        copies = 1 if "in-place" in rest else 2
        traffic = SiteTraffic(row["work"], row["work"], 0, int(lattice[3:]), 2 if real == "f16" else 4, copies, False)
        found.append((row["version"], traffic, row["median"]))
    for group in read("gpu_stencil.json")["groups"]:
        for row in group:
            box = re.search(r"(\d+) x (\d+)(?: x (\d+))?, f(\d+)", row["name"])
            if box is not None:
                sites = math.prod(int(n) for n in box.groups()[:3] if n)
                fields = 2 if "Gray-Scott" in row["name"] else 1
                found.append(
                    (row["name"], SiteTraffic(sites, sites, 0, fields, int(box[4]) // 8, 2, False), row["us"] / 1e6)
                )
    return found


def test_no_step_of_a_flow_or_a_stencil_is_faster_than_its_bound() -> None:
    assert len(steps()) > 35
    wrong = [
        (name, bound.seconds, seconds)
        for name, t, seconds in steps()
        if (bound := step_time(t, 1, False, H200)[0]).seconds >= seconds
    ]
    assert wrong == []


def test_no_random_numbers_are_stored_faster_than_the_bound() -> None:
    rows = read("gpu_random.json")["rows"]
    assert rows
    assert [
        r["version"] for r in rows if H200.beyond_caches(r["work"]) / H200.most_bandwidth >= min(r["seconds"])
    ] == []


# ---------------------------------------------------------------- array kernels


NAIVE_ARRAYS = list(threadwise_rows())
SOME = {
    "laplace 512, targets=4, block=256, across=32, rows=1, layers=1", "outer 16384, naive: block=256",
    "matrix-vector 16384, slices=512, unroll=4, block=512", "histogram 1e6, by default: targets=4, block=256",
}  # fmt: skip


@pytest.mark.parametrize(
    "row", [r if str(r) in SOME else pytest.param(r, marks=pytest.mark.slow) for r in NAIVE_ARRAYS], ids=str
)
def test_no_plan_of_an_array_kernel_is_faster_than_its_bound(row: Shaped) -> None:
    assert 0 < least_time(row.program(), row.environment, H200).seconds < row.seconds


def test_every_plan_of_the_array_kernels_is_tried() -> None:
    assert len(NAIVE_ARRAYS) > 150
    assert {str(r) for r in NAIVE_ARRAYS} >= SOME


def test_no_rung_of_the_ladder_of_array_kernels_is_faster_than_its_bound() -> None:
    """Libraries neither; and the document has the shares of the default plans."""
    named = {b.name: b for b in BENCHMARKS}
    text = (RESULTS.parents[1] / "docs/ladder-compiler.md").read_text(encoding="utf-8")
    rungs = [r for r in read("ladders/compiler.json")["rungs"] if r["seconds"] is not None]
    assert len(rungs) > 100
    for r in rungs:
        bound = bound_of(named[r["benchmark"]], r["n"], H200).seconds
        assert (bound or 0.0) < r["seconds"], r["name"]
        if r["step"] == "default plan":
            share = "" if bound is None else f"{bound / r['seconds']:.0%}"
            assert re.search(rf"^\| `{r['benchmark']}` \|.*\| {share} \|$", text, re.MULTILINE), (r["name"], share)


# ---------------------------------------------------------------- elements with arrays, and reductions of pairs


def measured_in(name: str, pattern: str) -> dict[str, float]:
    """Milliseconds of a result that is text, by what the first group of the pattern finds."""
    found = re.findall(pattern, (RESULTS / name).read_text(encoding="utf-8"), re.MULTILINE)
    return {key: float(ms) for key, ms in found}


def elements(kernel: Any, count: int, length: int) -> float:
    """The least time of a kernel over elements with arrays of that length, by its default plan."""
    signature, call = kernel.signature, Arguments(variant=(False, True))
    plain = ElementwiseArguments({}, dict(signature.parameters), {}, signature.tables)
    scattered = scattered_arrays_of(signature, call)
    reference = (
        build_scattering(kernel.lowered, replace(plain, tables={}), scattered, I32)
        if signature.scattered
        else build_elementwise(kernel.lowered, plain, I32)
    )
    plan = complete_plan(None, Machine("cuda", 132), describe_work(reference, count))
    counts = {COUNT: count, **{length_of(n, 0): length for n in kernel.signature.arrays}}
    return least_time(build_program(reference, plan, "cuda"), counts, H200).seconds


def test_no_look_up_and_no_scatter_is_faster_than_its_bound() -> None:
    """Scatters of floats add to words and turn them into sums behind the kernel: with the counts of integers these are lower bounds, too."""
    looked_up = measured_in("gpu_tables.md", r"^\| (`x.*?\| [\w,]+) \| ([\d.]+)")
    scattered = measured_in("gpu_scatter.md", r"^\| (.*?) \| lanewise(?:, exact)? \| ([\d.]+)")
    kernels = {"`x + n`": copied, "`x + t[n]`": looked, "lw.interpolate": between, "index_of": drawn}
    assert len(looked_up) == 8
    for row, ms in looked_up.items():
        kernel = next(k for n, k in reversed(kernels.items()) if n.rstrip("`") in row)
        length = row.rpartition("| ")[2].replace(",", "")
        assert 0 < elements(kernel, 100_000_000, int(length) if length != "none" else 1) < ms / 1e3, row
    tasks = {
        "add float32": add32,
        "add float32, 60 exponents": add32,
        "add float64": add64,
        "count": count32,
        "largest float32": largest,
    }
    assert scattered.keys() >= tasks.keys()
    for name, kernel in tasks.items():
        assert 0 < elements(kernel, 100_000_000, 1_000_000) < scattered[name] / 1e3, name


def reductions() -> list[tuple[str, Any, lw.Plan, float]]:
    """Versions of gpu_reductions by lanewise: name, kernel, plan, the least of its times."""
    found: list[tuple[str, Any, lw.Plan, float]] = []
    for name, kernel in (("argmin", closest), ("gaussian", gaussian), ("logsumexp", soft)):
        for row in read(f"gpu_reductions_{name}.json")["rows"]:
            _, *said = row["version"].split(", ", 1)
            text = said[0] if said else ""
            fast = text.endswith("fast math")
            text = text.removesuffix("fast math").removesuffix(", ")
            own = powers if text.startswith("powers of two") else kernel
            plan = PLANS.get(text.removeprefix("powers of two").removeprefix(", ") or "default") or lw.Plan()
            if row["version"].startswith("lanewise"):
                found.append((f"{name}, {row['version']}", own, replace(plan, fast_math=fast), min(row["seconds"])))
    return found


@pytest.mark.parametrize(
    "row",
    [pytest.param(r, marks=() if r[0].endswith("default") else pytest.mark.slow) for r in reductions()],
    ids=lambda r: r[0],
)
def test_no_reduction_of_pairs_is_faster_than_its_bound(row: tuple[str, Any, lw.Plan, float]) -> None:
    _, kernel, wish, seconds = row
    record, layout = kernel.signature.parameters["point"], lw.SoAoAS()
    made = build_pairwise(
        kernel.lowered, PairwiseArguments(("point", record, layout), ("center", record, layout), {}, False), I32
    )
    plan = complete_plan(wish, Machine("cuda", 132), describe_work(made, 1_000_000))
    counts = dict(zip((c.name for c in made.counts), (1_000_000, 100_000), strict=True))
    assert 0.2 * seconds < least_time(build_program(made, plan, "cuda"), counts, H200).seconds < seconds


def test_no_bound_of_a_cpu_is_printed() -> None:
    """Rows of bench/results read 2.4 times as fast as a copy, which was the bandwidth of the model."""
    found = compile_offline(both_sides, 1 << 20, "cpu").explain(measure_resources=False)
    assert found.bound is not None
    assert found.bound.seconds is found.bound.share is None
    assert found.bound.predicted_seconds is not None
    assert found.warnings == ("no bound: this CPU's highest clock, execution units and memory bandwidth are unknown",)
    assert "at least" not in str(found)
    assert "of the bound" not in str(found)


# ---------------------------------------------------------------- what data decide


class P(lw.Record):
    x: lw.f32
    n: lw.i32


@lw.elementwise
def as_long_as_data_tell(p: P) -> lw.f32:
    total = lw.f32(0)
    for k in range(p.n):
        total += lw.sqrt(p.x + k)
    return total


@lw.elementwise
def until_data_end_it(p: P) -> lw.f32:
    total = p.x
    for k in range(100):
        if total > 50:
            break
        total += lw.sqrt(total + k)
    return total


@lw.elementwise
def one_side(p: P) -> lw.f32:
    if p.n > 0:
        return lw.sqrt(lw.sqrt(lw.sqrt(lw.exp(p.x))))
    return p.x


@lw.elementwise
def both_sides(p: P) -> lw.f32:
    return lw.sqrt(lw.sqrt(lw.sqrt(lw.exp(p.x))))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_no_bound_where_data_tell_how_often_a_loop_runs(device: str) -> None:
    if device == "cuda":
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    arch = "sm_90" if device == "cuda" else None
    found = compile_offline(as_long_as_data_tell, 1 << 20, device, arch=arch).explain(measure_resources=False)
    assert found.bound is not None
    assert found.bound.seconds is found.bound.predicted_seconds is found.bound.share is None
    assert "depends on data" in found.warnings[0]
    assert found.warnings[0] in str(found)
    assert "at least" not in str(found)
    assert all(r.predicted is None for r in found.rows)
    assert found.as_dict()["bound"]["seconds"] is None
    early = compile_offline(until_data_end_it, 1 << 20, device, arch=arch).explain(measure_resources=False)
    assert early.bound is not None
    assert early.bound.seconds is early.bound.share is None
    assert early.bound.predicted_seconds is not None
    assert "may end early" in early.warnings[0]


def test_what_a_branch_leaves_out_is_not_in_the_bound() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    one, both = (compile_offline(k, 1 << 20, "cuda", arch="sm_90") for k in (one_side, both_sides))
    a, b = (least_time(x.executable.program, x.subject.environment, H200).details for x in (one, both))
    assert a["special"] < 0.1 * b["special"]
    assert predict(one.executable.program, one.subject.environment, H200).busy.details["special"] > 0.5 * b["special"]


@pytest.mark.quick(
    "cpu-kick_drift",
    "cpu-speed",
    "cpu-grow",
    "cpu-saxpy_norm",
    "cpu-march",
    "cpu-histogram",
    "cpu-gravity",
    "cpu-gravity_f64",
    "cpu-gravity_mixed",
    "cpu-gravity_potential",
    "cpu-lennard_jones",
    "cpu-yukawa",
    "cpu-count_ranks",
    "cpu-order",
    "cpu-ranked_distance",
    "cuda-kick_drift",
    "cuda-speed",
    "cuda-histogram",
    "cuda-gravity",
    "cuda-count_ranks",
    "cuda-ranked_distance",
)
@pytest.mark.parametrize("name", [c.name for c in (*ELEMENTWISE, *PAIRWISE)])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_explanations_and_ladders_print_one_bound(name: str, device: str) -> None:
    """And no unit surely works longer than it is expected to, down to a part of a warp."""
    made = compile_offline(getattr(corpus_kernels, name), 1000, device, arch="sm_90" if device == "cuda" else None)
    program, model = made.executable.program, made.subject.model
    assert model is not None
    for count in (1, 9, 33, 50_000):
        environment = {n: count if n in made.subject.counts else v for n, v in made.subject.environment.items()}
        environment |= {c.name: count for c in program.reference.counts}
        subject = replace(made.subject, environment=environment)
        printed = Estimates(subject, BuiltPrograms(subject.reference, subject.kind)).own_bound()
        climbed = predict_executable(made.executable, model, count, environment)
        assert printed is not None
        assert (printed.seconds, printed.least_unit) == (
            climbed.bound,
            "" if climbed.bound is None else climbed.limiter,
        )
        expected = predict(program, environment, model)
        if not (expected.unknown.guessed or expected.unknown.expected or expected.unknown.early):
            for unit, seconds in least_time(program, environment, model).details.items():
                assert seconds <= expected.busy.details.get(unit, 0.0) * (1 + 1e-12), (count, unit)


def test_what_a_cache_may_keep_is_not_in_the_bound() -> None:
    """An array that the L2 cache holds from one launch to the next takes no memory."""
    small, large = (compile_offline(both_sides, n, "cpu") for n in (1 << 16, 1 << 26))
    cached = replace(H200, kind="cpu")
    memory = [least_time(x.executable.program, x.subject.environment, cached).details["memory"] for x in (small, large)]
    assert memory[0] == 0
    assert memory[1] == pytest.approx(((1 << 26) * 8 - H200.last_cache_bytes) / H200.memory_peak, rel=0.01)


def test_partial_sums_that_caches_may_keep_are_not_in_the_bound() -> None:
    """What a plan keeps besides the arguments is read soon after it was written."""
    (gravity,) = (s for s in SUBJECTS if s.name == "gravity")
    program = build_program(
        reference(gravity), lw.Plan(reciprocity="scratch", targets=1, block=64).filled(NEUTRAL), "cuda"
    )
    assert [len(k.scratch) for k in program.kernels] == [1, 0]
    found = least_time(program, environment(gravity, 50_000), H200).details
    records = build_program(reference(gravity), lw.Plan(targets=1, block=64).filled(NEUTRAL), "cuda")
    plain = least_time(records, environment(gravity, 50_000), H200).details
    assert 0 < found["l2"] <= plain["l2"] * len(program.kernels)
    assert found["memory"] == 0


# ---------------------------------------------------------------- searches, from their density


class Point(lw.Record):
    position: lw.vec3


@lw.pairwise
def density(target: Point, source: Point) -> lw.f32:
    d = source.position - target.position
    return 1 / (1 + lw.dot(d, d))


@pytest.mark.parametrize(("count", "radius"), [(20_000, 0.05), (20_000, 0.1), (1_000, 0.1)])
def test_turns_of_a_grid_are_those_of_its_density(count: int, radius: float) -> None:
    """Sources looked at for a target, counted by hand over the same cells."""
    rng = np.random.default_rng(1)
    world = lw.Bounded((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    places = rng.uniform(0, 1, (count, 3)).astype(np.float32)
    points = Point.array(position=places)
    compiled = density.using(lw.StaticGrid(radius=radius, world=world)).compile(points, points)
    turns = compiled.turns()
    looked_at = turns["$walk.z"] * turns["$walk.y"] * turns["$walk.j"]
    cells = max(1, int(1 / max(radius, (0.5 / count) ** (1 / 3))))
    own = np.minimum((places * cells).astype(int), cells - 1)
    held = np.zeros((cells,) * 3, int)
    np.add.at(held, tuple(own.T), 1)
    low, high = (np.clip(((places + s * radius) * cells).astype(int), 0, cells - 1) for s in (-1, 1))
    some = rng.integers(0, count, 300)
    counted = [held[tuple(slice(a, b + 1) for a, b in zip(low[i], high[i], strict=True))].sum() for i in some]
    assert looked_at == pytest.approx(float(np.mean(counted)), rel=0.2)
    report = compiled.explain()
    assert report.bound is not None
    assert report.bound.seconds is report.bound.share is None
    assert "on average" in report.warnings[0]
    assert "at least" not in str(report)


def test_denser_searches_are_predicted_to_take_longer() -> None:
    rng = np.random.default_rng(1)
    points = Point.array(position=rng.uniform(0, 1, (20_000, 3)))
    times = []
    for radius in (0.02, 0.05, 0.1, 0.2):
        search = lw.StaticGrid(radius=radius, world=lw.Bounded((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
        found = density.using(search).compile(points, points).explain().bound
        assert found is not None
        assert found.predicted_seconds is not None
        times.append(found.predicted_seconds)
    assert times == sorted(times)
    assert times[-1] > 20 * times[0]


@pytest.mark.parametrize("search", [lw.DynamicGrid(radius=0.1), lw.StaticGrid(k=3)], ids=str)
def test_a_walk_that_only_runs_tell_has_no_prediction(search: Any) -> None:
    points = Point.array(position=np.random.default_rng(1).uniform(0, 1, (2_000, 3)))
    found = density.using(search).compile(points, points).explain()
    assert found.bound is not None
    assert found.bound.seconds is found.bound.predicted_seconds is None
    assert "no bound and no prediction" in str(found)


def test_steps_that_a_cache_holds_are_not_bound_by_memory() -> None:
    box = SiteTraffic(256 * 256, 256 * 256, 0, 9, 4, 2, False)
    bound, _, _ = step_time(box, 200, False, H200)
    assert bound.details["memory"] == 0
    large = replace(box, sites=1 << 26, fluid=1 << 26)
    assert step_time(large, 200, False, H200)[0].limiter == "memory"
