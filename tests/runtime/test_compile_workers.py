"""Kernels compiled side by side: the same results wherever they are made, and no process that stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lanewise.runtime import compile_workers

CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
WORKERS = 0 if CORES < 2 else min(CORES, compile_workers.MOST)
ROOT = Path(__file__).parent.parent.parent
COMPILED = "compiled: ['plus', 'root', 'square']"


def said(case: str, cache: Path) -> list[str]:
    """What a case of side_by_side_kernels.py says."""
    command = [sys.executable, "-m", "tests.runtime.side_by_side_kernels", case]
    environment = {**os.environ, "LANEWISE_CACHE_DIR": str(cache), "LANEWISE_TUNED": "off"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=environment, cwd=ROOT
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.quick("used")
@pytest.mark.parametrize("case", ["plain", "used"])
def test_workers_compile_what_is_bound(case: str, tmp_path: Path) -> None:
    wanted = ["ended: True open: 0", "equal: True"]
    assert said(case, tmp_path) == [*wanted, f"workers: {WORKERS} {COMPILED}", "warned:"]
    assert said(case, tmp_path) == [*wanted, "workers: 0 compiled: []", "warned:"]  # all of it was kept


def test_they_need_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert said("plain", tmp_path / "file" / "cache")[1:3] == ["equal: True", f"workers: {WORKERS} {COMPILED}"]


def test_there_are_none_beside_other_threads(tmp_path: Path) -> None:
    assert said("thread", tmp_path)[1:3] == ["equal: True", f"workers: 0 {COMPILED}"]


@pytest.mark.skipif(not WORKERS, reason="there are no workers on one core")
def test_what_a_worker_leaves_is_compiled_here_and_said(tmp_path: Path) -> None:
    lines = said("killed", tmp_path)
    assert lines[1] == "equal: True"
    assert lines[3].startswith("warned: a process that compiled ")
    assert "ended early (code -9); is the memory short? It is compiled in this process" in lines[3]


def test_an_error_ends_them(tmp_path: Path) -> None:
    lines = said("broken", tmp_path)
    assert lines[:2] == [f"workers: {WORKERS} alive: {WORKERS}", "ended: True open: 0"]
    assert "equal: True" in lines


def test_nothing_is_taken_where_nobody_compiles() -> None:
    assert compile_workers.taken(("key", ())) == b""
    with compile_workers.side_by_side(), compile_workers.side_by_side():
        assert compile_workers.taken(("key", ())) == b""
    assert not compile_workers.is_open()
