"""The frame of the fuzzers: numbered cases that a seed makes, run in this process (quick) or in a guarded one (long).

A campaign is one function of a `Case`. It draws what it needs from `case.random`, does something that must not go
wrong, and returns the outcome as a word; what it raises is a failure. Case 17 of a seed is the same in every process,
and so is the report:

    python -m pytest tests/fuzz -m fuzz                        # 10,000 cases of each campaign
    LANEWISE_FUZZ_CASE=17 python -m pytest tests/fuzz -m fuzz  # one case again

Variables: LANEWISE_FUZZ_COUNT, _SEED, _SHARDS, _SECONDS (of one shard of a campaign), _CASE, and _REPORT, a file that
gets one line of JSON a shard. `make fuzz` sets them.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.fuzz.guarded import Guarded, GuardedError, keep

MOST_FAILURES = 10  # a shard that met 10 stops: one fault is met many times


def _number(name: str, default: int) -> int:
    return int(os.environ.get(f"LANEWISE_FUZZ_{name}") or default)


SHARDS = _number("SHARDS", 16)


@dataclass
class Case:
    """One case: where its random numbers come from, and what it leaves behind beside its outcome.

    `shown` is what reproduces the case, set as soon as it is known, so that a crash loses nothing: a program, a
    command. `counts` are further things worth counting. quick: what takes long is done in some of the cases only, for
    the suite.
    """

    campaign: str
    seed: int
    number: int
    quick: bool = False
    random: Random = field(init=False)
    counts: Counter[str] = field(init=False, default_factory=Counter[str])
    _shown: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.random = Random(f"{self.campaign} {self.seed} {self.number}")

    @property
    def shown(self) -> str:
        return self._shown

    @shown.setter
    def shown(self, text: str) -> None:
        self._shown = text
        keep(text)

    @property
    def numpy_seed(self) -> int:
        """For `numpy.random.default_rng`."""
        return self.random.getrandbits(63)


@dataclass
class Tally:
    """What one shard of a campaign did."""

    campaign: str
    seed: int
    shard: int
    shards: int
    cases: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        by_outcome = ", ".join(f"{n} {outcome}" for outcome, n in sorted(self.outcomes.items())) or "none"
        failed = f", {len(self.failures)} FAILED" if self.failures else ""
        place = f"campaign {self.campaign} shard {self.shard}/{self.shards}"
        return f"{place}: {self.cases} cases, {by_outcome}{failed}, {self.seconds:.1f} s, seed {self.seed}"

    def add(self, answer: dict[str, Any]) -> None:
        self.cases += 1
        self.counts.update(answer["counts"])
        if "failure" in answer:
            self.failures.append(answer["failure"])
        else:
            self.outcomes[answer["outcome"]] += 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "campaign": self.campaign, "seed": self.seed, "shard": self.shard, "shards": self.shards, "cases": self.cases,
            "seconds": round(self.seconds, 1), "outcomes": dict(self.outcomes), "counts": dict(self.counts), "failures": self.failures,
        }  # fmt: skip


def run_case(campaign: str, body: Callable[[Case], str], seed: int, number: int, quick: bool = False) -> dict[str, Any]:
    """Run one case: its outcome or its failure as text, and its counts. Whatever it raises is a failure."""
    case = Case(campaign, seed, number, quick)
    try:
        return {"outcome": body(case), "counts": dict(case.counts)}
    except Exception:
        return {
            "failure": _described(campaign, seed, number, traceback.format_exc(), case.shown),
            "counts": dict(case.counts),
        }


def _described(campaign: str, seed: int, number: int, what: str, shown: str = "") -> str:
    again = f"LANEWISE_FUZZ_SEED={seed} LANEWISE_FUZZ_CASE={number}"
    return f"campaign {campaign}, seed {seed}, case {number} (again: {again})\n{shown}\n{what}".rstrip()


@dataclass(frozen=True)
class Campaign:
    """A campaign: its name and its body, a function of a module (long runs import it in a process of their own).

    limit: seconds that a case may take before it counts as hanging.
    renew: cases after which the process is replaced: compiled kernels stay in memory.
    memory: bytes that the process may address; 0 for no limit.
    alone: quick cases run in a guarded process, too.
    """

    name: str
    body: Callable[[Case], str]
    limit: float = 120.0
    renew: int = 500
    memory: int = 0
    alone: bool = False

    def quick(self, count: int, seed: int = 1) -> Tally:
        """Some cases, in this process unless they have to be `alone`; the first failure ends it."""
        tally = Tally(self.name, seed, 0, 1)
        with self.process() as process:
            for number in range(count):
                if self.alone:
                    tally.add(self.guarded(process, seed, number, quick=True))
                else:
                    tally.add(run_case(self.name, self.body, seed, number, True))
                if tally.failures:
                    _fail(tally.failures[0])
        return tally

    def long(self, shard: int, record: Callable[[str, object], None] = lambda name, value: None) -> Tally:
        """Every case of a shard in guarded processes: crashes and hangs are failures like others, and the next case
        follows.
        """
        count, seed, seconds = _number("COUNT", 10_000), _number("SEED", 1), _number("SECONDS", 0)
        tally = Tally(self.name, seed, shard, SHARDS)
        begin = time.perf_counter()
        with self.process() as process:
            for number in self._numbers(shard, count):
                tally.add(self.guarded(process, seed, number))
                tally.seconds = time.perf_counter() - begin
                if len(tally.failures) == MOST_FAILURES or (seconds and tally.seconds > seconds):
                    break
                if tally.cases % self.renew == 0:
                    process.stop()
        _publish(tally, record)
        if tally.failures:
            _fail("\n\n".join((str(tally), *tally.failures)))
        return tally

    def process(self) -> Guarded:
        """That answers its cases; not started yet."""
        return Guarded(
            "tests.fuzz.worker", (self.name, self.body.__module__, self.body.__qualname__), memory=self.memory
        )

    @staticmethod
    def _numbers(shard: int, count: int) -> Iterator[int]:
        if "LANEWISE_FUZZ_CASE" in os.environ:
            one = _number("CASE", 0)
            yield from [one] if one % SHARDS == shard else []
        else:
            yield from range(shard, count, SHARDS)

    def guarded(
        self, process: Guarded, seed: int, number: int, *, quick: bool = False, named: bool = False
    ) -> dict[str, Any]:
        """One case in a guarded process. named: of a process that answers the cases of any campaign."""
        question: dict[str, Any] = {"seed": seed, "number": number, "quick": quick}
        if named:
            question["named"] = (self.name, self.body.__module__, self.body.__qualname__)
        try:
            return process.ask(question, self.limit)
        except GuardedError as error:
            return {"failure": _described(self.name, seed, number, str(error), error.shown), "counts": {}}


def _publish(tally: Tally, record: Callable[[str, object], None]) -> None:
    print(tally)
    line = json.dumps(tally.as_dict())
    record("fuzz", line)
    if path := os.environ.get("LANEWISE_FUZZ_REPORT"):
        with open(path, "a", encoding="utf-8") as file:  # one write of one line: processes append at the same time
            file.write(line + "\n")


def _fail(text: str) -> None:
    import pytest  # a machine with a GPU may have none, and runs campaigns without

    pytest.fail(text, pytrace=False)
