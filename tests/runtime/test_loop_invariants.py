"""Kernels whose loops compute long chains of what stays the same are compiled as fast as others."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import lanewise as lw
from lanewise.runtime import llvm
from lanewise.runtime.loop_invariants import MOST_PATHS, most_paths
from tests.fuzz.texts import executed

DEPTHS = (1, 2, 3, 4, 5, 6)
FORMS = {
    "extremes": ["y = lw.min(lw.max(y, q * {k}), q + y)"],
    "floors": ["y = y // ({k}.0 + y)"],
    "rests": ["y = y % ({k}.5 + y)"],
    "all of them": ["y = lw.min(lw.max(y, -{k}.0), q) // ({k}.25 + q) + y % {k}.5"],
    "branches": ["if y < {k}.0:", "    y = y // q + y", "else:", "    y = q - y * y"],
    "helpers": ["y = lw.mix(tame(y), tame(y // 0.25), tame(q))"],
    "loops": ["for k{k} in range(3):", "    if y > k{k}:", "        y = y * y + lw.min(y, q)"],
}
PATTERNS = {
    "threadwise": """
@lw.threadwise
def kernel(i: lw.index, j: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], p: lw.f32, q: lw.f32):
    y = p // 0.5
    BODY
    b[i, j] = y + a[i, j]

def run():
    kernel(a=np.ones((5, 7), "f4"), b=np.zeros((5, 7), "f4"), p=1.5, q=0.7, grid=(5, 7))
""",
    "elementwise": """
@lw.elementwise
def kernel(r: R, p: lw.f32, q: lw.f32) -> lw.f32:
    y = p // 0.5
    BODY
    return y + r.x

def run():
    kernel(R.array(x=np.ones(100, "f4")), 1.5, 0.7)
""",
    "pairwise": """
@lw.pairwise
def kernel(t: R, s: R, p: lw.f32, q: lw.f32) -> lw.f32:
    y = s.x * 0.0 + p // 0.5
    BODY
    return y * t.x

def run():
    r = R.array(x=np.ones(100, "f4"))
    kernel(r, r, p=1.5, q=0.7)
""",
}
HEAD = """
import numpy as np

import lanewise as lw

class R(lw.Record):
    x: lw.f32

@lw.function
def tame(x):
    return lw.floor(lw.clamp(x, -4, 4) * 4) * 0.25
"""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[float, bool]]:
    """Of the kernels compiled from now on: how many paths there are, and whether LLVM may interleave.

    What LLVM may interleave although there are too many would be compiled for minutes: it ends the test.
    """
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    paths, seen = list[float](), list[tuple[float, bool]]()

    def builder(machine: Any, **options: Any) -> Any:
        if (interleaves := options.get("interleaves")) is not None:  # of the last round
            seen.append((paths[-1], interleaves))
            assert interleaves == (paths[-1] <= MOST_PATHS)
        return ordinary(machine, **options)

    ordinary = llvm._builder
    monkeypatch.setattr(llvm, "most_paths", lambda text: paths.append(most_paths(text)) or paths[-1])
    monkeypatch.setattr(llvm, "_builder", builder)
    return seen


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_chains_are_compiled(pattern: str, form: str, depth: int, compiled: list[tuple[float, bool]]) -> None:
    lines = [line.format(k=k) for k in range(1, depth + 1) for line in FORMS[form]]
    text = HEAD + PATTERNS[pattern].replace("BODY", "\n    ".join(lines))
    with executed(text, f"chains_{pattern}_{depth}.py") as names, lw.device("cpu"):
        names.run()
    assert compiled


def test_long_chains_are_not_interleaved(compiled: list[tuple[float, bool]]) -> None:
    """Six were compiled for minutes; here are thirty."""
    lines = [FORMS["all of them"][0].format(k=k) for k in range(1, 31)]
    text = HEAD + PATTERNS["elementwise"].replace("BODY", "\n    ".join(lines))
    with executed(text, "long_chain.py") as names, lw.device("cpu"):
        names.run()
    assert compiled[-1] == (pytest.approx(compiled[-1][0]), False)


def test_a_chain_around_a_loop_that_falls_away_is_not_interleaved(compiled: list[tuple[float, bool]]) -> None:
    lines = [
        "z = lw.u32(31)",
        "for k in range(a.shape[1]):",
        "    z *= lw.select(lw.isfinite(2.0), lw.u32(1), lw.u32(k))",
    ]
    lines += [FORMS["helpers"][0]] * 5
    text = HEAD + PATTERNS["threadwise"].replace("BODY", "\n    ".join(lines)).replace("= y + a", "= y + lw.f32(z) + a")
    with executed(text, "falls_away.py") as names, lw.device("cpu"):
        names.run()
    assert not compiled[-1][1]


def loop(body: str, *, around: str = "") -> str:
    """A function in LLVM's language that runs a body of blocks, in which `%p` stays the same and `%i` does not."""
    return f"""
define i32 @kernel(ptr %a, i64 %n, float %p) {{
entry:
  br label %head
head:                                             ; preds = %end, %entry
  %i = phi i64 [ 0, %entry ], [ %next, %end ]
  br label %first
{body}
end:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %exit
exit:
  ret i32 0
}}
{around}"""


