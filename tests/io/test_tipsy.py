"""Tipsy: exact bytes, both byte orders, with and without padding."""

from __future__ import annotations

import itertools
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.io.particles import Particles
from lanewise.io.tipsy import read_tipsy, write_tipsy
from lanewise.support.errors import InputError
from tests.io.samples import assert_same_bodies, mixed

pytestmark = pytest.mark.filterwarnings("ignore::lanewise.FileWarning")  # of what a format cannot hold


def made_by_hand(order: str, padding: bytes) -> bytes:
    """One gas, two dark, one star body; body k has mass k + 1, position k.1, velocity k.2 (of every axis)."""
    bodies = [(k + 1.0, *[k + 0.125] * 3, *[k + 0.25] * 3) for k in range(4)]
    rest = ((9.0, 9.0, 0.5, 9.0, 9.0), (0.5, 9.0), (0.5, 9.0), (9.0, 9.0, 0.5, 9.0))
    values = itertools.chain.from_iterable((*body, *tail) for body, tail in zip(bodies, rest, strict=True))
    return struct.pack(f"{order}diiiii", 1.5, 4, 3, 1, 2, 1) + padding + struct.pack(f"{order}41f", *values)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("padding", [b"", b"\0\0\0\0", b"\xf6\x7f\0\0"])
def test_reads_bytes_made_by_hand(tmp_path: Path, order: str, padding: bytes) -> None:
    (tmp_path / "a").write_bytes(made_by_hand(order, padding))
    bodies = read_tipsy(tmp_path / "a")
    assert bodies.mass.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert bodies.position.tolist() == [[k + 0.125] * 3 for k in range(4)]
    assert bodies.velocity.tolist() == [[k + 0.25] * 3 for k in range(4)]
    assert bodies.component.tolist() == [0, 1, 1, 4]
    assert (bodies.time, bodies.softening) == (1.5, 0.5)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("padded", [True, False])
def test_writes_either_byte_order(tmp_path: Path, order: Any, padded: bool) -> None:
    bodies = mixed()
    write_tipsy(tmp_path / "a", bodies, byte_order=order, padded=padded)
    gas, dark, star = (int(np.isin(bodies.component, kinds).sum()) for kinds in ([0], [1], [2, 3, 4, 5]))
    content = (tmp_path / "a").read_bytes()
    assert struct.unpack(f"{order}diiiii", content[:28]) == (2.5, 40, 3, gas, dark, star)
    assert len(content) == (32 if padded else 28) + 48 * gas + 36 * dark + 44 * star
    families = np.array([0, 1, 2, 2, 2, 2])[bodies.component]
    assert_same_bodies(read_tipsy(tmp_path / "a"), bodies.take(np.argsort(families, kind="stable")))


def test_wrong_size_says_what_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(made_by_hand("<", b"")[:-1])
    message = (
        f"{path}: this Tipsy file is truncated or damaged: it has 191 bytes; "
        "its header (1 gas, 2 dark, 1 star) wants 192 or 196"
    )
    with pytest.raises(InputError, match="^" + re.escape(message)):
        read_tipsy(path)


@pytest.mark.parametrize("padding", [b"\0\0\0\0", b"\xf6\x7f\0\0"])
def test_a_padded_file_4_bytes_short_is_not_taken_for_an_unpadded_one(tmp_path: Path, padding: bytes) -> None:
    (tmp_path / "a").write_bytes(made_by_hand("<", padding)[:-4])
    with pytest.raises(InputError, match="a: this Tipsy file is truncated: it is 4 bytes short of a padded file"):
        read_tipsy(tmp_path / "a")


@pytest.mark.quick("pynbody-<", "pynbody->")
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("reader", ["yt", "pynbody"])
@pytest.mark.filterwarnings("ignore")
def test_other_readers(tmp_path: Path, reader: str, order: Any) -> None:
    library = pytest.importorskip(reader)
    bodies = Particles.of(mixed().position, mixed().velocity, mixed().mass, component=np.repeat([1, 4], 20))
    write_tipsy(tmp_path / "a.tipsy", bodies, byte_order=order)
    if reader == "pynbody":
        found = np.asarray(library.load(str(tmp_path / "a.tipsy"))["pos"])
    else:
        library.set_log_level(50)
        data = library.load(str(tmp_path / "a.tipsy")).all_data()
        found = np.concatenate(
            [data[kind, "particle_position"].to("code_length").v for kind in ("DarkMatter", "Stars")]
        )
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(bodies.position, axis=0), rtol=1e-6)


def test_header_that_does_not_add_up(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(struct.pack("<diiiii", 0.0, 5, 3, 1, 2, 1) + bytes(200))
    with pytest.raises(InputError, match="not a Tipsy file: the header is not of 3 dimensions with gas"):
        read_tipsy(path)
    path.write_bytes(struct.pack("<diiiii", 0.0, 0, 3, 0, 0, 0))
    with pytest.raises(InputError, match="there are no bodies"):
        read_tipsy(path)


def test_bad_value_names_file_and_body(tmp_path: Path) -> None:
    content = bytearray(made_by_hand("<", b""))
    content[28 + 48 + 36 : 28 + 48 + 40] = struct.pack("<f", np.nan)
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match="a: mass of body 2 is nan; wanted a finite number"):
        read_tipsy(tmp_path / "a")


def test_too_large_for_float32(tmp_path: Path) -> None:
    bodies = Particles.of([[0.0, 1e39, 0.0]], np.zeros((1, 3)), 1.0)
    with pytest.raises(
        InputError, match=r"position of body 0 does not fit into float32; wanted magnitudes below 3.4e38"
    ):
        write_tipsy(tmp_path / "a", bodies)
    assert list(tmp_path.iterdir()) == []
