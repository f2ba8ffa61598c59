"""Explanations: golden texts on made-up devices, every row with a reason, the same facts as text, table, HTML
and JSON.
"""

from __future__ import annotations

import functools
import io
import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.optimisations import OPTIMISATIONS, possible
from lanewise.compiler.work import describe_work
from lanewise.explanation import Explanation, measure
from lanewise.explanation.build import explain
from lanewise.explanation.compiled import Offline
from lanewise.explanation.measure import Times
from lanewise.explanation.samples import sample_arguments
from lanewise.explanation.subject import Subject
from lanewise.ir.names import COUNT, count_of
from lanewise.language.target import Machine
from lanewise.launch.trial import changes
from lanewise.launch.tuned_plans import Entry, write_entry
from lanewise.layouts import Layout
from lanewise.models.devices import DeviceModel, table_model
from lanewise.planning.decision import DECISION
from lanewise.planning.plan import DECLARED, Plan
from lanewise.support.errors import ArgumentError
from tests.corpus import Case, case
from tests.harness import reference_kernel

CPU = DeviceModel(
    name="made up", kind="cpu", arch="x86_64", multiprocessors=8, clock_hz=3e9, fp32_lanes=16, fp64_lanes=8, special_lanes=2,
    int_lanes=16, conversion_lanes=16, wide_conversion_lanes=8, memory_bandwidth=40e9, l2_bandwidth=8 * 3e9 * 32, l2_bytes=1 << 20,
    limits=None, schedulers=1, launch_seconds=18e-6, graph_launch_seconds=0.0, vector_bits=256,
)  # fmt: skip


def subject(
    c: Case, device: str, layout: Layout | None = None, plan: Plan | None = None, count: int = 16_384
) -> Subject:
    """A kernel of the corpus on a device that is the same on every machine; nothing is compiled."""
    model = table_model("sm_90") if device == "cuda" else CPU
    layout = layout or (lw.SoAoAS() if device == "cuda" else lw.SoA())
    reference = reference_kernel(c, layout, device)
    names = list(c.kernel.signature.parameters)[: len(c.records)]
    counts = dict.fromkeys(names, count) if c.pairwise else {"elements": count}
    environment: dict[str, Any] = {count_of(n): count for n in names} if c.pairwise else {COUNT: count}
    work = describe_work(reference, count)
    complete = complete_plan(plan, Machine(model.kind, model.multiprocessors), work)
    return Subject(
        c.name,
        reference,
        complete,
        device,
        model,
        {**c.values, **environment},
        counts,
        dict.fromkeys(names, layout),
        work,
    )


@functools.cache
def subject_of(name: str, device: str, **more: Any) -> Any:
    return subject(case(name), device, **more)


@functools.cache
def explained(name: str, device: str, **more: Any) -> Explanation:
    return explain(subject_of(name, device, **more), resources={}, measure_resources=False)


Golden = Callable[[str, str], None]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["gravity", "kick_drift"])
def test_golden(name: str, device: str, golden: Golden) -> None:
    """The text without the figures of the models, which have tests of their own."""
    found = explained(name, device)
    verdict = re.compile(r"(?:predicted|\d+\.\d\d x) .*")
    rows = [replace(r, predicted=None, reason=verdict.sub("(figures of the models)", r.reason)) for r in found.rows]
    lines = tuple(x for x in found.analysis.lines if x[0] != "instructions")
    plain = replace(found, rows=tuple(rows), bound=None, analysis=replace(found.analysis, lines=lines))
    golden(f"{name}_{device}", str(plain))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["lennard_jones", "count_ranks", "speed", "march"])
def test_every_row_has_a_reason(name: str, device: str) -> None:
    found = explained(name, device, count=5000)
    assert [r.field for r in found.rows] == [o.field for o in OPTIMISATIONS]
    for row in found.rows:
        assert row.reason.strip()
        assert "cannot be applied to" not in row.reason
        assert row.predicted is None or row.predicted > 0
        if row.applied and row.field != "layout":
            assert (row.predicted is None) == (found.bound is None or found.bound.predicted_seconds is None)
            assert getattr(found.plan, row.field) == row.value
    assert max(map(len, str(found).splitlines())) <= 120
    json.loads(found.json(), parse_constant=lambda name: pytest.fail(name))


