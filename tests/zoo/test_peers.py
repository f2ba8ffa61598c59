"""Texts of other libraries compute what the zoo's kernels do, as far as NumPy and Python can tell; the bench runs."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("bench.zoo_peers", reason="benches are not installed")
from bench import zoo_peers
from bench.zoo_case import kernel_of
from bench.zoo_peers import OURS, Measured, differing, measured, report, whole
from bench.zoo_peers_kernels import OWN, PROBLEMS, Problem
from bench.zoo_peers_naive import NUMBA, TAICHI, WARP, module_of, spelled
from tests.zoo.generate import SMALL, Array
from tests.zoo.truth import answers, compare

SUM, FIVE = 13, 24  # the numbers of two kernels
FUNCTIONS = {"abs": np.abs, "max": np.maximum, "min": np.minimum, "exp": np.exp}
JOINS = {"a + b": np.sum, "min(a, b)": np.min, "max(a, b)": np.max}
FEW = 40  # points, which Python can run one by one


def named(problem: Problem) -> str:
    return problem.what.replace(" ", "-")


each = pytest.mark.parametrize("problem", PROBLEMS, ids=named)


def test_thirty_kernels_of_which_the_zoo_draws_most_by_odd_seeds() -> None:
    seeds = [p.case.seed for p in PROBLEMS if p.case.seed < OWN]
    assert len({p.what for p in PROBLEMS}) == 30
    assert len(set(seeds)) == 24
    assert all(s % 2 for s in seeds)


def right(problem: Problem, found: Any, given: dict[str, Array], grid: tuple[int, ...], points: int = 4) -> None:
    """Raises `AssertionError` where a result is not what the function itself says."""
    with kernel_of(problem.case) as kernel:
        told = answers(problem.case, kernel.python, given, grid, points=points)
    compare(problem.case, told, given, whole(given[problem.case.written], found))


@each
def test_texts_of_numpy(problem: Problem) -> None:
    given, grid = problem.case.arguments(SMALL)
    right(problem, problem.numpy(np, *problem.read(given)), given, grid)


class ReductionKernel:
    """What CuPy's computes of arrays of one kind, by NumPy."""

    def __init__(self, ins: str, out: str, pair: str, join: str, after: str, start: str, name: str) -> None:
        assert (out, after, float(start) in (0, 1e30, -1e30)) == ("T r", "r = a", True), name
        self.names = ins.replace("T ", "").split(", ")
        self.pair, self.join = pair, JOINS[join]

    def __call__(self, *arrays: Array, axis: int) -> Array:
        return self.join(eval(self.pair, FUNCTIONS | dict(zip(self.names, arrays, strict=True))), axis=axis)


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.cupy], ids=named)
def test_texts_of_cupy(problem: Problem) -> None:
    import scipy  # which imports its parts when they are used: they take a second

    cupy = ModuleType("cupy")
    vars(cupy).update(vars(np) | {"ReductionKernel": ReductionKernel})
    given, grid = problem.case.arguments(SMALL)
    assert problem.cupy is not None
    right(problem, problem.cupy(cupy, scipy, *problem.read(given)), given, grid)


# ---------------------------------------------------------------- loops as they are, run by Python


def few(problem: Problem) -> tuple[dict[str, Array], tuple[int, ...]]:
    """Arrays of so few points that Python can run all of them."""
    rng = np.random.default_rng(problem.case.seed)
    shapes, grid = problem.case.shapes(64 if problem.case.family == "gather" else FEW)
    given = {n: rng.random(shape, np.float32) - np.float32(0.25) for n, shape in shapes.items()}
    if "i" in given:
        given["i"] = rng.integers(0, len(given["a"]), len(given["i"])).astype(np.int32)
    given[problem.case.written][...] = np.nan
    return given, grid


def numba_like(point: list[int]) -> dict[str, ModuleType]:
    """A module like Numba's, whose threads are the point that a list holds."""
    numba = ModuleType("numba")
    reverse: Any = lambda rank: tuple(reversed(point)) if rank > 1 else point[0]  # noqa: E731
    vars(numba).update(cuda=SimpleNamespace(jit=lambda f: f, grid=reverse), float32=np.float32)
    return {"numba": numba}


def warp_like(point: list[int]) -> dict[str, ModuleType]:
    warp = ModuleType("warp")
    warp.kernel = lambda **how: lambda f: f  # type: ignore[attr-defined]
    warp.tid = lambda: tuple(point) if len(point) > 1 else point[0]  # type: ignore[attr-defined]
    clamp = lambda v, low, high: min(max(v, low), high)  # noqa: E731
    vars(warp).update(max=max, min=min, abs=abs, exp=math.exp, log=math.log, clamp=clamp, float32=None, int32=None)
    vars(warp).update({f"array{n}d": lambda dtype: None for n in (1, 2, 3)})
    return {"warp": warp}


