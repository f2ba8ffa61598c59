"""Recordings are read as they were written, rebuilt where a run was killed, and refused where they are damaged."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from lanewise.cli.view import _say_damage
from lanewise.live.feed import Feed
from lanewise.live.frame import decode
from lanewise.live.recording import ABOUT, INDEX, Recorder, read_recording
from lanewise.live.replay import RecordedFeed
from lanewise.live.server import Server, Serving
from lanewise.support.errors import InputError
from tests.live.talk import talking
from tests.live.test_server import Counting

pytest.importorskip("websockets")


def recorded(path: Path, looks: int = 6) -> list[tuple[bytes, ...]]:
    scene, frames = Counting(), list[tuple[bytes, ...]]()
    recorder = Recorder(path, scene.about)
    feed = Feed(scene, record=recorder.add)
    for _ in range(looks):
        scene.step += 1
        feed.make()
        frames.append(feed.history[-1].frames)
    recorder.close()
    return frames


def test_recordings_come_back(tmp_path: Path) -> None:
    frames = recorded(path := tmp_path / "run.lwv")
    found = read_recording(path)
    assert found.whole
    assert found.about == Counting().about
    assert [found.frames(n).frames for n in range(len(found.looks))] == frames
    assert found.frames(2).step == 3
    assert path.read_bytes()[:8] == b"LWVR" + struct.pack("<I", 1)


def test_a_recording_rests_at_its_end(tmp_path: Path) -> None:
    """And says so: what is pressed then begins it anew."""
    recorded(path := tmp_path / "run.lwv", looks=3)
    replay = RecordedFeed(read_recording(path), rate=1000)
    replay.watch(1)
    replay.play(iter([False] * 2 + [True]).__next__)
    assert (replay.paused, replay.state["step"]) == (True, 3)
    replay.go()
    assert (replay.paused, replay.state["step"]) == (False, 1)


def test_what_a_killed_run_left_is_read_to_its_last_whole_look(tmp_path: Path) -> None:
    frames = recorded(path := tmp_path / "run.lwv")
    data = path.read_bytes()
    index = data.rindex(struct.pack("<I", INDEX) + struct.pack("<I", 0))
    for cut in (index, index + 5, index - 1, index - 1000, index - 2500):
        (tmp_path / "cut.lwv").write_bytes(data[:cut])
        found = read_recording(tmp_path / "cut.lwv")
        assert not found.whole
        whole = [found.frames(n).frames for n in range(len(found.looks))]
        assert len(whole) >= 3
        for mine, theirs in zip(whole, frames, strict=False):
            assert mine == theirs[: len(mine)]


def damage(path: Path, places: dict[int, bytes]) -> None:
    data = bytearray(path.read_bytes())
    for at, bytes_ in places.items():
        data[at : at + len(bytes_)] = bytes_
    path.write_bytes(data)


@pytest.mark.parametrize("field", [0, 4, 8], ids=["kind", "sequence", "size"])
@pytest.mark.parametrize("value", [0, 2, 7, 0xFFFFFFF0])
def test_behind_a_frame_that_is_damaged_all_is_read(tmp_path: Path, field: int, value: int) -> None:
    """Whatever its head says that it is, how long, and of which moment."""
    frames = recorded(path := tmp_path / "run.lwv")
    at = read_recording(path).looks[2][1][0]
    damage(path, {at + field: struct.pack("<I", value)})
    found = read_recording(path)
    read = {}
    for number, (sequence, _) in enumerate(found.looks):
        try:
            read[sequence] = found.frames(number).frames
        except InputError:
            continue
    said = list(found.damaged())
    same = [k + 1 for k, f in enumerate(frames) if read.get(k + 1) == f]
    assert set(same) >= {1, 2, 4, 5, 6} - ({value} if field == 4 else set())
    assert said == ([] if 3 in same else [f"{path}: damaged at byte {at:,}: its checksum does not hold"])
    assert [s for s, _ in found.looks] == sorted(s for s, _ in found.looks)


def test_damaged_frames_are_counted_and_said_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(path := tmp_path / "run.lwv", looks=30)
    looks = read_recording(path).looks
    places = [looks[n][1][0] for n in (3, 4, 9, 10, 17, 20, 25)]
    damage(path, {at + 200: b"spoilt" for at in places})
    _say_damage(read_recording(path))
    *each, all_of_them = capsys.readouterr().out.splitlines()
    assert each == [f"note: {path}: damaged at byte {at:,}: its checksum does not hold" for at in places[:5]]
    assert all_of_them == "note: 7 of 30 moments are damaged, and left out"


def test_every_changed_byte_of_a_frame_is_found(tmp_path: Path) -> None:
    recorded(path := tmp_path / "run.lwv", looks=1)
    data = bytearray(path.read_bytes())
    frame = read_recording(path).looks[0][1][0]
    for at in range(frame + 12, frame + 16 + 880, 37):
        changed = bytearray(data)
        changed[at] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(InputError, match=rf"run\.lwv: damaged at byte {frame:,}: its checksum does not hold"):
            read_recording(path).frames(0)


@pytest.mark.parametrize(
    "data",
    [b"", b"LWVR", b"PNG" * 20, b"LWVR" + struct.pack("<I", 9) + bytes(40), b"LWVR" + struct.pack("<I", 1) + bytes(40)],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    (path := tmp_path / "run.lwv").write_bytes(data)
    with pytest.raises(InputError, match=r"run\.lwv: (no recording|a recording of version 9|damaged)"):
        read_recording(path)


@pytest.mark.parametrize("about", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b"[" * 200_000], ids=len)
def test_whatever_a_file_says_of_itself_is_read_or_refused(tmp_path: Path, about: bytes) -> None:
    """Its checksum may hold all the same."""
    recorded(path := tmp_path / "run.lwv", looks=1)
    frame = path.read_bytes()[read_recording(path).looks[0][1][0] :]
    head = struct.pack("<3I", ABOUT, 0, len(about))
    crc = struct.pack("<I", zlib.crc32(about, zlib.crc32(head)))
    path.write_bytes(b"LWVR" + struct.pack("<I", 1) + head + crc + about + frame)
    with pytest.raises(InputError, match=r"run\.lwv: damaged: what it shows is no JSON object"):
        read_recording(path)


def test_a_recording_replaces_nothing_unasked(tmp_path: Path) -> None:
    (path := tmp_path / "run.lwv").write_text("mine")
    with pytest.raises(InputError, match="exists already; give --overwrite"):
        Recorder(path, {})
    assert path.read_text() == "mine"


@pytest.mark.parametrize("old", [None, b"", b"mine" * 100])
def test_a_recording_without_frames_is_none(tmp_path: Path, old: bytes | None) -> None:
    """What it would have replaced stays until there is one."""
    path = tmp_path / "run.lwv"
    if old is not None:
        path.write_bytes(old)
    Recorder(path, {}, overwrite=old is not None).close()
    assert (path.read_bytes() if path.exists() else None) == old
    recorder = Recorder(path, Counting().about, overwrite=old is not None)
    feed = Feed(Counting(), record=recorder.add)
    feed.make()
    feed.make()
    recorder.close()
    assert len(read_recording(path).looks) == 2
    assert read_recording(path).whole


def test_recordings_play_pause_and_go_back(tmp_path: Path) -> None:
    import threading

    frames = recorded(path := tmp_path / "run.lwv", looks=40)
    replay = RecordedFeed(read_recording(path), rate=200)
    server = Server(replay, Serving(port=0))
    server.start()
    over = threading.Event()
    thread = threading.Thread(target=replay.play, args=(over.is_set,))
    thread.start()
    with talking(server) as talk:
        steps = [talk.frame()[0].step for _ in range(5)]
        assert steps == sorted(steps)
        talk.say("pause")
        talk.say("seek", frame=2)
        while True:
            header, body = talk.frame()
            if header.sequence == 2:
                break
        assert bytes(body) == bytes(decode(frames[1][0])[1])
        assert np.frombuffer(body, np.uint16)[0] == 2
        assert header.flags & 2
    over.set()
    thread.join(10)
    server.stop()
