"""What explanations say of the deviations of predictions is what the zoo's report has, and it is said of such kernels
alone.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.families import ArrayFamily, RecordFamily
from lanewise.explanation.calls import compile_call
from lanewise.explanation.offline import compile_offline
from lanewise.explanation.rendering import _off  # pyright: ignore[reportPrivateUsage]
from lanewise.explanation.report import Explanation
from lanewise.models.deviations import DEVIATIONS, MEASURED_ON, Deviation
from tests.patterns.reductions import rows

RESULTS = Path(__file__).parents[2] / "bench/results"


@pytest.mark.parametrize(("name", "families"), [("zoo_cuda", ArrayFamily), ("zoo_records_cuda", RecordFamily)])
def test_the_table_is_that_of_the_reports(name: str, families: Any) -> None:
    """Families, numbers of kernels, the predicted over the measured time of 5 % and of 95 %, and the GPU."""
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    table = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    (titles,) = (row for row in table if row[0] == "family" and "predicted / measured: 5 %" in row)
    low = titles.index("predicted / measured: 5 %")
    assert titles[low + 1 : low + 3] == ["median", "95 %"]
    found = {
        row[0]: Deviation(row[0], int(row[1]), float(row[low]), float(row[low + 2]))  # type: ignore[arg-type]
        for row in table[table.index(titles) + 1 :]
        if row[0] != "all"
    }
    assert set(found) == set(get_args(families))
    assert found.items() <= DEVIATIONS.items()
    assert set(DEVIATIONS) == {*get_args(ArrayFamily), *get_args(RecordFamily)}
    assert re.search(r"^- GPU 0: name ([^,]+),", text, re.MULTILINE)[1] == MEASURED_ON  # type: ignore[index]
    assert ", size full." in text


@lw.threadwise
def sums(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
        r[y, k] = s


def explained(device: str, **more: Any) -> Explanation:
    if device == "cuda":
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    arch = "sm_90" if device == "cuda" else None
    sizes = {"a": (1 << 16, 1024), "x": (1024,), "r": (1 << 16,), "grid": (1 << 16,)}
    return compile_offline(rows, 1, device, arch=arch, shapes=sizes, **more).explain(measure_resources=False)


def test_explanations_say_how_far_such_predictions_have_been_off() -> None:
    """A prediction that was 1.10 times the measured time promised too long a time: 0.91 of it was measured."""
    found = explained("cuda")
    e = DEVIATIONS["row"]
    said = (
        f"nine of ten of {e.kernels} such kernels (rows of large arrays) took {1 / e.high:.2f} to {1 / e.low:.2f} times "
        "the predicted time on an NVIDIA H200"
    )
    assert said in re.sub(r"\s+", " ", str(found))
    assert e.shortest < e.longest
    assert found.as_dict()["bound"]["deviation"] == {
        "family": "row",
        "kernels": e.kernels,
        "device": "NVIDIA H200",
        "measured_over_predicted": [1 / e.high, 1 / e.low],
    }


@pytest.mark.parametrize("d", DEVIATIONS.values(), ids=lambda d: d.family)
def test_no_share_of_few_kernels_is_told(d: Deviation) -> None:
    """Nine of ten of four kernels are none: what is said of fewer than ten is said of all."""
    for n in (2, 4, 9, 10, 35):
        said = _off(replace(d, kernels=n))
        assert said.startswith(f"all {n} such kernels (" if n < 10 else f"nine of ten of {n} such kernels (")
        assert f") took {1 / d.high:.2f} to {1 / d.low:.2f} times the predicted time" in said


def test_nothing_is_said_of_running_values() -> None:
    """Their programs are newer than the report."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    sizes = {"a": (1 << 12, 1024), "r": (1 << 12, 1024), "grid": (1 << 12,)}
    found = compile_offline(sums, 1, "cuda", arch="sm_90", shapes=sizes).explain(measure_resources=False)
    assert found.bound is not None
    assert found.bound.predicted_seconds
    assert found.bound.deviation is None


@lw.record
class Item:
    position: lw.vec3
    mass: lw.f32
    exact: lw.f64


@lw.elementwise
def moved(p: Item, step: lw.f32) -> lw.f32:
    p.position += step * p.position
    return p.mass * step


@lw.elementwise
def exactly(p: Item, step: lw.f64) -> lw.f64:
    return p.exact * step


@lw.pairwise
def potential(target: Item, source: Item) -> lw.f32:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + 1.0)


@lw.pairwise
def in_rounds(target: Item, source: Item) -> lw.f32:
    s = 0.0
    for k in range(40):
        s += source.mass * lw.f32(k)
    return s


within = potential.using(search=lw.Neighbors(radius=0.1))


@pytest.mark.parametrize(
    ("kernel", "family", "means"),
    [
        (moved, "elements", "elements of large record arrays"),
        (potential, "pairs", "all pairs of many records"),
        (exactly, None, ""),
        (in_rounds, None, ""),
        (within, None, ""),
    ],
    ids=["elements", "pairs", "float64", "loops", "search"],
)
def test_kernels_over_records(kernel: Any, family: Any, means: str) -> None:
    """Those of float64, of pair functions with loops, and searches were not measured."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    rng = np.random.default_rng(0)
    records = Item.array(
        position=rng.random((2000, 3), np.float32), mass=np.ones(2000, np.float32), exact=np.ones(2000)
    )
    given = (records, 0.5) if kernel in (moved, exactly) else (records, records)
    found = compile_call(kernel, *given, device="cuda", arch="sm_90").explain(measure_resources=False)
    assert found.bound is not None
    assert found.bound.predicted_seconds
    assert found.bound.deviation == (None if family is None else DEVIATIONS[family])
    said = re.sub(r"\s+", " ", str(found))
    assert ("such kernels" in said) is (family is not None)
    assert means in said


@pytest.mark.parametrize(("device", "more"), [("cpu", {}), ("cuda", {"requested": lw.Plan(block=64, slices=1)})])
def test_nothing_is_said_of_other_devices_and_of_plans_by_hand(device: str, more: dict[str, Any]) -> None:
    found = explained(device, **more)
    assert "such kernels" not in str(found)
    assert "deviation" not in found.as_dict()["bound"]
