"""What all shards of all campaigns did together: `python -m tests.fuzz.summary REPORT.jsonl` prints it as Markdown."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.fuzz.coverage import covered

COVERAGE = ("node ", "plan ", "layout ")  # of the campaign "kernels"

DECIDED = "decided "  # a value of a field of a plan, in the campaigns of patterns


def summarised(tallies: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By campaign: cases, seconds of one core, outcomes, counts, failures, and which shards reported."""
    sums: dict[str, dict[str, Any]] = {}
    for t in tallies:
        s = sums.setdefault(
            t["campaign"],
            {"cases": 0, "seconds": 0.0, "outcomes": Counter(), "counts": Counter(), "failures": [], "shards": set()},
        )
        s["cases"] += t["cases"]
        s["seconds"] += t["seconds"]
        s["outcomes"].update(t["outcomes"])
        s["counts"].update(t["counts"])
        s["failures"] += t["failures"]
        s["shards"].add(f"{t['shard']}/{t['shards']}")
    return dict(sorted(sums.items()))


def lines(tallies: Iterable[dict[str, Any]]) -> list[str]:
    """One line a campaign."""
    return [
        f"campaign {name}: {s['cases']} cases in {len(s['shards'])} shards, "
        + ", ".join(f"{n} {outcome}" for outcome, n in s["outcomes"].most_common())
        + f", {len(s['failures'])} failed, {s['seconds'] / max(1, s['cases']):.2f} s a case"
        for name, s in summarised(tallies).items()
    ]


def markdown(tallies: list[dict[str, Any]]) -> str:
    """A table, then the counts of each campaign, then every failure."""
    rows = ["| campaign | cases | shards | seconds a case | failed | outcomes |", "|---|--:|--:|--:|--:|---|"]
    sums = summarised(tallies)
    for name, s in sums.items():
        outcomes = ", ".join(f"{n:,} {outcome}" for outcome, n in s["outcomes"].most_common())
        each = f"{s['seconds'] / max(1, s['cases']):.2f}"
        rows.append(f"| {name} | {s['cases']:,} | {len(s['shards'])} | {each} | {len(s['failures'])} | {outcomes} |")
    for name, s in sums.items():
        details = {key: n for key, n in s["counts"].items() if not key.startswith((*COVERAGE, DECIDED))}
        if decided := sum(key.startswith(DECIDED) for key in s["counts"]):
            details["different decisions of plans"] = decided
        if details:
            rows += ["", f"**{name}**: " + ", ".join(f"{key} {n:,}" for key, n in sorted(details.items()))]
        if any(key.startswith("node ") for key in s["counts"]):
            rows += ["", *(f"- {line}" for line in covered(s["counts"]))]
        rows += ["", *(f"```text\n{failure}\n```" for failure in s["failures"])]
    return "\n".join(rows).rstrip() + "\n"


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a report."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    found = read(Path(sys.argv[1]))
    print(markdown(found), end="")
    sys.exit(1 if any(t["failures"] for t in found) else 0)
