"""What gravity takes of a GPU's memory, as docs/gravity.md says, by its kernels for an NVIDIA H200; no GPU is
needed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise.cli.products import compiled
from lanewise.explanation.compiled import Offline
from lanewise.explanation.offline import compile_offline
from lanewise.ir.interpret import evaluate
from lanewise.layouts import default_layout
from lanewise.passes.reciprocity.shape import SCRATCH_BYTES
from lanewise.sims.gravity.checks import DTYPES
from lanewise.sims.gravity.explain import force_of
from lanewise.sims.gravity.physics import RECORDS, make_physics, pair_type
from lanewise.sims.gravity.plans import wanted_potential

DOCUMENT = Path(__file__).parents[3] / "docs/gravity.md"


def scratch_bytes(offline: Offline) -> int:
    """What the kernels of a program take for partial sums and counters."""
    sizes = offline.subject.environment
    found = 0
    for kernel in offline.executable.program.kernels:
        for s in kernel.scratch:
            length = int(evaluate(s.length, {p.name: p.type.dtype.type(sizes[p.name]) for p in kernel.counts}))
            found += kernel.array(s.array).arrangement.nbytes(length)
    return found


BODIES = {"f32": 80, "f64": 172, "mixed": 152}


@pytest.mark.parametrize("precision", RECORDS)
def test_bytes_of_a_body_on_a_gpu_are_those_documented(precision: str) -> None:
    """The bodies, as they are and as they were when forces were computed, their accelerations, and a count of steps
    each.
    """
    record, count = RECORDS[precision].__record__, 10_000
    acceleration = 3 * DTYPES[pair_type(precision)].itemsize
    nbytes = 2 * default_layout(record, "cuda").arrange(record.leaves).nbytes(count) + count * (acceleration + 4)
    assert round(nbytes / count) == BODIES[precision]
    assert f"| `{precision}` | {BODIES[precision]} |" in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.slow_cases("f32-524288", "f64-36000")
@pytest.mark.grid(every=40)
@pytest.mark.parametrize("count", [2048, 36_000, 40_000, 524_288])
@pytest.mark.parametrize("precision", RECORDS)
def test_partial_sums_on_a_gpu_take_no_more_than_documented(precision: str, count: int) -> None:
    """64 MiB; with reciprocity in order, counters of at most one byte a body, and float64 totals where sums are
    float64.
    """
    physics = make_physics(RECORDS[precision], True)
    kernels = {
        "force": compiled(force_of(count, precision), "cuda", "sm_90"),
        "potential": compile_offline(
            physics.potential, count, "cuda", arch="sm_90", values={"softening2": 1e-4}, requested=wanted_potential()
        ),
    }
    totals = {"force": 24 if precision == "mixed" else 0, "potential": 8 if precision != "f64" else 0}
    for name, kernel in kernels.items():
        most = SCRATCH_BYTES if kernel.subject.plan.reciprocity != "ordered" else count * (totals[name] + 1)
        assert scratch_bytes(kernel) <= most
