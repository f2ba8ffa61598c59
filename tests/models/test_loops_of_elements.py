"""Loops within elements and pairs that stay loops on a CPU: no lanes are made of what is around them, and the model
knows it.
"""

from __future__ import annotations

import linecache
import platform
import random
import re
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import Program, build_program
from lanewise.emit.llvm import emit_llvm
from lanewise.explanation.calls import call_subject
from lanewise.explanation.subject import Subject
from lanewise.models.devices import DeviceModel
from lanewise.models.predict import Analyses, predict
from lanewise.runtime import llvm

CPU = DeviceModel(
    "a CPU", "cpu", "x86_64", 2, 3.7e9, 16, 8, 2, 16, 16, 8, 28e9, 230e9, 1 << 20, None, 1, launch_seconds=4e-6,
    vector_bits=512, preferred_bits=512, last_cache_bytes=1 << 25,
)  # fmt: skip
PACKED = re.compile(r"\tv?(?:add|sub|mul|fn?m(?:add|sub)\w*)p[sd]\b")


class Place(lw.Record):
    x: lw.f32
    q: lw.f32


def kernel_of(pattern: str, body: str) -> Any:
    head = {
        "elementwise": "def k(a: lw.f32, n: lw.i32, w: lw.Array1[lw.f32]) -> lw.f32:\n    x = a\n",
        "pairwise": "def k(t: Place, s: Place, n: lw.i32, w: lw.Array1[lw.f32]) -> lw.f32:\n"
        "    a = t.x - s.x\n    x = a * s.q\n",
    }[pattern]
    text = f"@lw.{pattern}\n{head}{body}    return x\n"
    file = f"<{pattern} {abs(hash(body))}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    space: dict[str, Any] = {"lw": lw, "Place": Place, "__name__": __name__}
    exec(compile(text, file, "exec"), space)
    return space["k"]


def built(pattern: str, body: str, n: int = 20) -> tuple[Subject, Program]:
    x, w = np.ones(100_000, np.float32), np.ones(50, np.float32)
    some = Place.array(x=x[:3000], q=x[:3000])
    first: dict[str, Any] = {"a": x} if pattern == "elementwise" else {"t": some, "s": some}
    subject, _, _ = call_subject(kernel_of(pattern, body), (), {**first, "n": n, "w": w}, "cpu", CPU)
    return subject, build_program(subject.reference, subject.default(lw.Plan()), "cpu", between=False)


def has_lanes(pattern: str, body: str) -> bool:
    """By the model: none of its loops is alone."""
    subject, program = built(pattern, body)
    works = (Analyses().of(k, subject.environment, fast_math=False) for k in program.kernels)
    return not any(r.alone for w in works for r in w.regions)


def drawn(seed: int) -> str:
    """A body with a loop, far enough from the length up to which LLVM writes one out."""
    draw = random.Random(seed)
    step = draw.choice(("0.5 * (x + a * x)", "x * a + 0.25", "(x - a) * (x + a) * 0.5", "0.5 * (x + a / x)"))
    short, long = draw.choice((3, 4, 8, 16)), draw.choice((150, 400, 5000))
    inner = f"x = {step}"
    if draw.random() < 0.3:
        inner = f"if x > a:\n{{0}}    x = {step}\n{{0}}else:\n{{0}}    x = x * 1.5 + a"
    loop = draw.choice(
        (
            f"for _ in range({short}):",
            f"for _ in range({long}):",
            "for _ in range(n):",
            "for _ in range(len(w)):",
            "while x * x > a:",
        )
    )
    lines = f"    {loop}\n        {inner.format('        ')}\n"
    return f"    if a > 0.5:\n{re.sub('(?m)^', '    ', lines.rstrip())}\n" if draw.random() < 0.2 else lines


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads the machine code of x86")
@pytest.mark.parametrize("seed", range(24))
def test_lanes_are_those_of_the_compiler(seed: int) -> None:
    body = drawn(seed)
    _, program = built("elementwise", body)
    text = llvm.assembly(emit_llvm(program.kernels[0], "", locations=False))
    assert has_lanes("elementwise", body) == bool(PACKED.search(text)), body


@pytest.mark.parametrize("pattern", ["elementwise", "pairwise"])
def test_what_stays_a_loop_takes_longer_than_lanes(pattern: str) -> None:
    """Both were predicted to take the same time; the loop takes 17 times as long."""
    times = []
    for rounds in ("20", "n"):
        subject, program = built(pattern, f"    for _ in range({rounds}):\n        x = 0.5 * (x + a / x)\n")
        times.append(predict(program, subject.environment, CPU).seconds)
    assert times[1] > 4 * times[0]


def test_the_explanation_names_the_line() -> None:
    x, w = np.ones(1000, np.float32), np.ones(50, np.float32)
    texts = []
    for body in ("    while x * x > a:\n        x = 0.5 * x\n", "    for _ in range(4):\n        x = 0.5 * x\n"):
        texts.append(str(kernel_of("elementwise", body).compile(x, 3, w).explain()))
    told = "loop of line 4: elements are computed one after the other, without SIMD lanes"
    assert [told in t for t in texts] == [True, False]


@lw.threadwise
def normalised(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * a[y, k]
    for k in range(a.shape[1]):
        r[y, k] = a[y, k] / (s + 1.0)


@pytest.mark.parametrize("rows", [256, 1024, 4096])
def test_rows_that_overlap_have_a_prediction(rows: int) -> None:
    """Where a row begins with a line of memory data tell, but not how long it is."""
    a = np.ones((rows, 4096), np.float32)
    subject, _, _ = call_subject(normalised, (), {"a": a, "r": a.copy(), "grid": (rows,)}, "cpu", CPU)
    program = build_program(subject.reference, subject.plan, "cpu")
    found = predict(program, subject.environment, CPU)
    assert not found.unknown.guessed
    assert found.seconds == pytest.approx(rows * 4096 * 8 / CPU.memory_bandwidth, rel=0.5) or rows < 1024


class Moved(lw.Record):
    x: lw.f32
    v: lw.f32


@lw.elementwise
def changed(p: Moved, step: lw.f32):
    p.x = p.x * step


@lw.elementwise
def copied(p: Moved, step: lw.f32) -> lw.f32:
    return p.x * step


def test_what_is_changed_in_place_comes_from_memory_once() -> None:
    """A result besides comes from memory as well, before it is written."""
    p = Moved.array(x=np.ones(1 << 24, np.float32), v=np.ones(1 << 24, np.float32), layout=lw.SoA())
    times: list[float] = []
    for kernel in (changed, copied):
        subject, _, _ = call_subject(kernel, (p, 0.5), {}, "cpu", CPU)
        program = build_program(subject.reference, subject.plan, "cpu")
        times.append(predict(program, subject.environment, CPU).seconds)
    assert times[0] == pytest.approx(4 * (1 << 24) / CPU.memory_bandwidth, rel=0.05)
    assert times[1] == pytest.approx(2 * times[0], rel=0.05)
