"""The frame itself: cases repeat, failures say how to see them again, crashes and hangs end one case and not the
campaign.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import campaign, many, summary
from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.guarded import Guarded, GuardedError


def body(case: Case) -> str:
    """Numbers decide what happens: 3 raises, 5 crashes, 7 hangs, with libraries loaded whose names say
    nothing of it.
    """
    case.shown = f"program {case.random.randrange(1000)}"
    case.counts["seen"] += 1
    match case.number:
        case 3:
            raise ValueError("three")
        case 5:
            print("about to crash")
            os.kill(os.getpid(), signal.SIGSEGV)
        case 7:
            import scipy.sparse  # noqa: F401

            print("about to hang")
            time.sleep(60)
    return "even" if case.number % 2 == 0 else "odd"


TRIAL = Campaign("trial", body, limit=3.0, renew=4)


def test_a_case_is_the_same_again() -> None:
    a, b, c = Case("x", 1, 2), Case("x", 1, 2), Case("x", 1, 3)
    assert (a.random.random(), a.numpy_seed) == (b.random.random(), b.numpy_seed)
    assert Case("x", 1, 2).random.random() != c.random.random()


def test_a_quick_run_stops_at_its_first_failure() -> None:
    assert TRIAL.quick(3).outcomes == {"even": 2, "odd": 1}
    with pytest.raises(
        pytest.fail.Exception,
        match=r"campaign trial, seed 1, case 3 \(again: LANEWISE_FUZZ_SEED=1 LANEWISE_FUZZ_CASE=3\)\nprogram \d+\n",
    ):
        TRIAL.quick(5)


@pytest.mark.slow
def test_a_long_run_survives_crashes_and_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report.jsonl"
    monkeypatch.setattr(campaign, "SHARDS", 2)
    for name, value in (("COUNT", "10"), ("SEED", "2"), ("REPORT", str(report))):
        monkeypatch.setenv(f"LANEWISE_FUZZ_{name}", value)
    recorded: list[Any] = []
    TRIAL.long(0, lambda name, value: recorded.append((name, value)))
    with pytest.raises(pytest.fail.Exception) as failed:
        TRIAL.long(1)
    text = str(failed.value)
    wanted = (
        "campaign trial shard 1/2: 5 cases, 2 odd, 3 FAILED", "case 3 ", "ValueError: three", "case 5 ",
        "CRASHED: the process ended with SIGSEGV\nabout to crash\nFatal Python error: Segmentation fault", "case 7 ",
        "HANGS: no answer for 3 s\nabout to hang\nFatal Python error: Aborted", "in body\n", ": state S, ",
    )  # fmt: skip
    assert [part for part in wanted if part not in text] == []
    assert "Extension modules" not in text
    for part in text.split("campaign trial, seed")[1:]:
        assert re.match(r" 2, case \d .*\nprogram \d+\n", part)  # also of a process that is gone
    found = summary.read(report)
    assert recorded == [("fuzz", json.dumps(found[0]))]
    (line,) = summary.lines(found)
    assert line.startswith("campaign trial: 10 cases in 2 shards, 5 even, 2 odd, 3 failed")
    assert "| trial | 10 | 2 |" in summary.markdown(found)
    assert "**trial**: seen 8" in summary.markdown(found)


@pytest.mark.slow
def test_failures_are_files_that_run() -> None:
    with TRIAL.process() as process:
        hung = TRIAL.guarded(process, 1, 7)["failure"]
    raised = campaign.run_case("trial", body, 1, 3)["failure"]
    for number, failure, what in ((3, raised, "ValueError: three"), (7, hung, "HANGS: no answer for 3 s")):
        names: dict[str, Any] = {}
        exec(many._file(failure.replace("\nprogram ", "\nprogram = ")), names)
        assert names["program"] == Case("trial", 1, number).random.randrange(1000)
        assert f"case {number} " in names["_"]
        assert what in names["_"]
        assert re.match(rf"campaign trial, seed 1, case {number} .*: {what}$", many._brief(failure))


def test_one_case_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SHARDS", 2)
    monkeypatch.setenv("LANEWISE_FUZZ_CASE", "9")
    assert (TRIAL.long(0).cases, TRIAL.long(1).cases) == (0, 1)


def test_a_time_limit_ends_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_FUZZ_SECONDS", "1")
    slow = Campaign("slow", sleeping)
    assert 0 < slow.long(0).cases < 40


def sleeping(case: Case) -> str:
    time.sleep(0.1)
    return "slept"


def test_a_guarded_process_that_cannot_start_says_why() -> None:
    with (
        Guarded("tests.fuzz.nowhere") as process,
        pytest.raises(GuardedError, match=r"CRASHED: .* 1\n.*No module named"),
    ):
        process.ask({}, 30)
