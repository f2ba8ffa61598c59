"""The store: what is written is read, and nothing in a file can stop a call or make it use a plan of something else."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lanewise.launch.tuned_plans import Entry, Key, StoreWarning, read_entry, size_class, store_enabled, write_entry
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import ArgumentError

KEY = Key(
    kernel="gravity", function="f00d", layouts="target: SoA, source: SoA", identical=True, device="NVIDIA H200", arch="sm_90",
    driver="580.159.04", compiler="NVRTC 13.0", threads=0, version="0.1.0", targets=14, sources=14, wanted="parts=1",
)  # fmt: skip
BEST = Plan(targets=8, block=32, reciprocity="scratch", fma=True).filled(NEUTRAL)
ENTRY = Entry(BEST, 1e-4, NEUTRAL, 1.5e-4, {"about": {"kernel": "gravity"}, "trials": []})


def written() -> Path:
    path = write_entry(KEY, ENTRY)
    assert path is not None
    return path


def test_an_entry_is_read_as_it_was_written(own_store: Path) -> None:
    path = written()
    assert read_entry(KEY) == ENTRY
    assert path.parent == own_store
    assert [p.name for p in own_store.iterdir()] == [KEY.file_name]
    assert path.name.startswith("gravity-")
    assert json.loads(path.read_text())["plan"] == {"targets": 8, "block": 32, "reciprocity": "scratch", "fma": True}


def test_the_last_writer_wins() -> None:
    written()
    other = dataclasses.replace(ENTRY, plan=NEUTRAL, seconds=9e-5)
    write_entry(KEY, other)
    assert read_entry(KEY) == other


def test_what_is_not_there_is_not_found(own_store: Path) -> None:
    assert read_entry(KEY) is None
    assert not own_store.exists()


CHANGES: dict[str, Any] = {
    "kernel": "potential", "function": "beef", "layouts": "target: AoS, source: AoS", "identical": False,
    "device": "NVIDIA B200", "arch": "sm_100", "driver": "590.1", "compiler": "NVRTC 13.1", "threads": 2, "version": "0.2.0",
    "targets": 15, "sources": 13, "wanted": "", "search": "all within a radius",
}  # fmt: skip


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Key)])
def test_an_entry_of_anything_else_is_not_used(name: str) -> None:
    other = dataclasses.replace(KEY, **{name: CHANGES[name]})
    written()
    assert other.file_name != KEY.file_name
    assert read_entry(other) is None


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Key)])
def test_a_file_of_another_key_under_this_name_is_set_aside(name: str, own_store: Path) -> None:
    path = written()
    data = json.loads(path.read_text())
    data["key"][name] = CHANGES[name]
    path.write_text(json.dumps(data))
    difference = f"{name} is {CHANGES[name]!r}, wanted {getattr(KEY, name)!r}"
    with pytest.warns(StoreWarning) as caught:
        assert read_entry(KEY) is None
    assert str(caught[0].message) == (
        f"{path} is set aside: it belongs to something else: {difference}; "
        f"it is now {path.stem}.damaged, and the default plan is used"
    )
    assert [p.suffix for p in own_store.iterdir()] == [".damaged"]


def _changed(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    def apply(content: bytes) -> bytes:
        data = json.loads(content)
        change(data)
        return json.dumps(data).encode()

    return apply


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda c: b"", "it is no JSON"),
    "cut off": (lambda c: c[: len(c) // 2], "it is no JSON"),
    "not text": (lambda c: b"\xff\xfe\x00", "it is no text"),
    "deep": (lambda c: b"[" * 100_000, "it is no JSON"),
    "a list": (lambda c: b"[1, 2]", "it is no entry of format 1"),
    "another program's": (lambda c: b'{"name": "x", "version": 3}', "it is no entry of format 1"),
    "another format": (_changed(lambda d: d.update(format=2)), "it is no entry of format 1"),
    "no plan": (_changed(lambda d: d.pop("plan")), "'plan' is missing"),
    "unknown field": (_changed(lambda d: d["plan"].update(warp=3)), "a plan has no field 'warp'"),
    "wrong type": (_changed(lambda d: d["plan"].update(targets="8")), "the field 'targets' of a plan is '8'"),
    "no time": (_changed(lambda d: d.update(seconds=None)), "it does not hold what an entry holds: "),
    "a plan that is none": (_changed(lambda d: d.update(plan=[])), "it does not hold what an entry holds: "),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_is_set_aside_and_the_next_tuning_takes_its_place(how: str) -> None:
    damage, reason = DAMAGE[how]
    path = written()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(StoreWarning) as caught:
        assert read_entry(KEY) is None
    assert f"{path} is set aside: {reason}" in str(caught[0].message)
    assert str(caught[0].message).endswith(f"it is now {path.stem}.damaged, and the default plan is used")
    assert not path.exists()
    assert path.with_suffix(".damaged").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_entry(KEY) is None  # silent from now on
    written()
    assert read_entry(KEY) == ENTRY


def test_a_store_that_cannot_be_written_is_a_warning(own_store: Path) -> None:
    own_store.write_text("a file where the folder should be")
    with pytest.warns(StoreWarning, match="cannot be written: .*; the tuned plan lasts as long as this process"):
        assert write_entry(KEY, ENTRY) is None
    with pytest.warns(StoreWarning, match="cannot be read: .*; the default plan is used"):
        assert read_entry(KEY) is None


def test_a_file_that_cannot_be_renamed_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    path = written()
    path.write_text("damaged")

    def refuse(*names: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(StoreWarning, match="set aside: it is no JSON; it cannot be renamed: Permission denied"):
        assert read_entry(KEY) is None


WRITER = """
import sys
from pathlib import Path
from lanewise.launch import tuned_plans as store
from tests.tuning.test_store import ENTRY, KEY
store.store_directory = lambda: Path(sys.argv[1])
import dataclasses
for number in range(200):
    store.write_entry(KEY, dataclasses.replace(ENTRY, log={"padding": "x" * 50_000, "writer": sys.argv[2]}))
    entry = store.read_entry(KEY)
    assert entry is not None and len(entry.log["padding"]) == 50_000
