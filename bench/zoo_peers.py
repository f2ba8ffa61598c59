"""Thirty naive kernels beside what other libraries make of the same: one run, in turns.

    python -m bench.zoo_peers [--seconds 170] [--device cuda] [--size full] [--peers NAME ...]
        [--kernels N ...]
Kernels are those of bench/zoo_peers_kernels.py: lanewise runs the zoo's text with its default plan,
PyTorch, torch.compile, CuPy, JAX and KeOps what their users write, Numba, Warp and Taichi the loops
as they are. float32 without TF32. Some points of every result are compared with the function itself
in float64, and all of it with ours. A peer that is not installed, fails or is wrong has its reason
in the report. Each kernel has a process; processes compile side by side and take turns at the
device. Times are of launches one after the other until the device is done, medians of 7 rounds.
Writes zoo_peers.jsonl, a line as soon as a kernel is measured, and at the end zoo_peers.md into
bench/results, or into the folder that the variable OUT names. `--report FILE` prints the report of
a file of lines.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from bench.zoo_case import CLOSE, in_turns, kernel_of, short
from bench.zoo_peers_kernels import PROBLEMS, Problem
from bench.zoo_peers_libraries import PEERS, Ready, on_host
from bench.zoo_runs import print_report, write_report
from lanewise.compiler.pipeline import build_program
from lanewise.explanation.calls import call_subject
from lanewise.explanation.compiled import find_model
from lanewise.models.least import least_time
from tests.zoo.generate import SMALL, Array
from tests.zoo.truth import Answer, answers, compare

OURS = "default"  # as `in_turns` names what is always timed in turns
FAR = 10  # times the best one: timed once
LONG = 5  # times as many launches as in the zoo, whose events leave out the wait at the end
TIES = 1e-3  # of the elements may differ where equal values have several indices
POINTS = 3  # whose float64 results are known
PACKAGES = (
    "torch",
    "triton",
    "cupy-cuda13x",
    "jax",
    "pykeops",
    "numba",
    "numba-cuda",
    "warp-lang",
    "taichi",
)
BEFORE_THE_END = 14.0  # seconds in which what is compiled is measured, and the report is written


class Turn:
    """What processes hold while they use the device; given back when one dies.

    One that has it may take it again.
    """

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        self.depth = 0

    def __enter__(self) -> None:
        if not self.depth:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if not self.depth:
            fcntl.flock(self.file, fcntl.LOCK_UN)


# ---------------------------------------------------------------- one kernel


@dataclass(slots=True)
class Measured:
    """One kernel with its peers on a device."""

    problem: Problem
    device: str
    size: str
    turn: AbstractContextManager[Any]
    until: float
    say: Callable[[str], None]

    def row(self, wanted: list[str], left_out: dict[str, str]) -> dict[str, Any]:
        """What is found: milliseconds of ours and of each peer, or why there are none."""
        problem, case = self.problem, self.problem.case
        host, grid = case.arguments(self.size)
        why = {n: left_out[n] for n in wanted if n in left_out}
        with kernel_of(case) as kernel:
            row = self._facts(kernel, host, grid)
            self.say(OURS)
            ready = {OURS: self._ours(kernel, host, grid)}
            told = answers(case, kernel.python, host, grid, points=POINTS)
            for name in (n for n in wanted if n not in why):
                self.say(name)
                try:
                    ready[name] = self._begun(name, host, grid)
                except Exception as error:  # its reason is its result
                    why[name] = reason(error)
            with self.turn:
                found = self._results(ready, why)
                if time.time() > self.until:
                    raise TimeoutError("the time was up before it was measured")
                times = in_turns({n: ready[n] for n in found}, self._seconds, far=FAR)
        self.say("")
        why |= self._wrong(found, told, host)
        return row | {
            "what": problem.what,
            "why": why,
            "ms": {n: t * 1e3 for n, t in times.items() if n == OURS or n not in why},
        }

    def _facts(self, kernel: Any, host: dict[str, Array], grid: tuple[int, ...]) -> dict[str, Any]:
        """The default plan, and the least time that the device needs for what it does."""
        problem, model = self.problem, find_model(self.device, None)
        given, named = (), {**host, "grid": grid}
        if problem.ours:
            kernel, given = problem.ours(host, "cpu")
            named = {}
        subject, _, _ = call_subject(kernel, given, named, self.device, model)
        plan = subject.default(lw.Plan())
        program = build_program(subject.reference, plan, self.device, between=False)
        cold = problem.case.is_beyond_caches(self.size)
        least = least_time(program, subject.environment, model, cold=cold).seconds
        return {"kernel": problem.name, "plan": short(program.plan), "bound_ms": least * 1e3}

    def _ours(self, kernel: Any, host: dict[str, Array], grid: tuple[int, ...]) -> Ready:
        if self.problem.ours:
            with self.turn:
                kernel, given = self.problem.ours(host, self.device)
            return Ready(kernel.bind(*given))
        with self.turn:
            arrays = on_host(host) if self.device == "cpu" else _copied(host)
        call = kernel.bind(**arrays, grid=grid)
        written = arrays[self.problem.case.written]
        return Ready(call, written=written)

    def _begun(self, name: str, host: dict[str, Array], grid: tuple[int, ...]) -> Ready:
        """A peer's call, compiled."""
        if time.time() > self.until - BEFORE_THE_END:
            raise TimeoutError("no time left to compile")
        peer, problem = PEERS[name], self.problem
        of = peer.begin(problem, self.device, self.turn)
        if not peer.shaped:  # compiled for types alone: with few elements
            few, ends = problem.case.arguments(SMALL)
            one = of(few, ends)
            one.wait(one.call())
        with self.turn:
            ready = of(host, grid)
        if peer.shaped:
            with self.turn if peer.tunes(problem) else nullcontext():
                ready.wait(ready.call())
        return ready

    def _results(self, ready: dict[str, Ready], why: dict[str, str]) -> dict[str, Any]:
        """What each computes; ours has to have a result."""
        found: dict[str, Any] = {}
        for name, one in ready.items():
            self.say(name)
            try:
                found[name] = one.result()
            except Exception as error:
                if name == OURS:
                    raise
                why[name] = reason(error)
        return found

    def _wrong(
        self, found: dict[str, Any], told: list[Answer], host: dict[str, Array]
    ) -> dict[str, str]:
        """Whose results are none, and why."""
        case, wrong = self.problem.case, dict[str, str]()
        ours = whole(host[case.written], found[OURS])
        allowed = TIES if self.problem.ties else 0.0
        for name, one in found.items():
            try:
                result = whole(host[case.written], one)
                compare(case, told, host, result)
                share = differing(result, ours)
                assert share <= allowed, f"{share:.1e} of the elements differ from ours"
            except (AssertionError, ValueError) as error:
                wrong[name] = reason(error)
        return wrong

    def _seconds(self, ready: Callable[[], Any], repeat: int) -> float:
        """Seconds of a call among many, until the device is done."""
        assert isinstance(ready, Ready)
        self._finish()
        begin = time.perf_counter()
        result: Any = None
        for _ in range(LONG * repeat):
            result = ready.call()
        ready.wait(result)
        self._finish()
        return (time.perf_counter() - begin) / (LONG * repeat)

    def _finish(self) -> None:
        if self.device != "cpu":
            import cupy

            cupy.cuda.runtime.deviceSynchronize()


