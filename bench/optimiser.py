"""How good are the plans? The default one against the tuned one, that one against an exhaustive
search, predictions against times.

`python -m bench.optimiser [device] [kernel or kernel:elements ...]` writes
bench/results/optimiser_DEVICE.{md,json}. All plans of one size are compiled, held against the
default plan's result, and timed by the same measurer. The exhaustive search measures every plan of
the grids below, whatever the models think of it.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.language.target import target_of
from lanewise.language.types import I32, scalar_of
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.executable import build_executable
from lanewise.models.devices import device_model
from lanewise.models.least import least_time
from lanewise.models.predict import predict
from lanewise.passes import gathering
from lanewise.passes.gathering import INDEX
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.planning.plan import Plan
from lanewise.runtime.memory import array_module
from lanewise.tuning.job import Job, Workload
from lanewise.tuning.measure import KernelMeasurer
from lanewise.tuning.tune import tune_job

RESULTS = Path(__file__).parent / "results"
TUNING_SECONDS = {"cuda": 15.0, "cpu": 40.0}
CLOSE, FINAL_ROUNDS = 1.15, 9

# ---------------------------------------------------------------- kernels


@lw.record
class Body:
    """A body in float32."""

    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3


@lw.record
class Body64:
    """A body in float64."""

    position: lw.dvec3
    mass: lw.f64
    velocity: lw.dvec3


@lw.record
class BodyMixed:
    """Places in float64, forces in float32."""

    position: lw.dvec3
    mass: lw.f32
    velocity: lw.dvec3


@lw.record
class Seven:
    """Seven fields, of which a kernel uses three."""

    a: lw.f32
    b: lw.f32
    c: lw.f32
    d: lw.f32
    e: lw.f32
    f: lw.f32
    g: lw.f32


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def gravity_f64(target: Body64, source: Body64, softening2: lw.f64) -> lw.dvec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def gravity_mixed(target: BodyMixed, source: BodyMixed, softening2: lw.f32) -> lw.vec3:
    d = lw.vec3(source.position - target.position)
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def lennard_jones(target: Body, source: Body, sigma2: lw.f32, cutoff2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    r2 = lw.dot(d, d)
    if lw.same(target, source) or r2 >= cutoff2:
        return lw.vec3(0.0)
    s2 = sigma2 / (r2 + 0.25)
    s6 = s2 * s2 * s2
    return -24.0 * (2.0 * s6 * s6 - s6) / (r2 + 0.25) * d


@lw.pairwise
def yukawa(target: Body, source: Body, kappa: lw.f32) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0.0)
    d = source.position - target.position
    r = lw.sqrt(lw.dot(d, d) + 0.01)
    return source.mass * lw.exp(-kappa * r) * (1.0 / r + kappa) / (r * r) * d


@lw.elementwise
def streamed(s: Seven, dt: lw.f32):
    s.a += s.b * dt + s.c


@lw.elementwise
def gathered(body: Body) -> lw.f32:
    p = body.position
    return (p.x * p.x + p.y * p.y + p.z * p.z) * body.mass


@dataclass(frozen=True)
class Subject:
    """A kernel with its uniform arguments, the sizes it runs at, and what one call does."""

    kernel: Any
    record: Any
    sizes: dict[str, tuple[int, ...]]
    values: dict[str, float]
    wanted: Plan = field(default_factory=Plan)

    @property
    def name(self) -> str:
        return self.kernel.__name__

    @property
    def pairs(self) -> bool:
        return isinstance(self.kernel, Pairwise)


PAIRS = {"cuda": (4_096, 16_384, 65_536), "cpu": (1_024, 4_096, 16_384)}
ELEMENTS = {"cuda": (1 << 20, 1 << 23, 1 << 25), "cpu": (1 << 16, 1 << 20, 1 << 23)}
SUBJECTS = (
    Subject(gravity, Body, PAIRS, {"softening2": 1e-4}),
    Subject(gravity_f64, Body64, PAIRS, {"softening2": 1e-4}),
    Subject(gravity_mixed, BodyMixed, PAIRS, {"softening2": 1e-4}, Plan(accumulate="f64")),
    Subject(lennard_jones, Body, PAIRS, {"sigma2": 0.5, "cutoff2": 4.0}),
    Subject(yukawa, Body, PAIRS, {"kappa": 0.7}),
    Subject(streamed, Seven, ELEMENTS, {"dt": 1e-3}),
    Subject(gathered, Body, ELEMENTS, {}),
)


def make_job(subject: Subject, count: int, device: str) -> Job:
    """The kernel on random elements: bodies of a unit normal cloud."""
    rng = np.random.default_rng(7)
    fields: dict[str, Any] = {}
    for f in subject.record.__record__.fields:
        length = getattr(f.type, "length", 0)
        values = rng.normal(size=(count, length) if length else count)
        fields[f.name] = (np.abs(values) + 0.5 if f.name == "mass" else values).astype(
            scalar_of(f.type).dtype
        )
    array = subject.record.array(**fields, device=device)
    arguments = (array, array) if subject.pairs else (array,)
    job = subject.kernel.tuning_job(*arguments, **subject.values, plan=subject.wanted)
    if subject.kernel is not gathered:
        return job
    module = array_module(device)
    index = module.asarray(rng.permutation(count).astype(np.int32))
    plain = job.workload

    def workload() -> Workload:
        w = plain()
        return replace(w, bound={**w.bound, INDEX: bind_value_array(index, I32)})

    reference = gathering.apply(job.reference, "body")
    return replace(
        job,
        reference=reference,
        workload=workload,
        key=replace(job.key, kernel=f"{job.key.kernel}_gathered"),
    )


# ---------------------------------------------------------------- grids


def grid(job: Job, pairs: bool) -> Iterator[Plan]:
    """Every plan that the exhaustive search measures, completed by the defaults for what it leaves
    open.
    """
    for wanted in _gpu_grid(pairs) if job.kind == "cuda" else _cpu_grid(pairs):
        yield complete_plan(wanted.filled(job.requested), job.machine, job.work)


def _gpu_grid(pairs: bool) -> Iterator[Plan]:
    if not pairs:
        yield from (Plan(block=b) for b in (32, 64, 128, 192, 256, 384, 512, 768, 1024))
        return
    for way, targets, unroll in itertools.product(
        ("scratch", "ordered"), (1, 2, 3, 4, 5, 6, 8, 10, 12, 16), (1, 2, 4, 8, 16)
    ):
        yield Plan(reciprocity=way, targets=targets, unroll=unroll)
    for block, targets, slices, parts, unroll in itertools.product(
        (128, 256, 512, 1024), (1, 2, 4), (1, 2, 4, 8, 16), (1, 4), (4, 16)
    ):
        if block // slices >= 32:
            yield Plan(
                reciprocity="off",
                block=block,
                tile=block,
                targets=targets,
                slices=slices,
                parts=parts,
                unroll=unroll,
            )


def _cpu_grid(pairs: bool) -> Iterator[Plan]:
    if not pairs:
        yield from (Plan(vector_bits=bits) for bits in (0, 256, 512))
        return
    for targets, bits, tile in itertools.product((1, 2, 3, 4, 6, 8), (0, 256, 512), (0, 512, 4096)):
        yield Plan(targets=targets, vector_bits=bits, tile=tile)


# ---------------------------------------------------------------- measuring


def measure_all(job: Job, plans: list[Plan]) -> dict[Plan, float]:
    """The median seconds of every plan that runs: all once, the best of them again."""
    measurer = KernelMeasurer(job)
    measurer.prepare([job.default])
    ready = [job.default]
    for start in range(0, len(plans), 64):
        found = measurer.prepare([p for p in plans[start : start + 64] if p != job.default])
        ready += [p for p, failure in found.items() if failure is None]
    first = {p: statistics.median(t) for p, t in measurer.measure(ready, 2).items()}
    best = min(first.values())
    finalists = [
        p for p, t in first.items() if t <= CLOSE * best or p == job.default or p in plans[:1]
    ]
    return first | {
        p: statistics.median(t) for p, t in measurer.measure(finalists, FINAL_ROUNDS).items()
    }


def run(subject: Subject, count: int, device: str) -> dict[str, Any]:
    """One row of the table."""
    job = make_job(subject, count, device)
    tuned = tune_job(job, TUNING_SECONDS[job.kind])
    plans = list(dict.fromkeys([tuned.plan, *grid(job, subject.pairs)]))
    times = measure_all(job, plans)
    best = min(times, key=times.__getitem__)
    executable = build_executable(build_program(job.reference, job.default, job.kind), device)
    resources = [c.resources for c in executable.cubins]
    expected = predict(
        executable.program,
        job.environment,
        device_model(device),
        resources or None,
        in_graph=job.kind == "cuda",
    )
    least = least_time(executable.program, job.environment, device_model(device))
    row = {
        "kernel": subject.name,
        "elements": count,
        "default": times[job.default],
        "tuned": times[tuned.plan],
        "exhaustive": times[best],
        "plans": len(times),
        "default_plan": job.default.short(),
        "tuned_plan": tuned.plan.short(),
        "best_plan": best.short(),
        "tuning_seconds": tuned.about["elapsed"],
        "predicted": expected.seconds,
        "bound": least.seconds,
        "limiter": expected.busy.limiter,
    }
    times_text = "  ".join(
        f"{n} {row[n]:.3e}" for n in ("default", "tuned", "exhaustive", "predicted", "bound")
    )
    print(
        f"{subject.name:14} {count:>10,}  {times_text}  {row['limiter']}  {row['plans']} plans",
        flush=True,
    )
    print(f"{'':26}{row['tuned_plan']} | {row['best_plan']}", flush=True)
    return row


def table(rows: list[dict[str, Any]], machine: dict[str, str], device: str) -> str:
    """The results as text."""
    columns = (
        "kernel",
        "elements",
        "default s",
        "tuned s",
        "best of all s",
        "default / tuned",
        "tuned / best",
        "plans",
        "predicted / measured",
        "% of bound",
        "limited by",
    )
    head = f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 2)}---|\n"
    lines: list[str] = []
    for r in rows:
        cells = (
            r["kernel"],
            f"{r['elements']:,}",
            f"{r['default']:.4e}",
            f"{r['tuned']:.4e}",
            f"{r['exhaustive']:.4e}",
            f"{r['default'] / r['tuned']:.3f}",
            f"{r['tuned'] / r['exhaustive']:.3f}",
            str(r["plans"]),
            f"{r['predicted'] / r['default']:.2f}",
            f"{100 * r['bound'] / r['default']:.1f}",
            r["limiter"],
        )
        lines.append(f"| {' | '.join(cells)} |")
    plans = [
        f"- {r['kernel']}, {r['elements']:,}: default `{r['default_plan']}`; tuned in "
        f"{r['tuning_seconds']:.0f} s "
        f"`{r['tuned_plan']}`; best of all `{r['best_plan']}`"
        for r in rows
    ]
    facts = [f"- {k}: {v}" for k, v in machine.items()]
    return "\n".join(
        [
            f"# Plans: default, tuned, exhaustive ({device})\n",
            head + "\n".join(lines),
            "\nPlans:\n",
            *plans,
            "\nMachine:\n",
            *facts,
            "",
        ]
    )


def main() -> None:
    """Measure all rows, or those named as `kernel` or `kernel:elements`; rows that were measured
    before are kept.
    """
    device, wanted = (sys.argv[1] if len(sys.argv) > 1 else "cuda"), sys.argv[2:]
    os.environ["LANEWISE_CACHE_DIR"] = tempfile.mkdtemp()  # tuned plans of this run only
    kind = target_of(device).name
    path = Path(os.environ.get("OUT", RESULTS)) / f"optimiser_{kind}.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = {(r["kernel"], r["elements"]): r for r in known}
    machine = describe_machine()
    for subject in SUBJECTS:
        for count in subject.sizes[kind]:
            if wanted and subject.name not in wanted and f"{subject.name}:{count}" not in wanted:
                continue
            rows[subject.name, count] = run(subject, count, device)
            order = sorted(
                rows.values(),
                key=lambda r: ([s.name for s in SUBJECTS].index(r["kernel"]), r["elements"]),
            )
            path.write_text(json.dumps({"machine": machine, "rows": order}, indent=1))
            path.with_suffix(".md").write_text(table(order, machine, device))


if __name__ == "__main__":
    main()