def test_what_is_applied_is_compared_with_the_plan_without_it() -> None:
    plan = Plan(reciprocity="off", block=256, tile=256, slices=4, targets=2, unroll=8)
    found = explained("gravity", "cuda", plan=plan)
    assert {r.field for r in found.rows if r.applied} >= {"tile", "slices", "targets", "unroll", "block", "layout"}
    assert "slices requires it" in found.row("tile").reason
    reason = found.row("loop unrolling").reason
    said = re.search(
        r"([\d.]+) x by eq\. 3 of the Gravit paper, .*: S ([\d.]+), B ([\d.]+), P ([\d.]+) rolled and "
        r"S ([\d.]+), B ([\d.]+), P ([\d.]+) unrolled; N/K ([\d,]+)",
        reason,
    )
    assert said is not None, reason
    factor, *six, tiles = said.groups()
    s1, b1, p1, s2, b2, p2 = map(float, six)
    whole, n = float(tiles.replace(",", "")), float(found.counts["source"])
    assert float(factor) == pytest.approx((s1 + whole * b1 + n * p1) / (s2 + whole * b2 + n * p2), rel=0.01)
    refused = found.row("vector_bits")
    assert (refused.applied, refused.predicted) == (False, None)
    assert found.origin == "given"


def test_a_layout_is_compared_with_plain_records() -> None:
    plain = explained("gravity", "cpu", layout=lw.AoS()).row("layout")
    assert (plain.applied, plain.value) == (False, "AoS")
    assert plain.predicted is not None
    assert plain.reason.endswith("x with SoA, by the same plan: array.with_layout(...) copies there")
    grouped = explained("gravity", "cpu").row("layout")
    assert (grouped.applied, grouped.value) == (True, "SoA")
    assert grouped.predicted is not None
    assert grouped.predicted > 1
    assert explained("march", "cpu").row("layout").reason == "the kernel takes no records"


def test_measured_times_come_first() -> None:
    s = subject(case("gravity"), "cpu", plan=Plan(targets=4))
    slow, fast, other = (replace(s.plan, targets=1), s.plan, replace(s.plan, fast_math=True))
    times = Times({slow: 3.0, fast: 2.0, other: 1.0}, "tune()", fast)
    asked: list[Any] = []

    def measured(plans: Any) -> Times:
        asked.extend(plans)
        return times

    found = explain(s, resources={}, times=measured)
    assert asked[0] == s.plan
    assert {slow, other} <= set(asked)
    assert (found.row("targets").measured, found.row("fast_math").measured) == (1.5, 2.0)
    assert (found.origin, found.measured_seconds, found.measured_by) == ("tune()", 2.0, "tune()")
    assert found.as_dict()["measured"] == {"seconds": 2.0, "by": "tune()"}
    assert "\n  chosen by tune()\n" in str(found)
    assert "\n  measured by tune(): 2 s\n" in str(found)
    tiles = explain(s, resources={}, times=lambda plans: Times(dict.fromkeys(plans, 1.0), "now")).row("tile")
    assert (tiles.applied, tiles.measured) == (False, 1.0)
    assert tiles.reason == f"measured 1.00 x with {tiles.best}: not worth it"


def first_and_rest(kernel: Any, count: int, device: str) -> tuple[Any, dict[str, Any]]:
    """The records of a made-up call, and its other arguments by name."""
    named = sample_arguments(kernel, count, device).named
    return named.pop(next(iter(named))), named


