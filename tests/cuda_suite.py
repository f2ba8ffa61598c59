"""All tests marked `cuda`, divided over the cores and the GPUs: `python -m tests.cuda_suite`, or `make test-gpu`.

A shard is a process of pytest with tests of its own and a limit in seconds; what it had not ended by then is named.
Writes cuda_tests.json (which trees of src/ and tests/, on which GPU, driver and compiler, how many passed, which
failed) and cuda_tests.log (what failed shards printed). `--check` says whether a record belongs to the files as they
are, and needs no GPU. `--second` runs them on the second of two GPUs with the first one current (tests/second_gpu.py),
and writes cuda_tests_second.json.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.second_gpu import LEFT_OUT

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "bench" / "results" / "cuda_tests.json"
TREES = ("src", "tests")
MARKED = "cuda and not slow and not fuzz"
REPORT = "LANEWISE_CUDA_SUITE_REPORT"
LIMIT = 300
# Tests of arrays of many GiB, by the beginning of their names: one process runs them all, one after the other.
LARGE = (
    "tests/cuda/test_threadwise_large_cuda.py::",
    "tests/primitives/test_cumsum.py::test_more_elements_than_32_bits_count",
)
LONG = 1.0  # seconds from which a test's time is recorded, so that the next run starts with the long ones
PASSED, FAILED, SKIPPED, NOT_ENDED = "passed", "failed", "skipped", "not ended"


# ---------------------------------------------------------------- within a shard: pytest's hooks


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """One line for each phase of a test, written at once: a process that is stopped has said what it did."""
    if path := os.environ.get(REPORT):
        with open(path, "a", encoding="utf-8") as file:
            line = {"test": report.nodeid, "phase": report.when, "outcome": report.outcome, "seconds": report.duration}
            file.write(json.dumps(line) + "\n")


# ---------------------------------------------------------------- the trees


def tree_hash(folder: Path) -> str:
    """What `git rev-parse HEAD:folder` says once the folder's files are committed as they are; caches are left out."""
    entries: list[tuple[bytes, bytes]] = []  # in git's order, in which a folder's name ends with a slash
    for path in folder.iterdir():
        if path.name in ("__pycache__", ".ruff_cache") or path.suffix == ".pyc":
            continue
        name = path.name.encode()
        if path.is_dir():
            if inner := tree_hash(path):
                entries.append((name + b"/", b"40000 " + name + b"\0" + bytes.fromhex(inner)))
        else:
            mode = b"100755 " if os.access(path, os.X_OK) else b"100644 "
            entries.append((name, mode + name + b"\0" + _object("blob", path.read_bytes())))
    return _object("tree", b"".join(e for _, e in sorted(entries))).hex() if entries else ""


def _object(kind: str, content: bytes) -> bytes:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).digest()


def trees() -> dict[str, str]:
    return {name: tree_hash(ROOT / name) for name in TREES}


# ---------------------------------------------------------------- shards


@dataclass
class Shard:
    """Tests for one process on one GPU. ended: what its report says, by test: outcome and seconds."""

    number: int
    gpu: int
    tests: list[str] = field(default_factory=list)
    seconds: float = 0.0
    ended: dict[str, tuple[str, float]] = field(default_factory=dict)
    output: str = ""
    second: bool = False


def divide(tests: list[str], known: dict[str, float], count: int, gpus: int, *, second: bool = False) -> list[Shard]:
    """The longest tests first, each to the shard with the least to do; a test that nothing is known of counts as short.

    Large tests go to one shard, before all others: two at a time are more than a GPU's memory.
    """
    shards = [Shard(i, i % gpus, second=second) for i in range(min(count, len(tests)))]
    large = [t for t in tests if t.startswith(LARGE)]
    others = sorted(set(tests) - set(large), key=lambda t: (-known.get(t, 0.3), t))
    for together in (large, *([t] for t in others)):
        least = min(shards, key=lambda s: (s.seconds, len(s.tests), s.number))
        least.tests += together
        least.seconds += sum(known.get(t, 0.3) for t in together)
    return shards


def run(shard: Shard, folder: Path, limit: float) -> Shard:
    """Run a shard's tests, for at most `limit` seconds."""
    report, names = folder / f"report-{shard.number}.jsonl", folder / f"tests-{shard.number}.txt"
    names.write_text("\n".join(shard.tests), encoding="utf-8")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    numbers = (shard.gpu, 1 - shard.gpu) if shard.second else (shard.gpu,)  # each of the two is the first one in turn
    gpu = ",".join(visible[n] if any(visible) else str(n) for n in numbers)
    # JAX takes three quarters of the memory of a GPU, which the shards share, unless it is told to take what it needs.
    environment = {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        **os.environ,
        REPORT: str(report),
        "CUDA_VISIBLE_DEVICES": gpu,
    }
    # The second one first: this module imports it, and pytest refuses plugins that are imported already.
    plugins = [*(("-p", "tests.second_gpu") if shard.second else ()), "-p", "tests.cuda_suite"]
    command = [*PYTEST, "--tb=short", *plugins, "-m", MARKED, f"@{names}"]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit,
            check=False,
        )
        output = done.stdout
    except subprocess.TimeoutExpired as expired:
        output = (expired.stdout or b"") + f"\nstopped after {limit:.0f} s\n".encode()
    shard.output = output.decode(errors="replace")
    shard.ended = outcomes(report.read_text(encoding="utf-8") if report.exists() else "")
    return shard


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def outcomes(report: str) -> dict[str, tuple[str, float]]:
    """Outcome and seconds of each test that has ended; it failed when one of its phases did."""
    seconds: dict[str, float] = {}
    said: dict[str, set[str]] = {}
    ended: set[str] = set()
    for line in report.splitlines():
        r = json.loads(line)
        seconds[r["test"]] = seconds.get(r["test"], 0.0) + r["seconds"]
        said.setdefault(r["test"], set()).add(r["outcome"])
        if r["phase"] == "teardown":
            ended.add(r["test"])
    order = (FAILED, SKIPPED, PASSED)
    return {t: (next(o for o in order if o in said[t]), round(seconds[t], 2)) for t in said if t in ended}


