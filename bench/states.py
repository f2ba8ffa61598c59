"""Does this state of the code run as fast as an earlier one? Both in turns, row by row.

    git worktree add ../before d0faf338
    python -m bench.states --before ../before [--device cuda] [--rounds 7] [--processes 5] [ROW ...]

Each state runs in a process of its own, which stays; a round times a row once in each, in turn,
while the other waits. What both computed is compared first. Rows use names that both states have.
A process may have a core that is half as fast as that of another, for as long as it runs: where
the host decides, the least of several processes says more.
Writes bench/results/states_{cpu,cuda}.{md,json}, or into the folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS = {"cpu": 0.1, "cuda": 0.02}  # of a measurement
FIRST = 60  # seconds at most for a row's first call in one state
ALIKE = 2e-3  # the largest relative difference of results that rows may have: sums are reordered


class State:
    """One state of the code, in a process that measures when it is asked to."""

    def __init__(self, name: str, folder: Path, device: str) -> None:
        self.name, self._cache = name, tempfile.TemporaryDirectory()
        paths = [str(folder / "src"), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "states_rows.py"), device], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
            env=os.environ | {"PYTHONPATH": ":".join(filter(None, paths)),
                              "LANEWISE_CACHE_DIR": self._cache.name},
        )  # fmt: skip

    def ask(self, **message: Any) -> dict[str, Any]:
        """The answer to one message; raises OSError where the process is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise OSError(f"the process of the state {self.name} has ended")
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._cache.cleanup()


@contextmanager
def both(before: Path, device: str) -> Iterator[tuple[State, State]]:
    """The earlier state and this one."""
    with ExitStack() as stack:
        states = State("before", before, device), State("now", HERE.parent, device)
        for state in states:
            stack.callback(state.close)
        yield states


def apart(first: list[float], second: list[float]) -> float:
    """The largest difference of two results, relative to the largest number of the first."""
    if len(first) != len(second):
        return float("inf")
    largest = max((abs(x) for x in first), default=0.0) or 1.0
    return max((abs(x - y) for x, y in zip(first, second, strict=True)), default=0.0) / largest


Times = tuple[list[float], list[float]]


def compare(
    states: tuple[State, State], row: str, rounds: int, seconds: float, times: Times
) -> dict[str, Any]:  # fmt: skip
    """One row: times of both states in microseconds, and how far apart what they computed is.

    times: seconds of both states in processes before these, to which those of these are added.
    """
    made = [state.ask(prepare=row) for state in states]
    if wrong := [m["error"] for m in made if "error" in m]:
        return {"row": row, "error": "; ".join(wrong)}
    difference = apart(*(m["result"] for m in made))
    for turn in range(rounds):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            times[i].append(states[i].ask(measure=seconds)["seconds"])
    ratios = [now / before for before, now in zip(*times, strict=True)]
    return {
        "row": row,
        "before": 1e6 * statistics.median(times[0]),
        "now": 1e6 * statistics.median(times[1]),
        "ratio": statistics.median(ratios),
        "least": min(times[1]) / min(times[0]),
        "apart": difference,
        "first": [m["first"] for m in made],
    }


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    """The rows as Markdown."""
    yield "| row | before, us | now, us | now by before | of the least | apart |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for f in found:
        if "error" in f:
            yield f"| {f['row']} | {f['error'][:200]} | | | | |"
            continue
        yield (
            f"| {f['row']} | {f['before']:,.1f} | {f['now']:,.1f} | {f['ratio']:.3f} "
            f"| {f['least']:.3f} | {f['apart']:.0e} |"
        )


def main() -> None:
    """Compares, prints as it goes, and writes."""
    from bench.harness import describe_machine, write_rows

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--device", choices=sorted(SECONDS), default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--processes", type=int, default=1, help="of each state, one by one")
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    options = parser.parse_args()
    began, found = time.monotonic(), dict[str, dict[str, Any]]()
    times: defaultdict[str, Times] = defaultdict(lambda: ([], []))
    out = Path(os.environ.get("OUT", HERE / "results")) / f"states_{options.device}"
    machine = describe_machine()
    for _ in range(options.processes):
        with both(options.before.resolve(), options.device) as states:
            rows = [
                r for r in states[1].ask(rows=True)["rows"] if not options.rows or r in options.rows
            ]
            for number, row in enumerate(rows):
                if time.monotonic() - began > options.limit:
                    print(f"out of time: {len(rows) - number} rows were not run", flush=True)
                    break
                found[row] = compare(
                    states, row, options.rounds, SECONDS[options.device], times[row]
                )
                print(list(table([found[row]]))[-1], flush=True)
                every = list(found.values())
                write_rows(out, "Two states of the code in turns", machine, table(every), every)
    wrong = [f["row"] for f in found.values() if "apart" in f and not f["apart"] <= ALIKE]
    if wrong:
        raise SystemExit(f"different numbers: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