def test_what_tune_measured_is_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path / "cache"))
    kernel: Any = case("speed").kernel
    bodies, named = first_and_rest(kernel, 700, "cpu")
    run = kernel.compile(bodies, **named)
    assert run.explain().measured_by == ""
    quick, slow = run.plan, replace(run.plan, vector_bits=256)
    trials = {"trials": [{"plan": changes(slow), "seconds": 3e-5}, {"plan": changes(quick), "seconds": None}]}
    write_entry(kernel.tuning_job(bodies, **named).key, Entry(quick, 2e-5, quick, 2e-5, trials))
    found = run.explain()
    assert (found.measured_by, found.measured_seconds, found.origin) == ("tune()", 2e-5, "tune()")
    widths = found.row("vector_bits")
    assert widths.best == 256
    assert widths.measured == pytest.approx(2 / 3)


def test_a_notebook_shows_a_table() -> None:
    found = explained("gravity", "cpu")
    html = found._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 3
    assert html.count("<details>") == html.count("</details>") == 2
    assert html.count("<tr>") == 3 + len(OPTIMISATIONS)
    assert "<details><summary>only on a GPU</summary><table>" in html
    for word in (
        '<td style="text-align:left">invariant code motion</td>',
        '<th style="text-align:left">predicted</th>',
        "<h4>bound</h4>",
    ):
        assert word in html
    assert "&lt;" not in html.split("<pre>")[0]


def test_a_rich_console_shows_a_table() -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(explained("gravity", "cpu"))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for word in ("┃ optimisation", "│ invariant code motion", "only on a GPU: reciprocity;", "bound\n", "layouts\n"):
        assert word in text


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["gravity", "lennard_jones", "kick_drift", "march"])
def test_the_table_has_what_such_a_kernel_can_have_here(name: str, device: str) -> None:
    """Every optimisation is a row or a name below the table, and each has a row where all are requested."""
    found = explained(name, device)
    short, _ = str(found).split("\n\nplan\n")
    table = short.split("\n\n")[1]
    below = " ".join(short.split("\n\n")[2].split())
    for row in found.rows:
        assert (row.place == "here") == bool(re.search(f"^{row.name}  ", table, re.MULTILINE)), row.name
        assert (row.place != "here") == bool(re.search(f"(: |; ){row.name}(; |$| only| not)", below)), row.name
        assert not (row.applied and row.place != "here")
    full, _ = found.text(all=True, width=100).split("\n\nplan\n")
    assert all(re.search(f"^{row.name}  ", full, re.MULTILINE) for row in found.rows)
    assert "not for" not in full
    assert {x["field"]: x["place"] for x in found.as_dict()["optimisations"]} == {r.field: r.place for r in found.rows}


LIMITS = {f.name: f.metadata[DECISION].limits for f in fields(lw.Plan)}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["gravity", "lennard_jones", "count_ranks", "kick_drift", "speed", "march"])
def test_what_is_told_by_its_name_alone_is_refused_here(name: str, device: str) -> None:
    """No value that is worth trying anywhere is legal and changes something, on this kind of device, or on either."""
    for row in explained(name, device).rows:
        o = DECLARED.get(row.field)
        for kind in [] if o is None or row.place == "here" else ["cpu", "cuda"] if row.place == "nowhere" else [device]:
            assert o is not None
            made = subject_of(name, kind)
            every = {*o.cuda, *o.cpu, *o.elementwise, *o.elementwise_cpu, *o.items, *o.items_cpu, *o.points}
            if type(o.neutral) is int and (limits := LIMITS[row.field]) is not None:
                every |= {min(256, limits[1])}
            for value in every - {o.neutral}:
                assert possible(made.reference, made.plan, kind, o.field, value) is not None, (row.field, value, kind)


def test_targets_in_lanes_are_for_pairs_on_a_cpu() -> None:
    assert explained("gravity", "cpu").row("across").place == "here"
    assert explained("gravity", "cuda").row("across").place == "cpu"
    assert explained("kick_drift", "cpu").row("across").place == "nowhere"


def test_rows_are_found_by_field_and_name() -> None:
    found = explained("gravity", "cpu")
    assert found.row("unroll") is found.row("loop unrolling")
    with pytest.raises(KeyError, match="no optimisation 'speed'; there are rsqrt, fma, "):
        found.row("speed")


