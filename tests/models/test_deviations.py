"""What explanations say of the deviations of predictions is what the zoo's report has, and it is said of such kernels
alone.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.families import ArrayFamily, RecordFamily
from lanewise.explanation.build import explain
from lanewise.explanation.calls import call_subject, compile_call
from lanewise.explanation.compiled import find_model
from lanewise.explanation.offline import compile_offline
from lanewise.explanation.rendering import how_sure
from lanewise.explanation.report import Bottleneck, Explanation
from lanewise.models.deviations import DEVIATIONS, MEASURED_ON, SHORTEST, Deviation
from tests.fuzz.texts import executed
from tests.patterns.reductions import rows
from tests.zoo import every, record_forms
from tests.zoo.every import FIRST as EVERY
from tests.zoo.further import FIRST as FURTHER
from tests.zoo.record_truth import call_of, records_of

RESULTS = Path(__file__).parents[2] / "bench/results"


@pytest.fixture(autouse=True)
def _shortest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is short on this machine is not for tests to know."""
    monkeypatch.setitem(SHORTEST, "cpu", 1e-4)  # type: ignore[arg-type]


ARRAYS, RECORDS = get_args(ArrayFamily), get_args(RecordFamily)
REPORTS = {
    "zoo_cuda": ("cuda", ARRAYS),
    "zoo_records_cuda": ("cuda", ("elements", "pairs")),
    "zoo_cpu": ("cpu", (*ARRAYS, *RECORDS)),
    "zoo_walks_cuda": ("cuda", ("searches",)),
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_table_is_that_of_the_reports(name: str) -> None:
    """Families, numbers of kernels, the predicted over the measured time of 5 % and of 95 %, and the device."""
    kind, families = REPORTS[name]
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    table = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    titles = next(row for row in table if row[0] == "family" and "predicted / measured: 5 %" in row)
    low = titles.index("predicted / measured: 5 %")
    assert titles[low + 1 : low + 3] == ["median", "95 %"]
    rows = table[table.index(titles) + 1 :]
    end = next((n for n, row in enumerate(rows) if row[0] == "family"), len(rows))  # of even seeds
    found = {
        (kind, row[0]): Deviation(row[0], int(row[1]), float(row[low]), float(row[low + 2]), kind)  # type: ignore[arg-type]
        for row in rows[:end]
        if row[0] not in ("all", "none")
    }
    assert {family for _, family in found} == set(families)
    assert found.items() <= DEVIATIONS.items()
    device = re.search(r"^- GPU 0: name ([^,]+)," if kind == "cuda" else r"^- CPU: (.+)$", text, re.MULTILINE)[1]  # type: ignore[index]
    assert device + ("" if kind == "cuda" else " (one thread)") == MEASURED_ON[kind]  # type: ignore[index]
    assert ", size full." in text


def test_the_table_has_nothing_that_no_report_has() -> None:
    assert set(DEVIATIONS) == {(kind, f) for kind, families in REPORTS.values() for f in families}


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
    e = DEVIATIONS["cuda", "row"]
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


@pytest.mark.parametrize("d", DEVIATIONS.values(), ids=lambda d: f"{d.kind}, {d.family}")
def test_no_share_of_few_kernels_is_told(d: Deviation) -> None:
    """Nine of ten of four kernels are none: what is said of fewer than ten is said of all."""
    for n in (2, 4, 9, 10, 35):
        said = how_sure(Bottleneck("", None, 1.0, {}, deviation=replace(d, kernels=n)))
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


class Item(lw.Record):
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


NEAR = lw.Neighbors(radius=0.06)
OF_RECORDS = [
    (moved, "elements", 1 << 21),
    (moved, "short", 1 << 12),
    (potential, "pairs", 1 << 17),
    (potential, "short", 1 << 7),
    (exactly, "kernels", 1 << 21),
    (in_rounds, "kernels", 1 << 14),
    (potential.using(search=NEAR), "searches", 1 << 17),
    (potential.using(search=lw.Neighbors(radius=0.02, world=lw.Periodic((1.0, 1.0, 1.0)))), "no search", 1 << 17),
    (in_rounds.using(search=NEAR), "no search", 1 << 17),
]
UNMEASURED = {"short": "such short calls", "kernels": "such kernels", "no search": "such searches"}


TIME = re.compile(r"\d (s|ms|us|ns) predicted")


def sure(found: object) -> list[str]:
    """The lines that tell how sure the prediction is."""
    text = str(found)
    lines = re.sub(r"\n {8,}", " ", text).splitlines()
    return [line.strip() for line in lines if " such kernels (" in line or "has not been measured" in line]


def some(count: int) -> Any:
    rng = np.random.default_rng(0)
    return Item.array(
        position=rng.random((count, 3), np.float32), mass=np.ones(count, np.float32), exact=np.ones(count)
    )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("kernel", "expected", "count"), OF_RECORDS)
