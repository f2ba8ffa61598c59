"""Campaigns of random programs of all patterns without pytest, in many processes: what runs on a machine with a GPU.

    LANEWISE_FUZZ_FINDINGS=folder python -m tests.fuzz.many --count 4000 --processes 16 --seconds 440

Programs are given to the patterns in turn. What fails is written into the folder, one file each, which runs by itself;
the summary goes to standard output. A campaign that took too long goes on with `--first` and the number of programs
that ran. Ends with 1 where something failed, or where fewer programs ran than were requested.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from tests.fuzz.campaign import Campaign, Tally
from tests.fuzz.summary import markdown
from tests.fuzz.wide import CAMPAIGNS, CAMPAIGNS_ON_A_GPU


def main() -> int:
    asked = _asked()
    folder = Path(os.environ.get("LANEWISE_FUZZ_FINDINGS") or tempfile.mkdtemp(prefix="lanewise-findings-"))
    folder.mkdir(parents=True, exist_ok=True)
    campaigns = CAMPAIGNS if asked.device == "cpu" else CAMPAIGNS_ON_A_GPU
    campaigns = [c for c in campaigns if not asked.patterns or c.name.split("-")[0] in asked.patterns]
    tallies, lock, begin = {c.name: Tally(c.name, asked.seed, 0, 1) for c in campaigns}, Lock(), time.monotonic()

    waiting = iter(range(asked.first, asked.count))  # whoever is free takes the next one

    def shard() -> None:
        with _Processes() as processes:
            while time.monotonic() - begin < asked.seconds:
                with lock:
                    n = next(waiting, None)
                if n is None:
                    return
                number, campaign = n // len(campaigns), campaigns[n % len(campaigns)]
                start = time.monotonic()
                answer = processes.ask(campaign, asked.seed, number)
                with lock:
                    tallies[campaign.name].add(answer)
                    tallies[campaign.name].seconds += time.monotonic() - start
                    if "failure" in answer:
                        (folder / f"{campaign.name}-{asked.seed}-{number}.py").write_text(
                            _file(str(answer["failure"])), encoding="utf-8"
                        )

    with ThreadPoolExecutor(asked.processes) as pool:
        for done in [pool.submit(shard) for _ in range(asked.processes)]:
            done.result()
    found = [t.as_dict() for t in tallies.values() if t.cases]
    for t in found:
        t["failures"] = [_brief(f) for f in t["failures"]]
    ran, failed, count = (
        sum(t["cases"] for t in found),
        sum(len(t["failures"]) for t in found),
        asked.count - asked.first,
    )
    print(markdown(found))
    print(
        f"{ran:,} of {count:,} programs from number {asked.first:,} on, {failed} failed, {time.monotonic() - begin:.0f} s, seed {asked.seed}, findings in {folder}"
    )
    return 1 if failed or ran < count else 0


class _Processes:
    """One guarded process for whatever campaign comes, replaced after so many programs: compiled kernels stay in
    memory.
    """

    def __init__(self) -> None:
        self._process, self._cases = CAMPAIGNS[0].process(), Counter[str]()

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def ask(self, campaign: Campaign, seed: int, number: int) -> dict[str, object]:
        self._cases["all"] += 1
        if self._cases["all"] % campaign.renew == 0:
            self._process.stop()
        return campaign.guarded(self._process, seed, number, named=True)


def _file(failure: str) -> str:
    """A failure as a file: the program, with what was said of it behind it."""
    head, _, rest = failure.partition("\n")
    found = re.search(r"^(Traceback|HANGS|CRASHED)", rest, re.MULTILINE)
    program, what = (rest[: found.start()], rest[found.start() :]) if found else (rest, "")
    return (
        f'{program}\n\n# run("python") and run("cuda") differ, or one of them fails:\n_ = r"""\n{head}\n{what}\n"""\n'
    )


def _brief(failure: str) -> str:
    """The case, and what went wrong: the last line of a traceback, the first one of a crash."""
    lines = failure.splitlines()
    ended = next((x for x in lines if x.startswith(("HANGS", "CRASHED"))), lines[-1])
    return f"{lines[0]}: {ended}"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--count", type=int, default=4000, help="the number behind the last one, of all patterns together"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first one: a campaign in several parts")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=440, help="after which no program begins")
    parser.add_argument("--seed", type=int, default=20261127)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--patterns", nargs="*", default=(), help="names; without, all of them")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
