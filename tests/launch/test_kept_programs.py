"""Programs on the disk: found again for the same kernel and no other one, and made again where they cannot be believed."""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise import patterns
from lanewise.compiler.pipeline import Program, build_program
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import HostCode, Pattern
from lanewise.launch import kept_programs
from lanewise.launch.executable import generated_texts
from lanewise.launch.kept_programs import Built
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan
from lanewise.runtime import cache
from lanewise.runtime.cache import cache_directory, read_entry, write_entry


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32


def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


def push(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 2 * d


FIELDS = {"position": np.arange(60.0).reshape(20, 3) % 7, "mass": np.ones(20)}
NARROW = Plan(unroll=4).filled(NEUTRAL)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were built, one entry each."""
    names: list[str] = []

    def counted(reference: ir.Kernel, plan: CompletePlan, kind: str, **named: Any) -> Program:
        names.append(reference.name)
        return build_program(reference, plan, kind, **named)

    monkeypatch.setattr(kept_programs, "build_program", counted)
    return names


def reference(function: Callable[..., Any] = pull, layout: Any = None) -> ir.Kernel:
    bodies = Body.array(**FIELDS, layout=layout)
    return lw.pairwise(function).compile(bodies, bodies, 0.5).reference


def entries() -> list[Path]:
    return sorted(p for p in (cache_directory() / "programs").iterdir())


def test_what_is_kept_is_what_was_made(built: list[str]) -> None:
    kernel = reference()
    for kind in ("cpu", "cuda"):
        for plan in (Plan(block=64).filled(NEUTRAL), Plan(block=64).filled(NARROW)):
            program = build_program(kernel, plan, kind)
            made = Built(program, tuple(generated_texts(program, kind, locations=False)))
            assert kept_programs.built(kernel, plan, kind) == made
            before = len(built)
            again = kept_programs.built(reference(), plan, kind)
            assert len(built) == before
            assert again == made
            assert again is not made
            assert all(k.pattern is kernel.pattern for k in again.program.kernels)  # patterns are compared by identity


def test_no_text_is_made_for_the_interpreter(built: list[str]) -> None:
    kernel = reference()
    compiled = kept_programs.built(kernel, NARROW, "cpu")
    for _ in range(2):
        assert kept_programs.built(kernel, NARROW, "python") == Built(compiled.program, ())


def test_calls_of_later_processes_run_the_same_programs(built: list[str]) -> None:
    bodies = Body.array(**FIELDS)
    first = lw.pairwise(pull)(bodies, bodies, 0.5)
    assert built == ["pull"]
    second = lw.pairwise(pull)  # which knows nothing of the other one
    assert second(bodies, bodies, 0.5).tobytes() == first.tobytes()
    assert built == ["pull"]
    lw.pairwise(push)(bodies, bodies, 0.5)
    assert built == ["pull", "push"]


def test_everything_that_decides_has_an_entry_of_its_own(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = reference()
    built.clear()
    calls: dict[str, tuple[ir.Kernel, CompletePlan, str]] = {
        "as it is": (replace(kernel, identical=False), NEUTRAL, "cpu"),
        "another function": (reference(push), NEUTRAL, "cuda"),
        "another layout": (reference(layout=lw.AoS()), NEUTRAL, "cuda"),
        "another plan": (kernel, NARROW, "cuda"),
        "the first": (kernel, NEUTRAL, "cuda"),
    }
    built.clear()
    names = {name: kept_programs.entry_name(*call) for name, call in calls.items()}
    assert len(set(names.values())) == len(calls)
    assert kept_programs.entry_name(reference(), NEUTRAL, "cuda") == names["the first"]
    monkeypatch.setattr(kept_programs, "_sources", lambda: "other sources")
    assert kept_programs.entry_name(kernel, NEUTRAL, "cuda") not in names.values()


def test_no_folder_that_is_left_out_has_a_part_in_a_program() -> None:
    """What `build_program` imports, in a process that imports nothing else, lies in none of them."""
    root = Path(__file__).parents[2]
    listing = (
        "import sys; from lanewise.launch.kept_programs import ABOVE; import lanewise.compiler.stages, lanewise.compiler.pipeline; "
        "import ast, pathlib; root = pathlib.Path(lanewise.__file__).parent\n"
        "for room in ('passes', 'analysis', 'ir', 'layouts', 'emit'):\n"
        "    for path in (root / room).rglob('*.py'):\n"
        "        for node in ast.walk(ast.parse(path.read_text())):\n"
        "            if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('lanewise.'):\n"
        "                assert node.module.split('.')[1] not in ABOVE, (path, node.module)\n"
        "print('fine')"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=False, env=environment, timeout=120
    )
    assert done.stdout == "fine\n", done.stderr


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "cut short": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    "appended": lambda content: content + b"more",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_entries_are_made_again(name: str, built: list[str]) -> None:
    kernel = reference()
    expected = kept_programs.built(kernel, NARROW, "cpu")
    (path,) = (p for p in entries() if p.name == str(kept_programs.entry_name(kernel, NARROW, "cpu")).split("/")[1])
    good = path.read_bytes()
    path.write_bytes(DAMAGES[name](good))
    built.clear()
    assert kept_programs.built(kernel, NARROW, "cpu") == expected
    assert kept_programs.built(kernel, NARROW, "cpu") == expected
    assert built == ["pull"]
    assert path.read_bytes() == good


class Planted:
    """A pickle that makes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_an_entry_makes_nothing_but_a_program(tmp_path: Path, built: list[str]) -> None:
    """Whole entries with something else in them: their checksums fit, and they are made again."""
    kernel, mark = reference(), tmp_path / "mark"
    expected, name = kept_programs.built(kernel, NARROW, "cpu"), kept_programs.entry_name(kernel, NARROW, "cpu")
    assert name is not None
    foreign = pickle.dumps(Planted(mark))
    pickle.loads(foreign)
    assert mark.exists()  # it would work
    mark.unlink()
    for content in (zlib.compress(foreign), foreign, zlib.compress(pickle.dumps(None)), zlib.compress(b""), b""):
        write_entry(name, content)
        built.clear()
        assert kept_programs.built(kernel, NARROW, "cpu") == expected
        assert built == ["pull"]
        assert not mark.exists()
        assert read_entry(name) not in (None, content)


def shape(kernel: ir.Kernel, plan: Any, target: Any, checked: Any) -> tuple[ir.Kernel, ...]:
    return (kernel,)


def test_patterns_of_other_makers_are_not_kept(built: list[str]) -> None:
    """Their code is in no hash of lanewise's sources, and may change under the same name."""
    kernel = reference()
    built.clear()
    foreign = Pattern("pairwise", over_pairs=True, shape=shape)
    assert kept_programs.entry_name(replace(kernel, pattern=foreign), NEUTRAL, "cpu") is None
    ours = replace(foreign, shape=build_program)
    assert kept_programs.entry_name(replace(kernel, pattern=ours), NEUTRAL, "cpu") is not None
    # says that it is lanewise's, and holds what may change
    closed = functools.wraps(build_program)(lambda *given: built)
    ours = replace(foreign, shape=closed)
    assert kept_programs.entry_name(replace(kernel, pattern=ours), NEUTRAL, "cpu") is None
    plain, other = (Pattern("mine", host=HostCode(inline=i)) for i in (False, True))
    names = [kept_programs.entry_name(replace(kernel, pattern=p), NEUTRAL, "cpu") for p in (plain, other)]
    assert names[0] != names[1]


def test_programs_of_all_of_the_patterns_are_kept() -> None:
    """None of them holds a function that was made within another one."""
    modules = pkgutil.walk_packages(patterns.__path__, f"{patterns.__name__}.")
    held = [v for m in modules for v in vars(importlib.import_module(m.name)).values() if isinstance(v, Pattern)]
    assert {p.name for p in held} >= {"elementwise", "pairwise", "search", "segmentwise", "sitewise", "threadwise"}
    assert [p for p in held if kept_programs._known(p) is None] == []  # pyright: ignore[reportPrivateUsage]


def test_plans_that_do_not_fit_are_refused_each_time(built: list[str]) -> None:
    kernel = reference()
    built.clear()
    wrong = Plan(prefetch="async").filled(NEUTRAL)
    for _ in range(2):
        with pytest.raises(lw.PlanError):
            kept_programs.built(kernel, wrong, "cuda")
    assert len(built) == 2


def test_a_cache_that_cannot_be_used_stops_nothing(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = reference()
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(own_cache / "file"))
    monkeypatch.setattr(cache, "_SAID", set[str]())
    (own_cache / "file").write_text("no folder")
    with pytest.warns(UserWarning, match="cannot be written"):
        assert kept_programs.built(kernel, NARROW, "cpu").program == build_program(kernel, NARROW, "cpu")