def collect(*, second: bool = False) -> list[str]:
    """The names of all tests marked `cuda`, but slow ones; those that can be run on the second of two GPUs."""
    plugins = ["-p", "tests.second_gpu"] if second else []
    command = [*PYTEST, *plugins, "--collect-only", "-m", MARKED, "tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-4000:] + done.stderr[-4000:])
    return [line for line in done.stdout.splitlines() if "::" in line]


# ---------------------------------------------------------------- the record


def machine(gpus: int) -> dict[str, Any]:
    """The GPU, its driver, and the versions that decide what runs on it."""
    from importlib.metadata import version

    from lanewise.runtime.device import get_device

    found = get_device("cuda").identity()
    packages = {name: version(name) for name in ("numpy", "llvmlite", "cuda-core", "cuda-bindings", "cupy-cuda13x")}
    return {
        "gpu": found.device, "gpus": gpus, "driver": found.driver, "compiler": found.compiler,
        "python": sys.version.split()[0], "packages": packages,
    }  # fmt: skip


def record(tests: list[str], shards: list[Shard], before: dict[str, str], seconds: float) -> dict[str, Any]:
    """What is kept of a run; tests by name where they did not pass."""
    ended = {t: o for s in shards for t, o in s.ended.items()}
    outcome = {t: ended.get(t, (NOT_ENDED, 0.0))[0] for t in tests}
    counts = Counter(outcome.values())
    return {
        "trees": before,
        "date": datetime.date.today().isoformat(),
        "seconds": round(seconds),
        "processes": len(shards),
        "tests": len(tests),
        **{o.replace(" ", "_"): counts[o] for o in (PASSED, FAILED, SKIPPED, NOT_ENDED)},
        "names": {o: sorted(t for t in tests if outcome[t] == o) for o in (FAILED, SKIPPED, NOT_ENDED)},
        "long": {t: s for t, (_, s) in sorted(ended.items()) if s >= LONG},
    }


def check(path: Path) -> int:
    """Say whether a record belongs to the files as they are; 0 when it does and nothing failed."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    different = [n for n, h in trees().items() if kept["trees"].get(n) != h]
    bad = kept["failed"] + kept["not_ended"]
    print(f"{path.name}: {kept['passed']} of {kept['tests']} tests passed, {kept['date']}, {kept['machine']['gpu']}")
    print(f"of another state of {' and '.join(different)}" if different else "of the files as they are")
    return int(bool(different or bad))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=max(1, len(os.sched_getaffinity(0)) - 1))
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a shard may take")
    parser.add_argument(
        "--out", type=Path, default=RECORD.parent, help="the folder of cuda_tests.json and cuda_tests.log"
    )
    parser.add_argument("--check", action="store_true", help="compare the record with the files, and run nothing")
    parser.add_argument("--second", action="store_true", help="on the second of two GPUs, with the first one current")
    given = parser.parse_args()
    name = f"{RECORD.stem}_second" if given.second else RECORD.stem
    if given.check:
        return check(given.out / f"{name}.json")
    from lanewise.runtime import cuda

    gpus = int(cuda.cupy().cuda.runtime.getDeviceCount())
    if given.second and gpus < 2:
        raise SystemExit(f"--second needs two GPUs, and this machine has {gpus}")
    before, begin = trees(), time.monotonic()
    tests = collect(second=given.second)
    known = json.loads(RECORD.read_text(encoding="utf-8"))["long"] if RECORD.exists() else {}
    shards = divide(tests, known, given.processes, 2 if given.second else gpus, second=given.second)
    reports = given.out / f"{name}_shards"  # of a run that was stopped from outside they tell how far it came
    reports.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lanewise-cuda-suite-") as folder, ThreadPoolExecutor(len(shards)) as pool:
        os.environ.setdefault("LANEWISE_CACHE_DIR", str(Path(folder) / "cache"))  # shards share what they compile
        shards = list(pool.map(lambda s: run(s, reports, given.limit), shards))
    shutil.rmtree(reports)
    if trees() != before:
        raise SystemExit("src/ or tests/ changed while the tests ran: the record would belong to neither state")
    kept = {**record(tests, shards, before, time.monotonic() - begin), "machine": machine(gpus)}
    kept |= {"left_out": LEFT_OUT} if given.second else {}
    (given.out / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    bad = [s for s in shards if any(s.ended.get(t, (NOT_ENDED,))[0] in (FAILED, NOT_ENDED) for t in s.tests)]
    last = [f"{s.output.strip().splitlines()[-1] if s.output.strip() else 'nothing was printed'}" for s in shards]
    log = "\n".join(
        [*(f"shard {s.number}: {line}" for s, line in zip(shards, last, strict=True)), *(s.output for s in bad)]
    )
    (given.out / f"{name}.log").write_text(log.strip() + "\n", encoding="utf-8")
    print(f"{kept['passed']} of {len(tests)} passed, {kept['failed']} failed, {kept['skipped']} skipped,", end=" ")
    print(f"{kept['not_ended']} not ended, in {kept['seconds']} s by {len(shards)} processes on {gpus} GPUs")
    for outcome, names in kept["names"].items():
        for name in names:
            print(f"{outcome}: {name}")
    return int(bool(kept["failed"] or kept["not_ended"] or not kept["passed"]))


if __name__ == "__main__":
    sys.exit(main())