def diamonds(count: int, begin: str) -> str:
    """Branches that meet again: each asks of the value of the one before and uses it twice."""
    text = f"first:\n  %v0 = fadd float {begin}, 1.0\n  br label %b1\n"
    for n in range(1, count + 1):
        text += (
            f"b{n}:\n  %c{n} = fcmp olt float %v{n - 1}, 2.0\n  br i1 %c{n}, label %t{n}, label %m{n}\n"
            f"t{n}:\n  %w{n} = fmul float %v{n - 1}, 3.0\n  br label %m{n}\n"
            f"m{n}:\n  %v{n} = phi float [ %w{n}, %t{n} ], [ %v{n - 1}, %b{n} ]\n  br label %{f'b{n + 1}' if n < count else 'end'}\n"
        )
    return text


def test_paths_double_with_every_use() -> None:
    found = [most_paths(loop(diamonds(count, "%p"))) for count in range(1, 30)]
    assert all(2 * a < b < 8 * a for a, b in pairwise(found[2:]))
    assert found[0] < 10
    assert found[-1] > 4**28


def test_what_changes_has_no_paths() -> None:
    changing = diamonds(30, "%x").replace("first:\n", "first:\n  %x = sitofp i64 %i to float\n")
    assert most_paths(loop(changing)) == 0


def test_conditions_that_meet_again_are_none() -> None:
    """Branches one after the other, none of which asks what an earlier one has left."""
    body = diamonds(40, "%p")
    for n in range(1, 41):
        body = body.replace(f"float %v{n},", "float %p,").replace(f"[ %v{n},", "[ %p,")
    assert most_paths(loop(body)) < 1000


def test_a_loop_within_that_multiplies_has_infinitely_many() -> None:
    inner = """first:
  br label %inner
inner:
  %k = phi i64 [ 0, %first ], [ %k1, %join ]
  %v = phi float [ %p, %first ], [ %w, %join ]
  %c = fcmp olt float %v, 2.0
  br i1 %c, label %square, label %join
square:
  %s = fmul float %v, %v
  br label %join
join:
  %w = phi float [ %s, %square ], [ %v, %inner ]
  %k1 = add i64 %k, 1
  %d = icmp slt i64 %k1, 3
  br i1 %d, label %inner, label %end
"""
    assert most_paths(loop(inner)) == math.inf
    # Not written out, its rounds count once: up to a number that nobody knows, and down from one.
    assert most_paths(loop(inner.replace("%k1, 3", "%k1, %n"))) < 100
    down = inner.replace("[ 0, %first ]", "[ %n, %first ]").replace("%k, 1", "%k, -1")
    assert most_paths(loop(down.replace("slt i64 %k1, 3", "sgt i64 %k1, 0"))) < 100
    adds = inner.replace("fmul float %v, %v", "fadd float %p, 1.0").replace("olt float %v", "olt float %p")
    assert most_paths(loop(adds)) < 100


def test_paths_lead_through_functions_and_memory() -> None:
    helper = f"define float @helper(float %p) {{\nentry:\n  br label %first\n{diamonds(20, '%p')}end:\n  ret float %v20\n}}\n"
    call = "first:\n  %v = call float @helper(float %p)\n  br label %end\n"
    assert most_paths(loop(call, around=helper)) > 4**18
    assert most_paths(loop(call)) < 10
    kept = diamonds(20, "%v").replace(
        "first:\n", "first:\n  %m = alloca float\n  store float %p, ptr %m\n  %v = load float, ptr %m\n"
    )
    assert most_paths(loop(kept)) > 4**18
    changing = kept.replace("store float %p", "%x = sitofp i64 %i to float\n  store float %x")
    assert most_paths(loop(changing)) < 10


def test_ordinary_kernels_are_interleaved(compiled: list[tuple[float, bool]]) -> None:
    text = """
import numpy as np

import lanewise as lw

class Body(lw.Record):
    position: lw.vec3
    mass: lw.f32

@lw.pairwise
def gravity(a: Body, b: Body, softening: lw.f32) -> lw.vec3:
    d = b.position - a.position
    distance = lw.max(lw.length(d), softening)
    return b.mass * d / (distance * distance * distance)

def run():
    bodies = Body.array(position=np.ones((64, 3)), mass=np.ones(64))
    gravity(bodies, bodies, 0.1)
"""
    with executed(text, "ordinary.py") as names, lw.device("cpu"):
        names.run()
    assert all(interleaves and paths < 10_000 for paths, interleaves in compiled)


def test_least_and_largest_of_all_are_interleaved(compiled: list[tuple[float, bool]]) -> None:
    """A running minimum asks twice for what it has, in a loop whose rounds nobody knows."""
    text = """
import numpy as np

import lanewise as lw

@lw.threadwise
def extremes(i: lw.index, x: lw.Array2[lw.f32], low: lw.Array1[lw.f32], p: lw.f32):
    least = p
    for k in range(x.shape[1]):
        least = lw.min(lw.max(least, x[0, k]), least * p)
    low[i] = least

def run():
    extremes(x=np.ones((8, 30), "f4"), low=np.ones(8, "f4"), p=0.5, grid=8)
"""
    with executed(text, "extremes.py") as names, lw.device("cpu"):
        names.run()
    assert all(interleaves for _, interleaves in compiled)
