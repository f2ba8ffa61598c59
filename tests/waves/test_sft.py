"""SFT files: read, written, and everything that may be wrong with them."""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanewise.sims.waves.sft import (
    DetectorSfts,
    SftName,
    SftSet,
    Window,
    load_sfts,
    padded_comment,
    parse_name,
    window_of,
    write_file,
    write_sfts,
)
from lanewise.sims.waves.sft.crc import START, crc64
from lanewise.support.errors import InputError
from tests.waves.truth import DATA, TRUTH, needs_truth

H1 = DATA / "H-2_H1_1800SFT_signal-1238166018-3600.sft"
L1 = DATA / "L-2_L1_1800SFT_signal-1238166018-3600.sft"
BLOCK = 48 + 56 + 8 * 720


def bitwise(data: bytes) -> int:
    state = START
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0xD800000000000000 if state & 1 else 0)
    return state


@settings(deadline=None, max_examples=60)
@given(st.binary(min_size=0, max_size=900), st.integers(0, 112))
def test_the_checksum_is_that_of_one_bit_after_another(data, cut):
    words = np.frombuffer(data[: len(data) // 8 * 8], "<u8").astype(np.uint64)
    assert crc64(words) == bitwise(words.astype("<u8").tobytes())
    assert crc64(words[cut:], crc64(words[:cut])) == crc64(words)


def sfts(detector="H1", starts=(1_000_000_000, 1_000_001_800), first=100, bins=16, version=3, duration=1800.0, seed=1):
    rng = np.random.default_rng(seed)
    n = len(starts)
    data = (rng.normal(size=(n, bins)) + 1j * rng.normal(size=(n, bins))).astype(np.complex64)
    return DetectorSfts(
        detector, np.array(starts, np.int64) * 10**9, duration, first, data, np.full(n, version, np.uint8),
        np.full(n, 1 if version == 3 else 0, np.uint16), (padded_comment("made by a test"),) * n,
    )  # fmt: skip


@pytest.mark.parametrize("path", [H1, L1])
def test_files_of_lalpulsar_are_written_as_they_were(path, tmp_path):
    found = load_sfts(path)
    (d,) = found
    assert (len(d), d.bins, d.first_bin, d.duration) == (2, 720, 179640, 1800.0)
    assert d.windows == (Window("rectangular"),) * 2
    assert d.comments[0].startswith(b"made by lalpulsar_Makefakedata_v5")
    assert write_file(tmp_path / "again.sft", d).read_bytes() == path.read_bytes()


@needs_truth
def test_every_file_of_the_truth_is_written_as_it_was(tmp_path):
    paths = sorted(TRUTH.glob("**/*.sft"))
    assert len(paths) == 8
    for path in paths:
        (d,) = load_sfts(path)
        assert write_file(tmp_path / "again.sft", d, overwrite=True).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("version", [2, 3])
def test_written_and_read_again(version, tmp_path):
    both = SftSet((sfts(version=version), sfts("L1", (1_000_000_900, 1_000_009_000), version=version)))
    paths = write_sfts(tmp_path, both, "test")
    assert [p.name for p in paths] == [
        "H-2_H1_1800SFT_test-1000000000-3600.sft",
        "L-2_L1_1800SFT_test-1000000900-9900.sft",
    ]
    again = load_sfts(tmp_path / "*.sft")
    assert again.names == ("H1", "L1")
    for a, b in zip(again, both, strict=True):
        assert a.data.tobytes() == b.data.tobytes()
        assert a.start.tolist() == b.start.tolist()
        assert a.comments == b.comments
        assert set(a.version) == {version}


def test_a_file_of_the_other_byte_order(tmp_path):
    """Every number of header and bins is turned round; the checksum is of the bytes as they stand."""
    raw = H1.read_bytes()[:BLOCK]
    header = list(struct.unpack("<diidiiQ2sHi", raw[:48]))
    body = raw[48:104] + np.frombuffer(raw[104:], "<f4").astype(">f4").tobytes()
    header[6] = 0
    zero = struct.pack(">diidiiQ2sHi", *header)
    header[6] = crc64(np.frombuffer(zero + body, "<u8").astype(np.uint64))
    (tmp_path / "big.sft").write_bytes(struct.pack(">diidiiQ2sHi", *header) + body)
    (big,), (little,) = load_sfts(tmp_path / "big.sft"), load_sfts(H1)
    assert big.data.tobytes() == little.data[:1].tobytes()
    assert write_file(tmp_path / "little.sft", big).read_bytes() == raw


def test_only_the_band_is_loaded():
    part = load_sfts([H1, L1], (99.9, 100.1))
    whole = load_sfts([H1, L1])
    assert [(d.first_bin, d.bins) for d in part] == [(179820, 360)] * 2
    for a, b in zip(part, whole, strict=True):
        assert a.data.tobytes() == b.band(179820, 360).data.tobytes()
        assert a.data.flags.c_contiguous


def test_a_band_is_never_read_beyond_itself(monkeypatch):
    """Without checksums, headers, comments and the bins of the band are all that is read."""
    import lanewise.sims.waves.sft.reading as reading

    read = []
    original = reading.read_bins
    monkeypatch.setattr(reading, "read_bins", lambda s, b, f, out: (read.append(out.size), original(s, b, f, out)))
    monkeypatch.setattr(reading, "checksum", lambda *_: pytest.fail("a checksum was requested"))
    load_sfts(H1, (99.9, 99.91), verify=False)
    assert read == [18, 18]


def test_narrow_bands_are_joined(tmp_path):
    whole = sfts(bins=32)
    write_file(tmp_path / "low.sft", whole.band(100, 20))
    write_file(tmp_path / "high.sft", whole.band(120, 12))
    (joined,) = load_sfts(tmp_path / "*.sft")
    assert joined.data.tobytes() == whole.data.tobytes()
    (part,) = load_sfts(tmp_path / "*.sft", (115 / 1800, 125 / 1800))
    assert part.data.tobytes() == whole.band(115, 10).data.tobytes()
    write_file(tmp_path / "high.sft", whole.band(122, 10), overwrite=True)
    with pytest.raises(InputError, match=r"low.sft, SFT 0: the band is not covered: the bins 120 to 121 are missing"):
        load_sfts(tmp_path / "*.sft", (115 / 1800, 125 / 1800))


def damaged(tmp_path, change) -> Path:
    raw = bytearray(H1.read_bytes())
    path = tmp_path / "bad.sft"
    path.write_bytes(bytes(change(raw)))
    return path


def poke(at, value):
    def change(raw):
        raw[at : at + len(value)] = value
        return raw

    return change


BAD = {
    "truncated bins": (lambda raw: raw[:-8], 1, "truncated: the file has 11720 bytes, and this SFT ends after 11728"),
    "truncated header": (lambda raw: raw[: BLOCK + 40], 1, "truncated: its header has 40 bytes; wanted 48"),
    "checksum": (poke(BLOCK + 200, b"\xff\x7f"), 1, "damaged: its checksum (CRC-64) is"),
    "version 1": (
        poke(BLOCK, struct.pack("<d", 1.0)),
        1,
        "SFT version 1 is not supported; wanted 2 or 3",
    ),
    "text": (lambda raw: raw[:BLOCK] + b"these are no waves at all, but a text" * 3, 1, "not an SFT: it starts with 74 68 65 73"),
    "window": (poke(BLOCK + 42, struct.pack("<H", 4711)), 1, "the window has the number 4711, which stands for none"),
    "detector": (poke(BLOCK + 40, b"L1"), 1, "of the detector L1, in a file of H1; wanted one detector in a file"),
    "order": (
        poke(BLOCK + 8, struct.pack("<i", 1238160000)),
        1,
        "out of order: it starts at GPS 1238160000, before SFT 0 at 1238166018",
    ),
    "bins": (poke(BLOCK + 28, struct.pack("<i", -3)), 1, "not the header of an SFT, or damaged: it has -3 bins"),
    "comment": (poke(BLOCK + 44, struct.pack("<i", 13)), 1, "not the header of an SFT, or damaged: its comment has 13 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_files_are_named(what, tmp_path):
    change, number, text = BAD[what]
    path = damaged(tmp_path, change)
    with pytest.raises(InputError) as error:
        load_sfts(path)
    assert str(error.value).startswith(f"{path}, SFT {number}: {text}")
    rest = load_sfts([path, L1], skip_bad=True)
    assert [len(d) for d in rest] == [1, 2]
    assert [str(x) for x in rest.left_out] == [str(error.value)]


@settings(
    deadline=None,
    max_examples=10 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.integers(0, 2 * BLOCK - 1), st.integers(1, 255), st.booleans())
def test_no_damage_goes_unnoticed(tmp_path, at, change, truncated):
    """Whatever byte is changed, or wherever the file ends: an error in words, and with skip_bad what is left is as it was."""
    raw = bytearray(H1.read_bytes())
    if truncated:
        if at in (0, BLOCK):
            return  # empty, or one SFT
        raw = raw[:at]
    else:
        raw[at] ^= change
    path = tmp_path / "bad.sft"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"bad\.sft"):
        load_sfts(path)
    rest = load_sfts([path, L1], skip_bad=True)
    assert rest.left_out
    (whole,) = load_sfts(H1)
    if "H1" in rest.names:
        assert set(rest["H1"].start) <= set(whole.start)
        for start, row in zip(rest["H1"].start, rest["H1"].data, strict=True):
            assert row.tobytes() == whole.data[whole.start == start][0].tobytes()


def test_what_is_no_sft_file_at_all(tmp_path):
    path = tmp_path / "a.sft"
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"a.sft, SFT 0: not an SFT file: it is empty"):
        load_sfts(path)
    path.write_bytes(b"x" * 500)
    with pytest.raises(InputError, match=r"a.sft, SFT 0: not an SFT file: it starts with 78 78"):
        load_sfts(path)
    with pytest.raises(
        InputError, match=r"no SFT of .*a.sft can be used; wanted at least one\n  .*a.sft, SFT 0: not an"
    ):
        load_sfts(path, skip_bad=True)
    with pytest.raises(InputError, match=r"nothing\*.sft: there is no such file, and nothing that matches"):
        load_sfts(tmp_path / "nothing*.sft")
    with pytest.raises(InputError, match=r"not a file; wanted SFT files, for example .*\*\.sft"):
        load_sfts(tmp_path)


def test_sfts_that_overlap(tmp_path):
    a, b = tmp_path / "a.sft", tmp_path / "b.sft"
    write_file(a, sfts(starts=(1_000_000_000, 1_000_001_800)))
    write_file(b, sfts(starts=(1_000_003_000, 1_000_004_800)))
    text = f"{b}, SFT 0: overlaps {a}, SFT 1 (H1, GPS 1000001800): it starts at GPS 1000003000"
    with pytest.raises(InputError) as error:
        load_sfts([b, a])
    assert str(error.value) == text
    found = load_sfts([a, b], skip_bad=True)
    assert [str(x) for x in found.left_out] == [text]
    assert found["H1"].start.tolist() == [1_000_000_000 * 10**9, 1_000_001_800 * 10**9, 1_000_004_800 * 10**9]
    shutil.copy(a, tmp_path / "again.sft")
    with pytest.raises(InputError, match=r"again.sft, SFT 0: overlaps"):
        load_sfts([a, tmp_path / "again.sft"])


def test_bands_that_are_not_covered(tmp_path):
    with pytest.raises(InputError) as error:
        load_sfts(H1, (99.7, 99.9))
    assert str(error.value) == (
        f"{H1}, SFT 0: the band is not covered: it has 99.800000 to 100.199444 Hz (bins 179640 to 180359); "
        "wanted 99.7 to 99.9 Hz (bins 179460 to 179819)"
    )
    write_file(tmp_path / "a.sft", sfts())
    write_file(tmp_path / "b.sft", sfts(starts=(1_000_009_000,), bins=20))
    with pytest.raises(InputError, match=r"the first SFT has the bins 100 to 115; give a band that all have"):
        load_sfts(tmp_path / "*.sft")
    write_file(tmp_path / "b.sft", sfts("L1", bins=20), overwrite=True)
    with pytest.raises(
        InputError, match=r"the SFTs of H1 have the bins 100 to 115, those of L1 100 to 119; give a band"
    ):
        load_sfts(tmp_path / "*.sft")
    write_file(tmp_path / "b.sft", sfts("L1", duration=900.0), overwrite=True)
    with pytest.raises(InputError, match=r"lasts 900 s, and .* 1800 s; wanted SFTs of one duration"):
        load_sfts(tmp_path / "*.sft")


def test_choosing_and_writing(tmp_path):
    both = load_sfts([H1, L1], detectors=["L1"], span=(1238166019, 1238170000))
    assert both.names == ("L1",)
    assert both["L1"].start.tolist() == [1238167818 * 10**9]
    with pytest.raises(KeyError, match="there are no SFTs of V1; there are L1"):
        both["V1"]
    (path,) = write_sfts(tmp_path, both)
    with pytest.raises(InputError, match="the file exists already; give --overwrite to replace it"):
        write_sfts(tmp_path, both)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    with pytest.raises(InputError, match="there are no SFTs to write"):
        write_file(tmp_path / "x.sft", both["L1"].chosen(slice(0, 0)))
    with pytest.raises(InputError, match=r"H1: the bins 100 to 115 are loaded; wanted 90 to 99: load a wider band"):
        sfts().band(90, 10)


NAMES = {  # of LALPulsar's XLALBuildSFTFilenameFromSpec
    "H-21_H1_1800SFT_noise-1238166018-43200.sft": SftName("H1", 21, 1800, 1238166018, 43200, "noise"),
    "L-1_L1_1800SFT-1238166018-1800.sft": SftName("L1", 1, 1800, 1238166018, 1800),
    "L-1_L1_1800SFT_NBF0099Hz1440W0001Hz720-938166018-1800.sft": SftName(
        "L1", 1, 1800, 938166018, 1800, "", ((99, 1440), (1, 720))
    ),
    "H-1_H1_1800SFT_O3RUN+V1+CDCSCALIBSTRAINC01+WTKEY5-1238166018-1800.sft": SftName(
        "H1", 1, 1800, 1238166018, 1800, "O3RUN+V1+CDCSCALIBSTRAINC01+WTKEY5"
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    assert str(NAMES[name]) == name
    assert parse_name(name) == NAMES[name]


@pytest.mark.parametrize("name", ["L-21_H1_1800SFT-1-2.sft", "H-21_H1_1800SFT_a b-1238166018-2.sft", "run.h5"])
def test_names_that_are_none(name):
    with pytest.raises(InputError, match="no name of an SFT file; wanted for example H-21_H1_1800SFT_label"):
        parse_name(name)


def test_windows():
    for window, code, short in (
        (Window("unknown"), 0, "UNKN"), (Window("rectangular"), 1, "RECT"), (Window("hann"), 2, "HANN"),
        (Window("tukey", 0.001), 5006, "TKEY5"), (Window("tukey", 1.0), 10001, "TKEY5000"),
    ):  # fmt: skip
        assert (window.code, window.short) == (code, short)
        assert window_of(code) == window
    with pytest.raises(InputError, match=r"the window hann has no parameter, found 0\.5"):
        Window("hann", 0.5)
    with pytest.raises(InputError, match="there is no window 'kaiser'"):
        Window("kaiser")
    with pytest.raises(InputError, match="stands for none"):
        _ = replace(sfts(), window=np.array([3, 3], np.uint16)).windows


def test_a_long_comment_is_padded():
    assert padded_comment("") == b""
    assert padded_comment("1234567") == b"1234567\0"
    assert padded_comment("12345678") == b"12345678" + b"\0" * 8