"""


def test_writers_and_readers_at_the_same_time_see_whole_entries(own_store: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, str(own_store), str(number)],
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        for number in range(3)
    ]  # fmt: skip
    errors = [writer.communicate(timeout=120)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], errors
    assert [p.name for p in own_store.iterdir()] == [KEY.file_name]


def test_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_enabled()
    monkeypatch.setenv("LANEWISE_TUNED", "off")
    assert not store_enabled()
    monkeypatch.setenv("LANEWISE_TUNED", "no")
    with pytest.raises(ArgumentError, match=r"^LANEWISE_TUNED='no': wanted on or off$"):
        store_enabled()


def test_size_classes_are_the_nearest_powers_of_two() -> None:
    assert [size_class(n) for n in (1, 2, 3, 1024, 11_585, 11_586, 16_384, 23_170, 23_171)] == [
        0,
        1,
        2,
        10,
        13,
        14,
        14,
        14,
        15,
    ]


def test_the_store_lies_beside_the_caches_of_versions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    root = Path(__file__).parents[2]
    code = "from lanewise.launch.tuned_plans import store_directory; print(store_directory())"
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    shown = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert Path(shown.stdout.strip()) == tmp_path / "tuned"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are those of POSIX")
def test_an_entry_that_others_may_have_written_is_not_read(own_store: Path) -> None:
    path = written()
    assert own_store.stat().st_mode & 0o777 == 0o700
    assert read_entry(KEY) is not None
    for place, named in ((path, "it"), (own_store, str(own_store))):
        mode = place.stat().st_mode & 0o777
        place.chmod(0o777)
        with pytest.warns(StoreWarning) as said:
            assert read_entry(KEY) is None
        assert str(said[0].message) == (
            f"{path} is not read: {named} may be written by other users (chmod go-w keeps them out); the default plan is used"
        )
        place.chmod(mode)
    assert read_entry(KEY) is not None