@each
@pytest.mark.parametrize("language", ["numba", "warp"])
def test_texts_of_threads(problem: Problem, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, grid = few(problem)
    point = [0] * len(grid)
    like, spelling, ends = (numba_like, NUMBA, grid) if language == "numba" else (warp_like, WARP, ())
    for name, module in like(point).items():
        monkeypatch.setitem(sys.modules, name, module)
    kernel = module_of(spelled(problem.case.text, spelling), f"by_{language}").kernel
    for point[:] in itertools.product(*map(range, grid)):
        kernel(*given.values(), *ends)
    right(problem, given[problem.case.written].copy(), given, grid)


@each
def test_texts_of_taichi(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    taichi = ModuleType("taichi")
    ndrange = lambda *ends: itertools.product(*map(range, ends))  # noqa: E731
    vars(taichi).update(kernel=lambda f: f, ndrange=ndrange, exp=math.exp, log=math.log, f32=float, i32=int)
    vars(taichi).update(types=SimpleNamespace(ndarray=lambda **how: None))
    monkeypatch.setitem(sys.modules, "taichi", taichi)
    given, grid = few(problem)
    module_of(spelled(problem.case.text, TAICHI), "by_taichi").kernel(*given.values(), *grid)
    right(problem, given[problem.case.written].copy(), given, grid)


def test_constants_and_counts_stay_32_bits_wide() -> None:
    text = (
        "@lw.threadwise\ndef kernel(y: lw.index, r: lw.Array1[lw.f32]):\n    s = -1e30\n    r[y] = s + 0.5 * (y + 1)\n"
    )
    by_numba, by_warp = (spelled(text, language).splitlines()[-2:] for language in (NUMBA, WARP))
    assert by_numba == ["        s = -float32(1e+30)", "        r[y] = s + float32(0.5) * float32(y + 1)"]
    assert by_warp == ["    s = float(-1e+30)", "    r[y] = s + 0.5 * float(y + 1)"]


# ---------------------------------------------------------------- the bench itself


def measure(problem: Problem, *peers: str) -> dict[str, Any]:
    bench = Measured(problem, "cpu", SMALL, nullcontext(), time.time() + 100, lambda said: None)
    return bench.row(list(peers), {"CuPy": "left out"})


@pytest.mark.parametrize("number", [SUM, FIVE])
def test_a_row(number: int) -> None:
    row = measure(PROBLEMS[number], "NumPy", "CuPy")
    assert row["why"] == {"CuPy": "left out"}
    assert set(row["ms"]) == {OURS, "NumPy"}
    assert all(t > 0 for t in row["ms"].values())
    about = {"machine": {}, "size": SMALL, "device": "cpu"}
    (line,) = (s for s in report([row], about) if s.startswith("| ") and row["what"] in s)
    assert line.startswith(f"| {'269' if number == SUM else '-'} | {row['what']} | ")


def test_a_wrong_result_has_no_time() -> None:
    host, _ = PROBLEMS[FIVE].case.arguments(SMALL)
    problem = Problem(PROBLEMS[FIVE].what, PROBLEMS[FIVE].case, lambda xp, a: a, lambda torch, a: a)
    row = measure(problem, "NumPy")
    assert set(row["ms"]) == {OURS}
    assert row["why"]["NumPy"].startswith(f"AssertionError: seed {OWN + 1}, (")
    assert differing(host["a"], host["a"] + 1) == 1


ABOUT = {"machine": {"GPU": "a GPU"}, "size": "full", "device": "cuda"}


def row(number: int, ms: dict[str, float], **why: str) -> dict[str, Any]:
    problem = PROBLEMS[number]
    return {"what": problem.what, "kernel": problem.name, "plan": "", "bound_ms": 0.5, "ms": ms, "why": why}


def test_the_report_says_where_others_are_first_and_why_they_have_no_time() -> None:
    rows = [
        row(1, {OURS: 1.5, "PyTorch": 1.0, "JAX": 3.0}, Warp="ModuleNotFoundError: no"),
        row(0, {OURS: 1.0, "PyTorch": 4.0}, Warp="ModuleNotFoundError: no"),
        row(2, {OURS: 1.0, "JAX": 1.0}, **{OURS: "AssertionError: wrong"}),
        {"what": PROBLEMS[3].what, "failed": "the time was up"},
    ]
    lines = list(report(rows, ABOUT))
    table = [s for s in lines if s.startswith("| ")]
    assert table[0] == "| seed | kernel | lanewise | PyTorch | JAX | bound | lanewise / best peer |"
    assert table[1] == "| 297 | A Bᵀ | 1 | 4 |  | 0.5 | 0.25 |"
    assert table[3] == "| 1433 | triangular A Bᵀ | 1 |  | 1 | 0.5 |  |"
    text = "\n".join(lines)
    assert "lanewise is first in 1 of 2; in the median it takes 0.88 of the time of the best peer." in text
    assert "- not first: Aᵀ B, batched: 1.50 of the time of PyTorch" in text
    assert "- Warp, A Bᵀ; Aᵀ B, batched: ModuleNotFoundError: no" in text
    assert "- lanewise, triangular A Bᵀ: AssertionError: wrong" in text
    assert f"- {PROBLEMS[3].what}: the time was up" in text


def dying(kernel: int, asked: Any, until: float, left_out: dict[str, str], turn: Path, say: Any) -> None:
    """Ends its process in Warp the first time."""
    del asked, until, turn
    if "Warp" not in left_out:
        say.send("Warp")
        os._exit(9)
    say.send(row(kernel, {OURS: 1.0}, **left_out))


@pytest.mark.slow
def test_a_peer_that_ends_the_process_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo_peers, "_work", dying)
    asked: Any = SimpleNamespace(kernels=[0, 1], processes=1)
    rows = list(measured(asked, time.time() + 100))
    assert [r["why"] for r in rows] == [{"Warp": "ended the process of 'A Bᵀ' with 9"}] * 2


@pytest.mark.slow
def test_the_bench_runs(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "bench.zoo_peers",
        "--device",
        "cpu",
        "--size",
        "small",
        "--peers",
        "NumPy",
        "CuPy",
    ]
    command += ["--kernels", str(SUM), str(FIVE), "--processes", "2"]
    run = partial(subprocess.run, check=True, capture_output=True, text=True)
    said = run(command, env=os.environ | {"OUT": str(tmp_path)}).stdout
    assert "2 kernels on cpu, size small" in said
    assert (tmp_path / "zoo_peers.md").read_text(encoding="utf-8") == said
    assert run([*command[:3], "--report", str(tmp_path / "zoo_peers.jsonl")]).stdout == said
