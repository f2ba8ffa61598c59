"""Layouts and default plans of kernels over records that nobody chose: the other half of the zoo.

    python -m bench.zoo_records [--device cuda] [--first 1] [--count 60] [--step 2] [--size full] [--seconds 190]
        [--families pairs,searches] [--seeds ...]
Seeds from 200000 on are of tests/zoo/record_forms.py.
Each kernel runs with its default plan over records in every layout, over records whose layout is left open
("auto"), and with the plan that tune() finds. Results of the default are checked against the function itself
in float64. Processes compile side by side and take turns at the device; calls are timed in turns, medians of 7.
Writes zoo_records.jsonl, a line as soon as a kernel is measured, and at the end zoo_records.md into
bench/results, or into the folder that the variable OUT names. `--report FILE` prints the report of lines.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from bench.zoo_case import in_turns, on_gpu, shares
from bench.zoo_runs import (
    BEFORE_THE_END,
    in_processes,
    leave,
    print_report,
    turn,
    write_report,
)
from lanewise.compiler.pipeline import build_program
from lanewise.explanation.calls import call_subject
from lanewise.explanation.compiled import find_model
from lanewise.layouts import default_layout
from lanewise.models.deviations import FEWEST
from lanewise.models.predict import predict
from tests.fuzz.texts import executed
from tests.zoo.record_forms import generate
from tests.zoo.record_truth import call_of, check, records_of
from tests.zoo.records import FAMILIES, RecordCase

FAR = 5  # times the best one: timed once
LAYOUTS = (lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(32))


def measure_case(case: RecordCase, device: str, size: str, seconds: float) -> dict[str, Any]:
    """The times of a kernel in every layout, of what "auto" chose, and of the tuned plan."""
    with executed(case.text, f"zoo_records_{case.seed}.py") as names, lw.device(device):
        kernel = call_of(case, names.kernel, size)

        def call(layout: Any) -> tuple[Any, list[Any], dict[str, Any]]:
            records = records_of(case, names.Item, size, layout=layout)
            tables = {n: _on(device, a) for n, a in case.given_arrays().items()}
            return kernel.bind(*records, *case.uniforms.values(), **tables), records, tables

        calls: dict[str, Any] = {}
        default, records, tables = call(default_layout(names.Item.__record__, device))
        calls["default"] = default
        for layout in LAYOUTS:
            calls[str(layout)] = call(layout)[0]
        open_call, left, _ = call("auto")
        calls["auto"] = open_call
        row: dict[str, Any] = {
            "seed": case.seed,
            "family": case.family,
            "scalars": len(case.fields),
        }
        row |= {"layout": str(records[0].layout), "auto": str(left[0].layout)}
        row["predicted_ms"] = _predicted(
            kernel, [*records, *case.uniforms.values()], tables, device
        )
        with turn[0]:
            row["error"] = _checked(case, size, default, records, tables)
            times = _times(calls, device)
            if seconds:
                tuning = kernel.tune(*records, *case.uniforms.values(), **tables, seconds=seconds)
                tuned = {"default": default, "tuned": _tuned(kernel, records, case, tables)}
                again = _times(tuned, device)
                row |= {"tuned_ms": again["tuned"] * 1e3, "again_ms": again["default"] * 1e3}
                row["plan"] = _changes(tuning)
    return row | {"each": {n: t * 1e3 for n, t in times.items()}}


def _on(device: str, array: Any) -> Any:
    if not device.startswith("cuda"):
        return array
    import cupy

    return cupy.asarray(array)


def _tuned(kernel: Any, records: list[Any], case: RecordCase, tables: dict[str, Any]) -> Any:
    return kernel.bind(*records, *case.uniforms.values(), **tables)  # which remembers the plan


def _changes(tuning: Any) -> str:
    """Structure and fields in which the tuned plan differs from the default."""
    before, after = tuning.default.as_dict(), tuning.plan.as_dict()
    structure = [f"{tuning.structure}"] if tuning.structure != tuning.default_structure else []
    return ", ".join([*structure, *(f"{n}={v}" for n, v in after.items() if v != before.get(n))])


def _predicted(kernel: Any, given: list[Any], tables: dict[str, Any], device: str) -> float | None:
    """Milliseconds by the model, of searches for the walk alone; None where data tell how long loops are."""
    kind = device.split(":")[0]
    model = find_model(kind, None)
    try:
        subject, _, _ = call_subject(kernel, tuple(given), tables, kind, model)
        program = build_program(subject.reference, subject.default(lw.Plan()), kind, between=False)
        found = predict(program, subject.environment, model, in_graph=True)
    except lw.LanewiseError:
        return None
    known = not found.unknown.guessed and np.isfinite(found.seconds)
    return found.seconds * 1e3 if known else None


def _checked(
    case: RecordCase, size: str, call: Any, records: list[Any], tables: dict[str, Any]
) -> float:
    out = call()
    found = [_off(f) for f in (out if isinstance(out, tuple) else () if out is None else (out,))]
    return check(case, size, found, records[0].numpy(), {n: _off(a) for n, a in tables.items()})


def _off(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.asarray(array)


def _times(calls: dict[str, Callable[[], Any]], device: str) -> dict[str, float]:
    """Medians in seconds; calls in turns."""
    for call in calls.values():
        call()
    if not device.startswith("cuda"):
        return in_turns(calls, _on_host, far=FAR)
    import cupy

    return in_turns(calls, lambda call, repeat: on_gpu(cupy, call, repeat), far=FAR)


def _on_host(call: Callable[[], Any], repeat: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - begin) / repeat


# ---------------------------------------------------------------- all of them


def main() -> int:
    asked = _asked()
    if asked.report:
        print_report(asked.report, report)
        return 0
    until = time.time() + asked.seconds - BEFORE_THE_END
    about = {"machine": describe_machine(), "size": asked.size, "device": asked.device}
    every = asked.seeds or range(asked.first, asked.first + asked.step * asked.count, asked.step)
    seeds = [seed for seed in every if generate(seed).family in asked.families.split(",")]
    rows = in_processes(_row, seeds, (asked, until), asked.processes, until)
    leave(write_report("zoo_records", about, rows, report))
    return 0


def _row(seed: int, asked: argparse.Namespace, until: float) -> dict[str, Any] | None:
    """What is found of a seed; None where the time was up before it began."""
    if time.time() > until:
        return None
    case = generate(seed)
    try:
        return measure_case(case, asked.device, asked.size, asked.tune)
    except Exception as error:  # one kernel that fails does not hide the others
        return {
            "seed": seed,
            "family": case.family,
            "failed": f"{type(error).__name__}: {error}"[:500],
        }


def report(rows: list[dict[str, Any]], about: dict[str, Any]) -> Iterator[str]:
    """The lines of the report."""
    done = [r for r in rows if "each" in r]
    yield "# Layouts and default plans of kernels over records that nobody chose"
    yield ""
    yield from (f"- {name}: {text}" for name, text in about["machine"].items())
    yield f"\n{len(rows)} kernels of tests/zoo/records.py on {about['device']}, size {about['size']}.\n"
    tuned = [r for r in done if "tuned_ms" in r]
    plan = [r["again_ms"] / r["tuned_ms"] for r in tuned]
    foreseen = {f: _foreseen(done, f) for f in ("elements", "pairs")}
    model = [ratio for ratios in foreseen.values() for ratio in ratios]
    yield "| target | wanted | found |"
    yield "|---|--:|--:|"
    yield f"| default within 5 % of the tuned plan | 95 % | {shares(plan, 0, 1.05):.0%} of {len(plan)} |"
    yield f"| within 15 % | 100 % | {shares(plan, 0, 1.15):.0%} |"
    yield f"| tuned slower than the default by more than 2 % | 0 | {sum(p < 0.98 for p in plan)} |"
    yield f"| predicted / measured within 0.85 to 1.15 | 90 % | {shares(model, 0.85, 1.15):.0%} of {len(model)} |"
    yield f"| within 0.67 to 1.5 | 100 % | {shares(model, 0.67, 1.5):.0%} |"
    for name, get in (("auto", lambda r: r["auto"]), ("the default", lambda r: r["layout"])):
        ratios = [lost(r, get(r)) for r in done]
        yield f"| layout of {name} within 3 % of the best | 95 % | {shares(ratios, 0, 1.03):.0%} of {len(ratios)} |"
        yield f"| within 10 %; most | | {shares(ratios, 0, 1.1):.0%}; {max(ratios, default=float('nan')):.2f} |"
    yield f"| wrong or failed | 0 | {sum('failed' in r for r in rows)} |"
    yield "\n| family | kernels | default / tuned: median | most | layout of auto / best: median | most | of the default: median | most |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for family in (*sorted({r["family"] for r in done}), *(["all"] if done else [])):
        mine = [r for r in done if family in (r["family"], "all")]
        slow = [r["again_ms"] / r["tuned_ms"] for r in mine if "tuned_ms" in r]
        columns = [slow, [lost(r, r["auto"]) for r in mine], [lost(r, r["layout"]) for r in mine]]
        cells = (f"{np.median(c):.2f} | {max(c):.2f}" if c else "| " for c in columns)
        yield f"| {family} | {len(mine)} | {' | '.join(cells)} |"
    yield "\n| family | predicted | predicted / measured: 5 % | median | 95 % |"
    yield "|---|--:|--:|--:|--:|"
    for family, ratios in foreseen.items():
        ends = (0, 0.5, 1) if len(ratios) < FEWEST else (0.05, 0.5, 0.95)
        quantiles = (f"{np.quantile(ratios, q):.2f}" if ratios else "" for q in ends)
        yield f"| {family} | {len(ratios)} | {' | '.join(quantiles)} |"
    yield f"\nOf fewer than {FEWEST} kernels the least and the most stand for 5 % and 95 %.\n"
    yield "Of searches the walk alone is predicted, and their calls build the structure as well: they"
    yield "have no such figures. Neither have loops whose length records tell.\n"
    yield from (f"- seed {r['seed']}: {r['failed']}" for r in rows if "failed" in r)
    even = [r for r in done if r["seed"] % 2 == 0]  # odd ones judge
    if even:
        yield "\nThe ten whose open layout loses most (even seeds alone):\n"
    for r in sorted(even, key=lambda r: -lost(r, r["auto"]))[:10]:
        best = min(_layouts(r), key=lambda n: r["each"][n])
        yield f"- seed {r['seed']}, {r['family']}: {lost(r, r['auto']):.2f} by {r['auto']}; best {best}, default {r['layout']}"


def _foreseen(rows: list[dict[str, Any]], family: str) -> list[float]:
    """Predicted over measured times of the default plans of a family."""
    mine = [r for r in rows if r["family"] == family and r["predicted_ms"]]
    return [r["predicted_ms"] / r["each"]["default"] for r in mine]


def _layouts(row: dict[str, Any]) -> list[str]:
    return [str(layout) for layout in LAYOUTS]


def lost(row: dict[str, Any], layout: str) -> float:
    """How many times as long a layout takes as the best one; the shorter of two measurements of it."""
    times = row["each"]
    named = [times[n] for n, of in ((layout, layout), ("auto", row["auto"]), ("default", row["layout"]))
             if of == layout and n in times]  # fmt: skip
    return min(named) / min(times[n] for n in [*_layouts(row), "auto", "default"])


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--step", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", help="these, instead of --first and others")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--size", choices=("small", "wave", "full"), default="full")
    parser.add_argument("--seconds", type=float, default=190, help="of the whole run at most")
    parser.add_argument(
        "--tune", type=float, default=4, help="seconds for tuning a kernel, 0 for none"
    )
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--report", help="print the report of a file of lines")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
