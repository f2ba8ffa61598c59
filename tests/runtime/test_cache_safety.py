"""The cache of compiled kernels is checked, repaired and never trusted: damage, planted files, strangers,
full disks.
"""

from __future__ import annotations

import errno
import gc
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.runtime import cache, compiling
from lanewise.runtime.cache import CacheWarning, cache_directory, folder_problem, read_entry, write_entry
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.runtime.written.kernel import TextKernel

TEXT = """def twice_kernel(x, begin, end):
    for i in range(begin, end):
        x[i] = x[i] * 2
"""
CUDA = 'extern "C" __global__ void twice_kernel(float *x) { x[threadIdx.x] *= 2; }\n'
POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are those of POSIX")


class Planted:
    """A pickle that makes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_SAID", set[str]())
    return tmp_path / "cache"


def compiled() -> int:
    """Run the kernel as a process would that starts now; how often it was compiled for that."""
    gc.collect()  # nobody holds the kernel of the time before
    before, x = compiling.count(), np.arange(5.0)
    kernel = TextKernel(TEXT, "twice")
    kernel(x, 1, 4)
    assert x.tolist() == [0, 2, 4, 6, 4]
    return compiling.count() - before


def cubin() -> int:
    before = compiling.count()
    assert compile_cubin(CUDA, "twice", "sm_90").code.startswith(b"\x7fELF")
    return compiling.count() - before


def entry() -> Path:
    (path,) = (p for p in cache_directory().rglob("*") if p.is_file())
    return path


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "cut short": lambda content: content[: len(content) // 2],
    "cut in its first line": lambda content: content[:5],
    "without its code": lambda content: content[:49],
    "random": lambda content: np.random.default_rng(1).bytes(1000),
    "zeros": lambda content: bytes(len(content)),
    "flipped": flipped,
    "appended": lambda content: content + b"\nimport os; os.abort()\n",
}


@pytest.mark.parametrize("make", [compiled, cubin], ids=["cpu", "cuda"])
def test_damaged_entries_are_made_again(make: Callable[[], int]) -> None:
    assert (make(), make()) == (1, 0)
    good = entry().read_bytes()
    for name, damage in DAMAGES.items():
        entry().write_bytes(damage(good))
        assert make() == 1, name
        assert len(entry().read_bytes()) >= 0.9 * len(good)
        assert make() == 0, name


def test_an_entry_of_another_name_is_not_believed() -> None:
    write_entry("cpu/a", b"content")
    (cache_directory() / "cpu" / "a").rename(cache_directory() / "cpu" / "b")
    assert read_entry("cpu/b") is None
    assert not (cache_directory() / "cpu" / "b").exists()


def test_the_text_is_executed_and_no_file(own_cache: Path) -> None:
    """Nothing in the cache is Python text, and what is put beside the entries is never looked at."""
    assert compiled() == 1
    assert not list(own_cache.rglob("*.py"))
    folder = entry().parent
    for name in ("twice.py", "__init__.py", "sitecustomize.py"):
        (folder / name).write_text("raise SystemExit('executed')")
    assert compiled() == 0


def test_a_planted_pickle_is_not_read(tmp_path: Path) -> None:
    assert compiled() == 1
    content, mark = pickle.dumps(Planted(tmp_path / "mark")), tmp_path / "mark"
    pickle.loads(content)
    assert mark.exists()  # it would work
    mark.unlink()
    for planted in (content, entry().read_bytes()[:49] + content, cache._MAGIC + bytes(32) + content):
        entry().write_bytes(planted)
        assert compiled() == 1
        assert not mark.exists()


def test_whole_entries_that_llvm_cannot_use_are_made_again() -> None:
    assert compiled() == 1
    name = f"cpu/{entry().name}"
    for content in (pickle.dumps(None), pickle.dumps((1,) * 9), b"no pickle", b""):
        write_entry(name, content)
        assert compiled() == 1
        assert compiled() == 0


@POSIX
def test_folders_and_files_are_the_users_alone(own_cache: Path) -> None:
    mask = os.umask(0)
    try:
        assert compiled() == 1
    finally:
        os.umask(mask)
    folders = [own_cache, *(p for p in own_cache.rglob("*") if p.is_dir())]
    assert {p.stat().st_mode & 0o777 for p in folders} == {0o700}
    assert entry().stat().st_mode & 0o777 == 0o600


@pytest.mark.grid(every=40)
@POSIX
@pytest.mark.parametrize("mode", [0o770, 0o702], ids=["the group", "everybody"])
@pytest.mark.parametrize("which", ["root", "version", "cpu"])
def test_a_folder_that_others_may_write_is_not_used(own_cache: Path, which: str, mode: int) -> None:
    """What a planted entry with a right checksum could do there: nothing. It is said once."""
    assert compiled() == 1
    folder = {"root": own_cache, "version": cache_directory(), "cpu": cache_directory() / "cpu"}[which]
    mark = own_cache.parent / "mark"
    write_entry(f"cpu/{entry().name}", pickle.dumps(Planted(mark)))
    folder.chmod(mode)
    with pytest.warns(CacheWarning) as said:
        assert (compiled(), compiled()) == (1, 1)
    assert not mark.exists()
    assert [str(w.message) for w in said] == [
        f"the cache of compiled kernels {own_cache} is not used: {folder} may be written by other users (chmod go-w keeps them out); "
        "every process compiles its kernels anew; LANEWISE_CACHE_DIR names another folder"
    ]


@POSIX
def test_a_file_that_others_may_write_is_not_read() -> None:
    assert compiled() == 1
    entry().chmod(0o666)
    assert compiled() == 1
    assert entry().stat().st_mode & 0o777 == 0o600


@POSIX
def test_a_link_is_not_followed(tmp_path: Path) -> None:
    assert compiled() == 1
    path = entry()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert compiled() == 1
    assert not path.is_symlink()


@POSIX
def test_strangers_are_refused(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user sees it: what belongs to root is believed, what belongs to somebody else is not."""
    assert compiled() == 1
    owner = own_cache.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 12345)
    if owner == 0:
        assert folder_problem(own_cache, own_cache) is None
        monkeypatch.setattr(Path, "stat", _owned_by(777, Path.stat))
    with pytest.warns(CacheWarning, match="belongs to the user with the number"):
        assert compiled() == 1