def _copied(host: dict[str, Array]) -> dict[str, Any]:
    import cupy

    return {n: cupy.asarray(a) for n, a in host.items()}


def whole(like: Array, found: Any) -> Array:
    """What a kernel writes, from that or from its first columns."""
    if not isinstance(found, tuple):
        assert found.shape == like.shape, f"{found.shape} in place of {like.shape}"
        return found
    full = np.full_like(like, np.nan)
    for n, column in enumerate(found):
        full[:, n] = column
    return full


def differing(found: Array, wanted: Array) -> float:
    """The share of elements that are not those that are wanted."""
    near = np.abs(found - wanted) <= CLOSE * (1 + np.abs(wanted))
    return float(np.mean(~near & ~(np.isnan(found) & np.isnan(wanted))))


def reason(error: BaseException) -> str:
    """In one line why there is no time."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return f"{kind}: {text}"[:240] if text else kind


# ---------------------------------------------------------------- all of them


def main() -> int:
    asked = _asked()
    if asked.report:
        print_report(asked.report, report)
        return 0
    until = time.time() + asked.seconds - 4
    machine = describe_machine() | {"peers": _versions()}
    about = {"machine": machine, "size": asked.size, "device": asked.device}
    rows = write_report("zoo_peers", about, measured(asked, until), report)
    return int(any("failed" in row or OURS in row["why"] for row in rows))


def measured(asked: argparse.Namespace, until: float) -> Iterator[dict[str, Any]]:
    """A row of each kernel as soon as it is done, until the time is up.

    A peer that ends the process of a kernel is left out from then on, and the kernel begins again.
    """
    context, left_out = get_context("spawn"), dict[str, str]()
    waiting = [n for n in range(len(PROBLEMS)) if not asked.kernels or n in asked.kernels]
    works: dict[Any, tuple[Any, int, str]] = {}  # by what they say: process, kernel, peer
    turn = Path(tempfile.mkdtemp()) / "turn"
    while (waiting or works) and time.time() < until:
        while waiting and len(works) < asked.processes:
            kernel = waiting.pop(0)
            mine, other = context.Pipe(duplex=False)
            process = context.Process(
                target=_work, args=(kernel, asked, until, left_out, turn, other)
            )
            process.start()
            other.close()
            works[mine] = process, kernel, ""
        for said in connection.wait(list(works), max(0.0, until - time.time())):
            process, kernel, peer = works.pop(said)
            try:
                told = said.recv()
            except EOFError:  # it died
                process.join()
                what = PROBLEMS[kernel].what
                if peer in ("", OURS):
                    yield {"what": what, "failed": f"the process ended with {process.exitcode}"}
                else:
                    left_out[peer] = f"ended the process of {what!r} with {process.exitcode}"
                    waiting.insert(0, kernel)
                continue
            if isinstance(told, str):
                works[said] = process, kernel, told
            else:
                yield told
    for process, kernel, peer in works.values():
        process.kill()
        at = f" at {peer}" if peer else ""
        yield {"what": PROBLEMS[kernel].what, "failed": f"the time was up{at}"}
    for kernel in waiting:
        yield {"what": PROBLEMS[kernel].what, "failed": "the time was up"}
    shutil.rmtree(turn.parent)


def _work(
    kernel: int,
    asked: argparse.Namespace,
    until: float,
    left_out: dict[str, str],
    turn: Path,
    say: Any,
) -> None:
    """One kernel in a process of its own: says which peer it is about, and at the end its row."""
    problem = PROBLEMS[kernel]
    # the report is written in the last seconds
    work = Measured(problem, asked.device, asked.size, Turn(turn), until - 2, say.send)
    try:
        row = work.row(asked.peers or peers_of(asked.device), left_out)
    except Exception as error:  # one kernel that fails does not hide the others
        row = {"what": problem.what, "failed": reason(error)}
    say.send(row)
    say.close()
    os._exit(0)  # what libraries do at the end of a process is not waited for


def _versions() -> str:
    found: list[str] = []
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return ", ".join(found)


def peers_of(device: str) -> list[str]:
    """Those that a device may have."""
    return [n for n, p in PEERS.items() if device.split(":")[0] in p.devices]


def report(rows: list[dict[str, Any]], about: dict[str, Any]) -> Iterator[str]:
    """The lines of the report."""
    order = [p.what for p in PROBLEMS]
    rows = sorted(rows, key=lambda r: order.index(r["what"]))
    done = [r for r in rows if "ms" in r]
    names = [n for n in PEERS if any(n in r["ms"] for r in done)]
    yield "# Naive kernels beside other libraries"
    yield ""
    yield from (f"- {name}: {text}" for name, text in about["machine"].items())
    yield (
        f"\n{len(rows)} kernels on {about['device']}, size {about['size']}: milliseconds. Seeds of"
        " tests/zoo, or - for kernels of kinds that it does not draw. lanewise: the default plan."
        " The bound: what the device needs at least for the work as it is written.\n"
    )
    yield f"| seed | kernel | lanewise | {' | '.join(names)} | bound | lanewise / best peer |"
    yield f"|---|---|--:|{'--:|' * len(names)}--:|--:|"
    ratios: list[tuple[float, str, str]] = []
    for r in done:
        ms, peers = r["ms"], {n: r["ms"][n] for n in names if n in r["ms"]}
        best = min(peers, key=lambda n: peers[n], default="")
        cells = [f"{ms[n]:.4g}" if n in ms else "" for n in (OURS, *names)]
        ratio = ""
        if best and OURS not in r["why"]:
            ratios.append((ms[OURS] / peers[best], r["what"], best))
            ratio = f"{ratios[-1][0]:.2f}"
        row = (r["kernel"], r["what"], *cells, f"{r['bound_ms']:.4g}", ratio)
        yield f"| {' | '.join(row)} |"
    if ratios:
        first = sum(ratio <= 1 for ratio, _, _ in ratios)
        median = float(np.median([ratio for ratio, _, _ in ratios]))
        yield (
            f"\nlanewise is first in {first} of {len(ratios)}; in the median it takes {median:.2f} of"
            " the time of the best peer.\n"
        )
    for ratio, what, best in sorted(ratios, reverse=True):
        if ratio > 1:
            yield f"- not first: {what}: {ratio:.2f} of the time of {best}"
    yield from (f"- {r['what']}: {r['failed']}" for r in rows if "failed" in r)
    yield from (f"- lanewise, {r['what']}: {r['why'][OURS]}" for r in done if OURS in r["why"])
    yield from _reasons(done)


def _reasons(done: list[dict[str, Any]]) -> Iterator[str]:
    """Why peers have no times: a reason that many kernels have once."""
    found: dict[tuple[str, str], list[str]] = {}
    for r in done:
        for name, why in r["why"].items():
            if name != OURS:
                found.setdefault((name, why), []).append(r["what"])
    for (name, why), kernels in found.items():
        where = f"{len(kernels)} kernels" if len(kernels) > 3 else "; ".join(kernels)
        yield f"- {name}, {where}: {why}"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", choices=("small", "wave", "full"), default="full")
    parser.add_argument("--seconds", type=float, default=170, help="of the whole run at most")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), help="all by default")
    parser.add_argument("--kernels", nargs="*", type=int, help="their numbers; all by default")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--report", help="print the report of a file of lines")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
