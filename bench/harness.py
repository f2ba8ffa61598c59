"""Timing that compares fairly: versions interleaved in one run, medians, and a note of the machine
and the date.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

GPU_FIELDS = ("name", "driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "power.limit")


@dataclass(frozen=True, slots=True)
class Measurement:
    """The times of one version.

    Attributes:
        name: the version.
        seconds: one time a round.
        work: what one call does, counted in `unit` (pairs, bytes, sites); 0 when there is nothing
        to count.
        unit: the name of what is counted.
        bound: the rate that the hardware cannot exceed; 0 when none is stated.
    """

    name: str
    seconds: Sequence[float]
    work: float = 0.0
    unit: str = ""
    bound: float = 0.0

    @property
    def median(self) -> float:
        """The middle of the times in seconds: one disturbed round does not move it."""
        return statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        """Work per second."""
        return self.work / self.median


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of one version against float64, of `sample` results: the median, the one that
    99 % are below, and the largest.
    """

    median: float
    most: float
    largest: float
    sample: int


def interleave(
    versions: dict[str, Callable[[], None]], rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of each version in each round, after one call each that is not counted. clock:
    time.process_time for what one thread computes beside other programs.

    A round times every version once, so a clock that changes or a busy neighbour hits all of them
    alike. Every second round goes backwards: no version always follows the same other one. A
    version that starts work elsewhere (a GPU) has to wait for it.
    """
    for run in versions.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in versions}
    for turn in range(rounds):
        for name in list(versions)[:: -1 if turn % 2 else 1]:
            start = clock()
            versions[name]()
            times[name].append(clock() - start)
    return times


def write_rows(
    path: Path,
    title: str,
    machine: dict[str, str],
    table: Iterable[str],
    rows: list[dict[str, Any]],
) -> None:
    """The rows so far as `path`.md and `path`.json, so that a run that is cut off leaves them."""
    facts = (f"- {key}: {value}" for key, value in machine.items())
    text = "\n".join([f"# {title}", "", *facts, "", *table, ""])
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    content = json.dumps({"machine": machine, "rows": rows}, indent=1)
    path.with_suffix(".json").write_text(content, encoding="utf-8")


def describe_machine() -> dict[str, str]:
    """What a reader needs to judge the numbers: processor, cores, versions, date, and GPUs where
    there are any.
    """
    facts = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "CPU": _cpu_model(),
        "cores": str(len(os.sched_getaffinity(0))),
        "Python": platform.python_version(),
        "system": platform.system(),
    }
    for package in ("numpy", "llvmlite", "cupy-cuda13x", "cuda-core", "nvidia-cuda-nvrtc"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler):
            facts[compiler] = _first_line(compiler, "--version")
    return facts | _gpus()


def _cpu_model() -> str:
    lines = (
        Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if Path("/proc/cpuinfo").exists()
        else []
    )
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def _gpus() -> dict[str, str]:
    """One entry a GPU with driver, clocks and power limit as nvidia-smi gives them; nothing without
    nvidia-smi.
    """
    if not shutil.which("nvidia-smi"):
        return {}
    command = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return {
        f"GPU {index}": ", ".join(
            f"{field} {value.strip()}"
            for field, value in zip(GPU_FIELDS, line.split(","), strict=True)
        )
        for index, line in enumerate(lines)
        if line.count(",") == len(GPU_FIELDS) - 1
    }


def _first_line(*command: str) -> str:
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return next(iter(output.splitlines()), "unknown")


def write_results(
    path: Path, title: str, rows: Sequence[Measurement], machine: dict[str, str],
    errors: Mapping[str, Errors] | None = None,
) -> str:  # fmt: skip
    """Writes `path` (a markdown table) and the same numbers as JSON beside it; returns the markdown
    text.

    errors: of every version by its name, where results are approximate; raises ValueError for a
    version without.
    """
    if errors is not None and (missing := [r.name for r in rows if r.name not in errors]):
        raise ValueError(f"nothing is written: nobody has checked {', '.join(missing)}")
    best = min(row.median for row in rows)
    unit = next((row.unit for row in rows if row.unit), "work")
    # of a bound where one is stated, else of the best version
    share = any(row.bound for row in rows)
    compared = "% of the bound" if share else "best / this"
    beside = " error: median | 99 % | largest |" if errors else ""
    lines = [
        f"# {title}",
        "",
        f"| version | median s | {unit}/s | {compared} | rounds |{beside}",
        f"|---|---:|---:|---:|---:|{'---:|---:|---:|' if errors else ''}",
    ]
    for row in rows:
        rate = f"{row.rate:.3e}" if row.work else ""
        part = (
            f"{best / row.median:.2f}"
            if not share
            else f"{100 * row.rate / row.bound:.1f}"
            if row.bound
            else ""
        )
        line = f"| {row.name} | {row.median:.6f} | {rate} | {part} | {len(row.seconds)} |"
        if errors:
            e = errors[row.name]
            line += f" {e.median:.1e} | {e.most:.1e} | {e.largest:.1e} |"
        lines.append(line)
    lines += ["", "Machine:", "", *(f"- {name}: {value}" for name, value in machine.items())]
    text = "\n".join(lines) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    data = {
        "title": title,
        "machine": machine,
        "rows": [
            {
                "version": row.name,
                "seconds": list(row.seconds),
                "median": row.median,
                "work": row.work,
                "unit": row.unit,
                **({"errors": asdict(errors[row.name])} if errors else {}),
            }
            for row in rows
        ],
    }
    path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return text