def test_kernels_over_records(kernel: Any, expected: str, count: int, device: str) -> None:
    """Those of float64, of pair functions with loops, other searches and short calls were not measured."""
    if device == "cuda":
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    records = some(count)
    given = (records, 0.5) if kernel in (moved, exactly) else (records, records)
    arch = "sm_90" if device == "cuda" else None
    found = compile_call(kernel, *given, device=device, arch=arch).explain(measure_resources=False)
    assert found.bound is not None
    assert found.bound.predicted_seconds
    what = UNMEASURED.get(expected, "" if (device, expected) in DEVIATIONS else "such searches")
    assert found.bound.deviation == (None if what else DEVIATIONS[device, expected])  # type: ignore[index]
    (line,) = sure(found)
    if what:
        assert line == f"how far predictions for {what} are off has not been measured"
        assert found.as_dict()["bound"]["unmeasured"] == what
        assert "deviation" not in found.as_dict()["bound"]
    else:
        assert found.as_dict()["bound"]["deviation"]["device"] == MEASURED_ON[device]  # type: ignore[index]
        assert "unmeasured" not in found.as_dict()["bound"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_plans_by_hand_were_not_measured(device: str) -> None:
    wish = lw.Plan(block=64, slices=1) if device == "cuda" else lw.Plan(slices=1)
    (line,) = sure(explained(device, requested=wish))
    assert line == "how far predictions for plans that are not the default are off has not been measured"


def test_the_same_plan_by_hand_is_the_default_one() -> None:
    found = explained("cpu")
    again = explained("cpu", requested=lw.Plan(**found.plan.as_dict()))
    assert again.bound is not None
    assert again.bound.deviation == DEVIATIONS["cpu", "row"]
    assert len(sure(again)) == 1


@lw.stencil(lw.D2Q5)
def spread(t: lw.Field[lw.f32]) -> lw.f32:
    return t[0] + 0.1 * (t[1] + t[2] + t[3] + t[4] - 4.0 * t[0])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_steps_over_sites_were_not_measured(device: str) -> None:
    arch = "sm_90" if device == "cuda" else None
    found = compile_offline(spread, 1 << 22, device, arch=arch).explain(measure_resources=False)
    assert sure(found) == ["how far predictions for steps over sites are off has not been measured"]


SEARCHES = {
    "radius": NEAR, "some": lw.Nearest(k=5), "grid": lw.DynamicGrid(k=3), "cells": lw.CellArray(radius=0.06),
    "lists": lw.NeighborLists(radius=0.05, skin=0.01), "tree": lw.Tree(theta=0.5), "accurate": lw.Tree(accuracy=1e-2),
    "dual": lw.Tree(theta=0.5, method="dual"),
}  # fmt: skip
QUICK = ("radius", "grid", "lists")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "search", [*QUICK, *(pytest.param(s, marks=pytest.mark.slow) for s in SEARCHES if s not in QUICK)]
)
def test_a_text_with_a_predicted_time_says_once_how_sure_it_is(search: str, device: str) -> None:
    """Also where only launches beside the walk have one."""
    if device == "cuda":
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    records, arch = some(3000), "sm_90" if device == "cuda" else None
    call = compile_call(potential.using(search=SEARCHES[search]), records, records, device=device, arch=arch)
    found = call.explain(measure_resources=False)
    assert len(sure(found)) == bool(TIME.search(str(found)))


def test_predictions_of_the_launches_of_a_loop_were_not_measured() -> None:
    records = some(1000)
    text = str(lw.steps([potential.bind(records, records), moved.bind(records, 0.5)]).explain())
    assert len(TIME.findall(text)) == 2
    assert sure(text) == ["how far predictions for single launches are off has not been measured"]


SEEDS = (*range(401, 441), *range(FURTHER + 1, FURTHER + 21), *range(EVERY + 1, EVERY + 27))
QUICK = {"cpu": SEEDS[4:7], "cuda": (404, 405, FURTHER + 1)}  # plans of a GPU take some seconds


@pytest.mark.parametrize(
    ("seed", "device"),
    [pytest.param(s, d, marks=() if s in q else pytest.mark.slow) for d, q in QUICK.items() for s in SEEDS],
)
def test_every_prediction_of_an_array_kernel_says_how_sure_it_is(seed: int, device: str) -> None:
    case = every.generate(seed)
    rng = Random(seed)
    with executed(case.text, f"zoo_{seed}.py") as names:
        given, grid = case.arguments(rng.choice(("small", "wave")))
        says_how_sure(names.kernel, (), {**given, "grid": grid}, device)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(s, marks=pytest.mark.slow) for s in range(5, 60))])
def test_every_prediction_of_a_kernel_over_records_says_how_sure_it_is(seed: int, device: str) -> None:
    case = record_forms.generate(seed)
    with executed(case.text, f"zoo_records_{seed}.py") as names:
        given = (*records_of(case, names.Item, "small"), *case.uniforms.values())
        says_how_sure(call_of(case, names.kernel, "small"), given, case.given_arrays(), device)


def says_how_sure(kernel: Any, given: tuple[Any, ...], named: dict[str, Any], device: str) -> None:
    """Once where there is a prediction, never where there is none."""
    model = find_model(device, "sm_90" if device == "cuda" else None)
    subject, _, _ = call_subject(kernel, given, named, device, model)
    found = explain(subject, resources={}, measure_resources=False)
    assert found.bound is not None
    predicted = found.bound.predicted_seconds is not None
    assert len(sure(found)) == predicted
    assert (found.bound.deviation is not None) + bool(found.bound.unmeasured) == predicted
    assert ("at least" in str(found)) == (predicted and found.bound.seconds is not None)
