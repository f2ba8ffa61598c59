"""The disk cache: whole files or none, safe when processes race, and no entry used for anything but what made it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lanewise.runtime import cpu, llvm
from lanewise.runtime.cache import cache_directory, cache_size, content_key, sources_key, write_entry
from lanewise.runtime.cpu import load_kernel
from lanewise.runtime.nvrtc import Switches, compile_cubin
from lanewise.runtime.written.kernel import llvm_text
from lanewise.runtime.written.kinds import kind_of

KERNEL = 'extern "C" __global__ void twice_kernel(float *x) { x[threadIdx.x] *= 2; }\n'

RACER = """
import numpy as np
import lanewise as lw
from lanewise.runtime.nvrtc import compile_cubin
from tests.runtime.racing_kernel import Point, attraction

points = Point.array(position=np.arange(12.0).reshape(4, 3), weight=1.0)
print(attraction(points, points, softening2=0.5).tolist())
cubin = compile_cubin({kernel!r}, "twice", "sm_90")
print(len(cubin.code), cubin.resources.registers)
"""


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_processes_that_start_together_share_an_empty_cache(own_cache: Path) -> None:
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, str(Path(root) / "src")])}
    command = [sys.executable, "-c", RACER.format(kernel=KERNEL)]
    racers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [racer.communicate(timeout=300) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 3, outputs
    assert len({out for out, _ in outputs}) == 1
    assert not list(own_cache.rglob(".writing-*"))  # nobody left a half-written file


def test_content_key_tells_texts_apart_however_they_are_cut() -> None:
    assert content_key("ab", "c") != content_key("a", "bc")
    assert content_key("a") == content_key("a")


def test_texts_that_differ_in_their_heads_alone_are_one_kernel() -> None:
    one, other, different = (
        load_kernel(text, "twice") for text in (f"; one\n\n{TWICE}", f"; other\n\n{TWICE}", f"{TWICE};")
    )
    assert one is other
    assert one is not different


def test_architectures_and_options_have_entries_of_their_own(own_cache: Path) -> None:
    codes = {
        compile_cubin(KERNEL, "twice", "sm_90").code,
        compile_cubin(KERNEL, "twice", "sm_80").code,
    }
    compile_cubin(KERNEL, "twice", "sm_90", Switches(fast_math=True))
    compile_cubin(KERNEL, "twice", "sm_90", Switches(in_order=True))
    assert len(codes) == 2
    assert len(list(own_cache.rglob("*.cubin"))) == 4


def test_the_cache_has_one_folder_for_each_version(own_cache: Path) -> None:
    assert cache_directory().parent == own_cache
    assert cache_size() == (0, 0)
    write_entry("cpu/x", b"123")
    files, nbytes = cache_size()
    assert (files, nbytes > 3) == (1, True)


def test_what_another_process_removes_meanwhile_does_not_count(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entry("cpu/x", b"123")
    write_entry("cpu/y", b"1234")
    whole, walk = cache_size(), os.walk

    def slowly(folder: Path):
        for where, folders, names in walk(folder):
            if "y" in names:
                (Path(where) / "y").unlink()
            yield where, folders, [*names, "gone"]

    monkeypatch.setattr(os, "walk", slowly)
    files, nbytes = cache_size()
    assert files == whole[0] - 1
    assert 3 < nbytes < whole[1]


def test_sources_count_by_their_bytes(tmp_path: Path) -> None:
    for name in ("passes/a.py", "sims/b.py", "c.py", "passes/__pycache__/d.py", "passes/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    before, seen = sources_key(tmp_path, without=("sims",)), (tmp_path / "passes/a.py").stat()
    for unread in ("sims/b.py", "passes/__pycache__/d.py", "passes/notes.txt"):
        (tmp_path / unread).write_text("x = 2\n")
    assert sources_key(tmp_path, without=("sims",)) == before
    (tmp_path / "passes/a.py").write_text("x = 2\n")  # as long as before, and of the same time
    os.utime(tmp_path / "passes/a.py", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    changed = sources_key(tmp_path, without=("sims",))
    assert changed != before
    (tmp_path / "c.py").rename(tmp_path / "e.py")
    assert sources_key(tmp_path, without=("sims",)) not in (before, changed)
    assert sources_key(tmp_path / "nothing") is None


def written(text: str) -> str:
    """A kernel of an array of float64 in LLVM's language, without its head."""
    return cpu.code_of(llvm_text(text, "twice", tuple(map(kind_of, (np.ones(1), 0, 0)))))


TWICE = written("""def twice_kernel(x, begin, end):
    for i in range(begin, end):
        x[i] = 2 * x[i]
""")


def test_machine_code_is_of_the_runtime_that_made_it(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of a text may change while the text stays the same."""

    def entries() -> int:
        cpu._LOADED.clear()  # as a process that begins
        kernel, x = load_kernel(TWICE, "twice"), np.ones(3)
        kernel(x, 0, 3)
        np.testing.assert_array_equal(x, 2)
        return len(list((cache_directory() / "cpu").glob("twice-*")))

    assert entries() == entries() == 1
    monkeypatch.setattr(llvm, "_made_by", lambda: ("another one",))
    assert entries() == 2


REDEFINED = '''
import linecache, sys
import numpy as np
import lanewise as lw


class Point(lw.Record):
    x: lw.f32


def defined(factor):
    """A function that is too long to be written into the loop that calls it."""
    lines = ["@lw.pairwise", "def pull(target: Point, source: Point) -> lw.f32:", "    d = source.x - target.x", "    s = d"]
    lines += [f"    s = s * d + {k}.5 / (1.0 + s * s) + lw.exp(-s * s) * {k}.25" for k in range(24)]
    text = "\\n".join([*lines, f"    return {factor} * s", ""])
    name, namespace = f"<cell {factor}>", {"lw": lw, "Point": Point}
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), namespace)
    return namespace["pull"]


points = Point.array(x=np.array([0.0, 0.5, 0.75]))
print([defined(float(factor))(points, points).tolist() for factor in sys.argv[1:]])
'''


def test_a_function_that_was_defined_anew_is_not_that_of_an_earlier_process(own_cache: Path) -> None:
    """Both kernels of the second process call code of one name, and the first one comes from the cache."""

    def run(*factors: str) -> list[list[float]]:
        command = [sys.executable, "-c", REDEFINED, *factors]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)

    (once,) = run("2.0")
    again, twice = run("2.0", "4.0")
    assert again == once
    assert twice == [2 * x for x in once]
