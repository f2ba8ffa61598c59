"""Random small kernels of integers: Python, the interpreter, every stage for a GPU, and the CPU agree to the bit."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.affine import accesses, nest_of
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.interpreted_accesses import Accesses
from lanewise.planning.plan import NEUTRAL, Plan
from tests.patterns.threadwise import run_stage

SIDE = 5  # of every array
NUMBER = itertools.count()


@st.composite
def index(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """An index that surely lies in a dimension: affine and clamped, or by arithmetic."""
    name, factor, shift = draw(st.sampled_from(names)), draw(st.integers(-2, 3)), draw(st.integers(-3, 3))
    other = draw(st.sampled_from(names))
    form = draw(st.sampled_from(["({n} * {f} + {s} + {o}) % a.shape[0]", "lw.clamp({n} * {f} + {s}, 0, a.shape[0] - 1)", "({n} + t[{o} % len(t)]) % len(t)"]))  # fmt: skip
    return form.format(n=name, f=factor, s=shift, o=other)


@st.composite
def value(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """An integer of 64 bits."""
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return f"a[{draw(index(names))}, {draw(index(names))}]"
    if kind == 1:
        return f"lw.i64({draw(st.sampled_from(names))} * {draw(st.integers(-9, 9))})"
    if kind == 2:
        return f"(s {draw(st.sampled_from('+-*'))} a[{draw(index(names))}, {draw(index(names))}])"
    if kind == 3:
        return f"(a[{draw(index(names))}, {draw(index(names))}] if {draw(condition(names))} else s)"
    return f"lw.i64(t[{draw(index(names))}])"


@st.composite
def condition(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    left, right = draw(st.sampled_from(names)), draw(st.sampled_from((*names, "2", "a.shape[1] - 1")))
    test = f"{left} {draw(st.sampled_from(['<', '==', '>=', '!=']))} {right}"
    return draw(st.sampled_from([test, f"{test} and s > 0", f"{test} or s < 3"]))


@st.composite
def statements(draw: st.DrawFn, names: tuple[str, ...], depth: int, loops: int) -> list[str]:
    """Lines that give `s` another value, store it, branch, loop, end early."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 6 if depth < 2 else 2))
        if kind <= 1:
            lines.append(f"s {draw(st.sampled_from(['=', '+=', '-=', '*=']))} {draw(value(names))}")
        elif kind == 2 and draw(st.booleans()):
            at = f"({draw(index(names))}, {draw(index(names))})"
            lines.append(f"lw.scatter_add(d, {at}, {draw(value(names))})")
        elif kind == 2:
            lines.append(f"c[y, x] {draw(st.sampled_from(['=', '+=']))} s")
        elif kind == 3:
            lines.append(f"if {draw(condition(names))}:")
            lines += _indented(draw(statements(names, depth + 1, loops)))
            if draw(st.booleans()):
                lines.append("else:")
                lines += _indented(draw(statements(names, depth + 1, loops)))
        elif kind == 4 and not loops:
            lines.append(f"if {draw(condition(names))}:")
            lines += _indented([*draw(statements(names, depth + 1, loops)), "return"])
        else:
            k = f"k{loops}"
            end = draw(st.sampled_from(["a.shape[1]", "y", "3", "x + 1"]))
            lines.append(f"for {k} in range({end}):")
            body = draw(statements((*names, k), depth + 1, loops + 1))
            if draw(st.booleans()):
                body += [f"if {draw(condition((*names, k)))}:", f"    {draw(st.sampled_from(['break', 'continue']))}"]
            lines += _indented(body)
    return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


HEAD = """import lanewise as lw


@lw.threadwise
def kernel(
    y: lw.index, x: lw.index, a: lw.Array2[lw.i64], t: lw.Array1[lw.i32], c: lw.Array2[lw.i64], d: lw.Array2[lw.i64]
):
    s = lw.i64(1)
"""


def load(lines: list[str], folder: Path) -> Any:
    """The kernel of a file with these lines."""
    path = folder / f"random_kernel_{next(NUMBER)}.py"
    path.write_text(
        HEAD + "\n".join(_indented([*lines, "c[y, x] += s", "lw.scatter_add(d, (y % 2, 0), s)"])) + "\n",
        encoding="utf-8",
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.kernel


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "a": rng.integers(-9, 9, (SIDE, SIDE)),
        "t": rng.integers(0, 9, SIDE, np.int32),
        "c": np.zeros((SIDE + 1, 7), np.int64),
        "d": np.zeros((SIDE, SIDE), np.int64),
    }


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_kernels_mean_what_python_does(tmp_path: Path) -> None:
    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(statements(("y", "x"), 0, 0))
    def holds(lines: list[str]) -> None:
        kernel, expected = load(lines, tmp_path), arrays()
        grid = expected["c"].shape
        for y, x in np.ndindex(*grid):
            kernel.python(np.int32(y), np.int32(x), **expected)
        on_cpu = arrays()
        kernel(**on_cpu, grid=grid)
        for name in "cd":
            np.testing.assert_array_equal(on_cpu[name], expected[name])
        compiled = kernel.compile(**arrays(), grid=grid)
        stages: list[ir.Kernel] = []
        build_program(compiled.reference, Plan(block=32).filled(NEUTRAL), "cuda", lambda name, k: stages.append(k))
        for stage in (stages[0], stages[-1]):
            found = arrays()
            run_stage(stage, found, compiled.environment)
            for name in "cd":
                np.testing.assert_array_equal(found[name], expected[name])
        assert isinstance(kernel.compile(**arrays(), grid=grid).explain().json(), str)

    with lw.device("cpu"):
        holds()


@pytest.mark.slow
def test_what_is_said_of_accesses_holds_wherever_they_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every affine index is the sum that the analysis says; threads that are said to come to a place together do."""
    seen: dict[int, list[tuple[tuple[int, ...], dict[str, Any]]]] = {}
    plain = Accesses._element  # pyright: ignore[reportPrivateUsage]

    def watched(self: Accesses, s: Any) -> Any:
        access = plain(self, s)

        def seen_access(env: dict[str, Any]) -> None:
            seen.setdefault(id(s), []).append((tuple(int(evaluate(i, env)) for i in s.indices), dict(env)))
            access(env)

        return seen_access

    monkeypatch.setattr(Accesses, "_element", watched)
    count = {"affine": 0, "together": 0}

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(statements(("y", "x"), 0, 0))
    def holds(lines: list[str]) -> None:
        kernel, given_arrays = load(lines, tmp_path), arrays()
        compiled = kernel.compile(**given_arrays, grid=given_arrays["c"].shape)
        seen.clear()
        run_stage(compiled.reference, given_arrays, compiled.environment)
        indices, body = nest_of(compiled.reference)
        for access in accesses(body, indices):
            visits = seen.get(id(access.statement), [])
            for found, env in visits:
                for form, place in zip(access.indices, found, strict=True):
                    if form is not None and not form.scaled:
                        terms = sum(c * int(evaluate(e, env)) for e, c in form.terms)
                        assert place == form.constant + terms + sum(c * int(env[v]) for v, c in form.coefficients)
                        count["affine"] += 1
            if visits and not access.guards and all(loop.shared for loop in access.loops):
                times = dict.fromkeys(np.ndindex(*given_arrays["c"].shape), 0)
                for _, env in visits:
                    times[int(env["y"]), int(env["x"])] += 1
                assert len(set(times.values())) == 1, "all threads come here as often"
                count["together"] += 1

    holds()
    assert min(count.values()) > 100
