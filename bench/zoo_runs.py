"""What the benches of the zoo have in common: processes that take turns at a device, lines of a file, their report."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

BEFORE_THE_END = 12.0  # seconds in which what is compiled is measured, and the report is written
Row = dict[str, Any]
Report = Callable[[list[Row], dict[str, Any]], Iterator[str]]
turn: list[Any] = []  # of this process at the device


def read_lines(path: str) -> tuple[dict[str, Any], list[Row]]:
    """What a file of lines says of a run in its first line, and its rows."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    about, *rows = (json.loads(line) for line in lines)
    return about, rows


def print_report(path: str, report: Report) -> None:
    """The report of a file of lines."""
    about, rows = read_lines(path)
    print("\n".join(report(rows, about)))


def write_report(
    name: str, about: dict[str, Any], found: Iterable[Row], report: Report
) -> list[Row]:
    """All rows, each a line of NAME.jsonl as soon as it is there; then NAME.md, which is printed.

    Both lie in bench/results, or in the folder that the variable OUT names.
    """
    out = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
    rows: list[Row] = []
    with (out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        print(json.dumps(about), file=file, flush=True)
        for row in found:
            print(json.dumps(row), file=file, flush=True)
            what = row["what"] if "what" in row else f"seed {row['seed']}"
            print(f"{what}: {row.get('failed', 'done')}"[:300], file=sys.stderr, flush=True)
            rows.append(row)
    text = "\n".join(report(rows, about))
    (out / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    print(text, flush=True)
    return rows


def in_processes(
    row_of: Callable[..., Row | None],
    seeds: Iterable[Any],
    given: tuple[Any, ...],
    processes: int,
    until: float,
) -> Iterator[Row]:
    """`row_of(seed, *given)` of every seed, in the order in which they are done, until the time is up."""
    context = get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin, (context.Lock(),))
    left: set[Future[Row | None]] = {pool.submit(row_of, seed, *given) for seed in seeds}
    while left:
        remaining = max(0.0, until + BEFORE_THE_END - 2 - time.time())
        done, left = wait(left, remaining, FIRST_COMPLETED)
        if not done:
            break
        yield from (row for f in done if (row := f.result()) is not None)
    for process in list(pool._processes.values()) if left else []:
        process.kill()
    pool.shutdown(wait=not left, cancel_futures=True)


def _begin(lock: Any) -> None:
    turn.append(lock)


def leave(rows: list[Row]) -> None:
    """End this process; those that still compile are not waited for."""
    sys.stdout.flush()
    os._exit(int(any("wrong" in row or "failed" in row for row in rows)))