def test_compiled_kernels_explain_themselves() -> None:
    kernel: Any = case("gravity").kernel
    named = sample_arguments(kernel, 300, "cpu").named
    bodies = named["target"]
    run = kernel.compile(**named)
    found = run.explain()
    assert (found.counts, found.origin, found.plan) == ({"target": 300, "source": 300}, "default", run.plan)
    assert found.bound is not None
    assert found.resources == run.resources
    assert all(r.measured is None for r in found.rows)
    with pytest.raises(
        ArgumentError, match=r"^gravity: arguments are measured; write explain\(\.\.\., measure=True\)$"
    ):
        run.explain(bodies, **named)


def test_counts_are_those_of_the_call_that_was_compiled() -> None:
    kernel: Any = case("gravity").kernel
    few, many = (kernel.compile(**sample_arguments(kernel, n, "cpu").named) for n in (40, 500))
    assert [run.explain().counts["source"] for run in (few, many)] == [40, 500]


@pytest.mark.parametrize("given", [True, False])
def test_plans_are_measured_on_this_machine(given: bool) -> None:
    kernel: Any = case("kick_drift").kernel
    bodies, named = first_and_rest(kernel, 2000, "cpu")
    before = bodies.numpy()
    found = kernel.compile(bodies, **named).explain(
        *((bodies,) if given else ()), **(named if given else {}), measure=True
    )
    assert found.measured_by == "now"
    assert found.measured_seconds > 0
    assert found.row("fast_math").measured > 0
    assert all((bodies.numpy()[n] == a).all() for n, a in before.items())


def test_what_tuning_refuses_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    @lw.elementwise
    def roots(x: lw.f32) -> lw.f32:
        return lw.sqrt(x)

    told = re.escape("explain(measure=True) measures as tune() does, in 0.5 s: ")
    monkeypatch.setattr(measure, "time_limit", lambda kind, seconds: 0.5)
    negative = np.full(100, -1, np.float32)
    with pytest.raises(lw.LanewiseError, match=f"{told}roots cannot be tuned: none of the 100 numbers"):
        roots.compile(negative).explain(negative, measure=True)


def test_the_interpreter_is_explained_without_predictions() -> None:
    kernel: Any = case("gravity").kernel
    found = kernel.compile(**sample_arguments(kernel, 5, "python").named).explain()
    assert found.bound is None
    assert all(r.predicted is None and r.reason for r in found.rows)
    assert found.as_dict()["bound"] == {}


def test_offline_explanations_need_no_gpu() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from lanewise.explanation.offline import compile_offline

    kernel: Any = case("kick_drift").kernel
    offline: Offline = compile_offline(kernel, 4096, "cuda", arch="sm_90")
    found = offline.explain()
    block = found.row("block")
    assert block.applied
    assert block.registers is not None
    assert block.occupancy is not None
    assert (block.registers.after, block.occupancy.after) == (
        found.resources["registers"],
        found.resources["occupancy"],
    )
    assert found.machine == "cuda (NVIDIA H200, sm_90, 132 multiprocessors)"


@lw.record
class Cell:
    place: lw.vec2
    kind: lw.i32


@lw.elementwise
def bounce(cell: Cell, dt: lw.f32):
    if cell.kind == 1:
        cell.place = -cell.place
    else:
        cell.place = cell.place * lw.exp(-dt * lw.length(cell.place))


def test_branch_splitting_has_the_papers_formula() -> None:
    c = Case("bounce", bounce, (Cell,), lambda rng, n: {}, lambda *_: (), {"dt": 0.1})
    found = explain(subject(c, "cuda"), resources={}, measure_resources=False).row("branches")
    assert re.fullmatch(
        r"predicted 0\.\d\d x with apart: not worth it; \d\.\d\d x by eq\. 1 of the LBM paper; its conditions: "
        r"occupancy below 100 %: no, 100% together; two major branches: yes, .* us; unequal resources: .*",
        found.reason,
    )
