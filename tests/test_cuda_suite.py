"""How the tests of the GPU are divided, what their record says, and to which files it belongs. Needs no GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import cuda_suite
from tests.cuda_suite import FAILED, LARGE, PASSED, ROOT, SKIPPED, Shard, divide, outcomes, record, run, tree_hash


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_tree_has_the_name_that_git_gives_it(tmp_path: Path) -> None:
    files = {"a.py": "1", "a/b.py": "2", "a-b.txt": "3", "a/c/d": "", "a0": "x", "z.sh": "#!/bin/sh\n"}
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "src" / "z.sh").chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}

    def git(*words: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    for ignored in ("__pycache__/a.pyc", "a/__pycache__/b.pyc"):
        path = tmp_path / "src" / ignored
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    assert tree_hash(tmp_path / "src") == git("rev-parse", "HEAD:src")


def test_long_tests_come_first_and_every_test_once() -> None:
    tests = [f"t{i}" for i in range(20)]
    shards = divide(tests, {"t7": 30.0, "t3": 20.0}, 3, 2)
    assert sorted(t for s in shards for t in s.tests) == sorted(tests)
    assert [s.tests[0] for s in shards][:2] == ["t7", "t3"]
    assert [len(s.tests) for s in shards] == [1, 1, 18]
    assert [s.gpu for s in shards] == [0, 1, 0]
    assert [s.tests for s in divide(["a"], {}, 8, 1)] == [["a"]]


def test_large_tests_run_one_after_the_other() -> None:
    large = [f"{LARGE[0]}test_{i}" for i in range(5)] + [LARGE[1]]
    shards = divide([*large[:3], "a", *large[3:], *(f"t{i}" for i in range(20))], {}, 4, 2)
    assert [s.tests[: len(large)] for s in shards if set(s.tests) & set(large)] == [large]


def test_large_tests_are_tests_of_a_file() -> None:
    for name in LARGE:
        file, _, test = name.partition("::")
        assert test in (ROOT / file).read_text(encoding="utf-8")


def test_what_a_report_says() -> None:
    def line(test: str, phase: str, outcome: str) -> str:
        return json.dumps({"test": test, "phase": phase, "outcome": outcome, "seconds": 0.5})

    report = "\n".join(
        [
            *(line("good", p, PASSED) for p in ("setup", "call", "teardown")),
            line("bad", "setup", PASSED), line("bad", "call", FAILED), line("bad", "teardown", PASSED),
            line("late", "setup", PASSED), line("late", "call", PASSED), line("late", "teardown", FAILED),
            line("left out", "setup", SKIPPED), line("left out", "teardown", PASSED),
            line("stopped", "setup", PASSED),
        ]
    )  # fmt: skip
    assert outcomes(report) == {
        "good": (PASSED, 1.5), "bad": (FAILED, 1.5), "late": (FAILED, 1.5), "left out": (SKIPPED, 1.0),
    }  # fmt: skip


def test_a_record_names_what_did_not_pass() -> None:
    shard = Shard(0, 0, ["a", "b", "c", "d"], ended={"a": (PASSED, 2.0), "b": (FAILED, 0.1), "c": (SKIPPED, 0.0)})
    kept = record(["a", "b", "c", "d"], [shard], {"src": "1", "tests": "2"}, 12.3)
    assert (kept["passed"], kept["failed"], kept["skipped"], kept["not_ended"], kept["tests"]) == (1, 1, 1, 1, 4)
    assert kept["names"] == {"failed": ["b"], "skipped": ["c"], "not ended": ["d"]}
    assert kept["long"] == {"a": 2.0}


def test_a_shard_whose_process_ends_has_reported_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole processes of pytest: one test passes, one fails, one takes the process with it; then one that has no time."""
    (tmp_path / "test_three.py").write_text(
        "import os\ndef test_good(): pass\ndef test_bad(): assert 0\ndef test_fatal(): os._exit(9)\n"
    )
    names = [f"{tmp_path}/test_three.py::{n}" for n in ("test_good", "test_bad", "test_fatal")]
    monkeypatch.setattr(cuda_suite, "MARKED", "not slow")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]
    monkeypatch.setattr(cuda_suite, "PYTEST", command)
    found = run(Shard(0, 0, names), tmp_path, 300)
    by_name = {t.split("::")[1]: o for t, (o, _) in found.ended.items()}
    assert by_name == {"test_good": PASSED, "test_bad": FAILED}
    stopped = run(Shard(1, 0, names), tmp_path, 0.001)
    assert (stopped.ended, stopped.output.strip()) == ({}, "stopped after 0 s")


def test_a_record_of_other_files_is_told_from_one_of_these(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cuda_tests.json"
    kept: dict[str, Any] = {
        "trees": cuda_suite.trees(), "tests": 2, "passed": 2, "failed": 0, "not_ended": 0, "date": "2026-01-01",
        "machine": {"gpu": "NVIDIA H200"},
    }  # fmt: skip
    path.write_text(json.dumps(kept))
    assert cuda_suite.check(path) == 0
    kept["trees"]["src"] = "0"
    path.write_text(json.dumps(kept))
    assert cuda_suite.check(path) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "of another state of src"