def _owned_by(user: int, real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    def stat(path: Path, **options: Any) -> os.stat_result:
        found = list(real(path, **options))
        return os.stat_result([*found[:4], user, *found[5:]])

    return stat


def test_a_cache_in_a_folder_for_everybody_is_fine_when_it_is_ones_own(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert (compiled(), compiled()) == (1, 0)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_cache_that_cannot_be_written_stops_nothing(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(CacheWarning) as said:
        assert (compiled(), compiled(), cubin()) == (1, 1, 1)
    assert [str(w.message) for w in said] == [
        f"the cache of compiled kernels {own_cache} cannot be written: {os.strerror(number)}; every process compiles its kernels anew; "
        "LANEWISE_CACHE_DIR names another folder"
    ]
    assert not [p for p in own_cache.rglob("*") if p.is_file()]  # no half-written file either


def test_a_cache_where_there_is_a_file_stops_nothing(own_cache: Path) -> None:
    own_cache.write_text("a file")
    with pytest.warns(CacheWarning, match="cannot be written: "):
        assert compiled() == 1


def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANEWISE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert str(os.getuid() if hasattr(os, "getuid") else "") in cache.cache_root().name


def test_good_entries_are_used_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (compiled(), compiled()) == (1, 0)


PROCESS = """
import numpy as np
from lanewise.runtime import compiling
from lanewise.runtime.written.kernel import TextKernel
x = np.arange(5.0)
TextKernel({text!r}, "twice")(x, 1, 4)
print(x.tolist(), compiling.count())
"""


def test_another_process_finds_the_entry_and_survives_a_damaged_one() -> None:
    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROCESS.format(text=TEXT)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert compiled() == 1
    assert run() == "[0.0, 2.0, 4.0, 6.0, 4.0] 0\n"
    entry().write_bytes(b"")
    assert run() == "[0.0, 2.0, 4.0, 6.0, 4.0] 1\n"
