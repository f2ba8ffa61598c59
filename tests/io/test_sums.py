"""No damage of a file of lanewise is read as other numbers, whatever it is: bits, bytes, words, sectors, stuck, swapped
or cut off.
"""

from __future__ import annotations

# ruff: noqa: PT017  (what is refused and what is read are both right, each in its own way)
import zlib
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import pytest

import lanewise as lw
from lanewise.io.csv import read_csv, write_csv
from lanewise.io.particles import Particles
from lanewise.io.summed_text import check_lines, summed_text
from lanewise.sims.boids.checkpoint import read_checkpoint as read_flock
from lanewise.sims.boids.state import read_state as read_agents
from lanewise.sims.boids.state import write_state
from lanewise.sims.gravity.checkpoint import read_checkpoint as read_gravity
from lanewise.sims.gravity.options import Output
from lanewise.sims.gravity.runner import start
from lanewise.sims.lbm.checkpoint import read_checkpoint as read_flow
from lanewise.sims.lbm.files import read_flow as read_fields
from lanewise.sims.waves.hierarchical import CANDIDATE
from lanewise.sims.waves.tables import read_templates, write_table
from lanewise.sims.waves.units.checkpoint import (
    SEARCH,
    State,
    path_of,
    read_configuration,
    read_state,
    write_configuration,
)
from lanewise.sims.waves.units.checkpoint import write_state as write_unit_state
from lanewise.sims.waves.units.partition import Unit
from lanewise.support.errors import InputError

SECTOR = 512
UNIT = Unit(3, (0, 2), (0, 4), (0, 9))


class Grain(lw.Record):
    """Numbers whose halves are words of zeros, as most are."""

    id: lw.i64
    place: lw.vec2
    mass: lw.f64


def save_arrays(path: Path) -> None:
    count = 200
    grains = Grain.array(id=np.arange(count), place=np.arange(2 * count).reshape(count, 2), mass=np.ones(count))
    lw.save(
        path, grains=grains, lists=lw.ragged([[1.5, 2.5], [], [3.5]]), none=np.zeros((0, 3)), flags=np.ones(40, bool)
    )


def load_arrays(path: Path) -> Any:
    back = lw.load(path, record={"grains": Grain})
    shown = {n: v.tobytes() for n, v in back["grains"].numpy().items()}
    return shown, back["lists"].tolist(), back["none"].shape, back["flags"].tobytes()


def save_gravity(path: Path) -> None:
    start(ic="plummer", bodies=40, softening=0.125, steps=2, dt=0.01, output=Output(out=path)).execute()


def plain(value: Any) -> Any:
    """What compares: arrays as bytes, and the rest as text."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Particles):
        return [
            plain(getattr(value, n)) for n in ("position", "velocity", "mass", "ids", "component", "time", "softening")
        ]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return repr(value)


def load_gravity(path: Path) -> Any:
    saved = read_gravity(path)
    return plain([saved.particles, saved.settings, saved.step, saved.plans]), [plain(d) for d in saved.history]


def save_flow(path: Path) -> None:
    flow = lw.sims.lbm.Simulation(
        shape=(6, 8), viscosity=0.1, mask=np.eye(6, 8, dtype=int), kinds={1: lw.sims.lbm.Wall("w")}
    )
    flow.checkpoint(path)


def load_flow(path: Path) -> Any:
    saved = read_flow(path)
    fields = read_fields(path)
    return plain([dict(saved.state), saved.settings, saved.geometry.mask, saved.step, fields.density, fields.velocity])


def save_flock(path: Path) -> None:
    lw.sims.boids.Flock(agents=20, search="all-pairs", think_every=2).run(2).checkpoint(path)


def load_flock(path: Path) -> Any:
    saved = read_flock(path)
    state = [np.asarray(getattr(saved.state, n)) for n in ("position", "forward", "up", "speed", "acceleration", "ids")]
    return plain([state, saved.settings, saved.rows, list(saved.urges), saved.clock])


FILES: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "arrays": (save_arrays, load_arrays),
    "gravity": (save_gravity, load_gravity),
    "flow": (save_flow, load_flow),
    "flock": (save_flock, load_flock),
}


def save_bodies(path: Path) -> None:
    rng = np.random.default_rng(3)
    write_csv(path, Particles.of(rng.normal(size=(60, 3)), rng.normal(size=(60, 3)), np.ones(60)))


def save_agents(path: Path) -> None:
    write_state(path, lw.sims.boids.Flock(agents=20, search="all-pairs").run(2).state)


def load_agents(path: Path) -> Any:
    state = read_agents(path)
    return plain([np.asarray(getattr(state, n)) for n in ("position", "forward", "up", "speed", "acceleration", "ids")])


def save_templates(path: Path) -> None:
    rng = np.random.default_rng(4)
    columns = {
        "freq": 60 + rng.random(50),
        "alpha": rng.random(50),
        "delta": rng.random(50),
        "f1dot": -1e-9 * rng.random(50),
    }
    write_table(path, columns | {"rank": np.arange(50)}, overwrite=True)


def load_templates(path: Path) -> Any:
    found = read_templates(path, 10**18)
    return found.names, found.rows, plain([getattr(found.templates, n) for n in ("freq", "alpha", "delta", "f1dot")])


TABLES: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "bodies": (save_bodies, lambda path: plain(read_csv(path))),
    "agents": (save_agents, load_agents),
    "templates": (save_templates, load_templates),
}
"""As text, with the sum of their lines in the first one."""


def damaged(whole: bytes, random: Random) -> Iterator[tuple[str, bytes]]:
    """Ever further damages of a file; most of those that a sum of words modulo 65,535 cannot see."""
    words = np.frombuffer(whole[: len(whole) // 2 * 2], np.uint16)
    blind = np.flatnonzero((words == 0) | (words == 0xFFFF))
    while True:
        data, size = bytearray(whole), len(whole)
        how = random.choice(("word", "word", "word", "words", "bit", "byte", "stuck", "sector", "swap", "cut", "page"))
        at = random.randrange(size)
        match how:
            case "word" | "words" if not len(blind):
                continue
            case "word" | "words":
                for place in random.sample(list(blind), 1 if how == "word" else 7):
                    data[2 * place : 2 * place + 2] = b"\xff\xff" if words[place] == 0 else b"\0\0"
            case "bit":
                data[at] ^= 1 << random.randrange(8)
            case "byte":
                data[at] = random.choice((0, 0xFF))
            case "stuck":  # one bit of some hundred bytes
                mask = 1 << random.randrange(8)
                for k in range(at, min(at + random.choice((8, 64, 512)), size)):
                    data[k] |= mask
            case "sector" | "page":
                width = SECTOR if how == "sector" else 8 * SECTOR
                begin = at // width * width
                data[begin : begin + width] = random.choice((b"\0", b"\xff")) * len(data[begin : begin + width])
            case "swap":  # of two pieces of one size
                width = random.choice((4, 8, 64, SECTOR))
                one, two = (random.randrange(size // width) * width for _ in range(2))
                data[one : one + width], data[two : two + width] = data[two : two + width], data[one : one + width]
            case _:
                del data[at:]
        if bytes(data) != whole:
            yield f"{how} at {at}", bytes(data)


def check_damages(kind: str, folder: Path, cases: int, seed: int) -> None:
    save, load = (FILES | TABLES)[kind]
    path = folder / ("a.csv" if kind in TABLES else "a.h5")
    save(path)
    whole, good = path.read_bytes(), load(path)
    refused = 0
    for (how, data), _ in zip(damaged(whole, Random(seed)), range(cases), strict=False):
        path.write_bytes(data)
        try:
            found = load(path)
        except InputError as error:
            refused += 1
            assert str(error).startswith(f"{path}: "), how
            assert "\n" not in str(error)
        else:
            assert found == good, f"{how}: read as other content"
    assert refused > cases / 4


@pytest.mark.parametrize("kind", [*FILES, *TABLES])
def test_no_damage_is_read_as_other_numbers(kind: str, tmp_path: Path) -> None:
    check_damages(kind, tmp_path, 60, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", [*FILES, *TABLES])
def test_none_of_many_damages_is_read_as_other_numbers(kind: str, seed: int, tmp_path: Path) -> None:
    check_damages(kind, tmp_path, 3000, 100 + seed)


def write_unit(folder: Path) -> Path:
    rows = np.zeros(12, CANDIDATE)
    for number, name in enumerate(CANDIDATE.names or ()):
        rows[name] = np.arange(12) * 0.375 + number
    state = State(UNIT, "0" * 64, 1, 0, rows)
    write_unit_state(folder, state)
    return path_of(folder, UNIT)


def read_unit(folder: Path) -> Any:
    state = read_state(folder, UNIT, "0" * 64)
    return state.sky, state.spin, state.candidates.tobytes()


def write_whole(folder: Path) -> Path:
    write_configuration(folder, {"method": 1, "sky": "3 directions", "search": [60.0, 0.25, None]}, 7)
    return folder / SEARCH


# text, whose sum is of its content: blanks and the spelling of numbers may be other ones
TEXTS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Any]]] = {
    "unit": (write_unit, read_unit),
    "search": (write_whole, read_configuration),
}


@pytest.mark.parametrize("every", [31, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", TEXTS)
def test_no_flipped_bit_of_a_search_is_read_as_other_numbers(kind: str, every: int, tmp_path: Path) -> None:
    """Every bit of the file (quick: of each 31), every pair of bytes as words of zeros and of ones, and what is cut
    off.
    """
    write, read = TEXTS[kind]
    path = write(tmp_path)
    whole, good = path.read_bytes(), read(tmp_path)
    size = len(whole)
    flips = [(at, bytes([whole[at] ^ (1 << bit)])) for at in range(size) for bit in range(8)]
    words = [(at, word) for at in range(size - 1) for word in (b"\0\0", b"\xff\xff")]
    cuts = [whole[:at] for at in range(0, size - 1, 7)]
    changed = [whole[:at] + new + whole[at + len(new) :] for at, new in (*flips, *words)] + cuts
    changed = changed[::every]
    refused = 0
    for data in changed:
        path.write_bytes(data)
        try:
            found = read(tmp_path)
        except InputError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ")
            assert "\n" not in str(error)
        else:
            assert found == good
    assert refused > 0.98 * len(changed)


def datasets(path: Path) -> list[str]:
    found: list[str] = []
    with h5py.File(path) as file:
        file.visititems(lambda name, held: found.append(name) if isinstance(held, h5py.Dataset) else None)
    return found


@pytest.mark.parametrize("kind", FILES)
def test_words_that_a_sum_of_words_cannot_see(kind: str, tmp_path: Path) -> None:
    """In every dataset: the first word of zeros becomes one of ones."""
    save, load = FILES[kind]
    path = tmp_path / "a.h5"
    save(path)
    whole, good = path.read_bytes(), load(path)
    tried = 0
    for name in datasets(path):
        with h5py.File(path) as file:
            held: Any = file[name]
            if not held.size or not held.chunks or held.compression:
                continue
            chunk = held.id.get_chunk_info(0)
        words = np.frombuffer(whole, np.uint16, (chunk.size - 4) // 2, chunk.byte_offset)
        zeros = np.flatnonzero(words == 0)
        if not len(zeros) or not words.any():  # a Fletcher sum sees ones among zeros alone
            continue
        at = chunk.byte_offset + 2 * int(zeros[0])
        path.write_bytes(whole[:at] + b"\xff\xff" + whole[at + 2 :])
        try:
            assert load(path) == good, name  # fields for other programs, which resuming does not read
        except InputError as error:
            assert "is not what was written" in str(error)
            assert name in str(error)
            tried += 1
        path.write_bytes(whole)
    assert tried >= 1


@pytest.mark.parametrize("kind", FILES)
def test_the_sum_is_the_crc_of_the_bytes(kind: str, tmp_path: Path) -> None:
    """What other programs can compute, and files of every version have."""
    path = tmp_path / "a.h5"
    FILES[kind][0](path)
    with h5py.File(path) as file:
        for name in datasets(path):
            held: Any = file[name]
            assert int(held.attrs["lanewise_crc32"][0]) == zlib.crc32(np.asarray(held[()]).tobytes()), name


@pytest.mark.parametrize("kind", FILES)
def test_a_dataset_without_its_sum_is_refused(kind: str, tmp_path: Path) -> None:
    save, load = FILES[kind]
    path = tmp_path / "a.h5"
    save(path)
    whole, good = path.read_bytes(), load(path)
    refused = 0
    for name in datasets(path):
        with h5py.File(path, "r+") as file:
            del file[name].attrs["lanewise_crc32"]
        try:
            assert load(path) == good
        except InputError as error:
            assert f"{name} has no sum" in str(error)
            refused += 1
        path.write_bytes(whole)
    assert refused >= 2


@pytest.mark.parametrize("kind", FILES)
def test_what_lies_under_the_name_of_another_is_refused(kind: str, tmp_path: Path) -> None:
    """Two datasets of one type and shape that changed places, each with its sum."""
    save, load = FILES[kind]
    path = tmp_path / "a.h5"
    save(path)
    whole, good = path.read_bytes(), load(path)
    with h5py.File(path) as file:
        shapes = {name: (file[name].dtype.str, file[name].shape) for name in datasets(path)}  # pyright: ignore
    tried = 0
    for one, other in combinations(shapes, 2):
        if shapes[one] != shapes[other]:
            continue
        with h5py.File(path, "r+") as file:
            for source, target in ((one, "kept"), (other, one), ("kept", other)):
                file.move(source, target)
        try:
            assert load(path) == good, (one, other)
        except InputError as error:
            tried += "is not what was written" in str(error)
        path.write_bytes(whole)
    assert tried or kind == "arrays"


@pytest.mark.parametrize("kind", FILES)
def test_the_same_bytes_as_other_numbers_are_refused(kind: str, tmp_path: Path) -> None:
    """A dataset whose values were read as another type of their size, with the sum of the bytes."""
    save, load = FILES[kind]
    path = tmp_path / "a.h5"
    save(path)
    whole, good = path.read_bytes(), load(path)
    tried = 0
    for name in datasets(path):
        with h5py.File(path, "r+") as file:
            held: Any = file[name]
            other = {"f": "i", "i": "f", "u": "i"}.get(held.dtype.kind, "") + str(held.dtype.itemsize)
            if len(other) < 2 or not held.size or other == "f1":
                continue
            values, sums = np.asarray(held[()]).view(other), held.attrs["lanewise_crc32"]
            del file[name]
            file.create_dataset(name, data=values, chunks=True).attrs["lanewise_crc32"] = sums
        try:
            assert load(path) == good, name
        except InputError as error:
            tried += "is not what was written" in str(error)
        path.write_bytes(whole)
    assert tried


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_an_older_version_is_read_and_said(kind: str, tmp_path: Path) -> None:
    save, load = FILES[kind]
    path = tmp_path / "a.h5"
    save(path)
    good = load(path)
    with h5py.File(path, "r+") as file:
        del file.attrs["lanewise_sums"]
        for name in datasets(path):
            del file[name].attrs["lanewise_crc32"]
    with pytest.warns(lw.FileWarning, match="an older version of lanewise, whose sums miss some damage"):
        assert load(path) == good


# ---------------------------------------------------------------- tables as text


@pytest.mark.parametrize("kind", TABLES)
def test_no_changed_character_of_a_table_is_read_as_other_numbers(kind: str, tmp_path: Path) -> None:
    """One digit for another, which every parser takes: nothing but the sum can tell."""
    save, load = TABLES[kind]
    path = tmp_path / "a.csv"
    save(path)
    whole, good = path.read_text(encoding="utf-8"), load(path)
    digits = [k for k, c in enumerate(whole) if c.isdigit()]
    for at in digits[::7]:
        path.write_text(whole[:at] + str((int(whole[at]) + 3) % 10) + whole[at + 1 :], encoding="utf-8")
        with pytest.raises(
            InputError, match=r"^\S+a.csv: (the CRC-32 of the lines below the first one is|line 1 is damaged)"
        ):
            load(path)
    rows = whole.splitlines(keepends=True)
    for changed in (rows[:-1], [*rows, rows[-1]], [*rows[:-2], rows[-1], rows[-2]]):
        path.write_text("".join(changed), encoding="utf-8")
        with pytest.raises(
            InputError, match=r"they are not what was written\. If you have changed them, delete line 1"
        ):
            load(path)
    path.write_bytes(whole.replace("\n", "\r\n").encode())  # by a program of another system
    assert load(path) == good


@pytest.mark.parametrize("kind", TABLES)
def test_the_sum_of_a_table_is_the_crc_of_its_other_lines(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    TABLES[kind][0](path)
    first, rest = path.read_bytes().split(b"\n", 1)
    assert first.decode() == f"# lanewise, CRC-32 of the lines below: {zlib.crc32(rest):08x}"


@pytest.mark.parametrize("kind", TABLES)
def test_other_programs_read_tables(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    TABLES[kind][0](path)
    names = path.read_text(encoding="utf-8").splitlines()[1].split(",")
    plainly = np.loadtxt(path, delimiter=",", skiprows=2)
    named: Any = np.genfromtxt(path, delimiter=",", names=True, skip_header=1)
    assert list(named.dtype.names) == names
    assert plainly.shape == (len(named), len(names))
    assert np.array_equal(named[names[1]], plainly[:, 1])


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_without_its_sum_is_read(kind: str, tmp_path: Path) -> None:
    """As those of other programs, from which nothing tells it."""
    save, load = TABLES[kind]
    path = tmp_path / "a.csv"
    save(path)
    good = load(path)
    rest = path.read_text(encoding="utf-8").split("\n", 1)[1]
    path.write_text(rest, encoding="utf-8")
    assert load(path) == good
    path.write_text("# a table of mine, for lanewise\n" + rest, encoding="utf-8")
    assert load(path) == good


@pytest.mark.parametrize("text", ["a\n1\n2\n", 'a,b\n"x\r\ny",2\n', 'a\n"x\r"\n'])
def test_a_table_that_was_written_is_taken_with_any_ends_of_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    with summed_text(path, overwrite=False) as lines:
        lines.write(text)
    check_lines(path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    check_lines(path)
    changed = whole[:-2] + b"7\n"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + whole)
        check_lines(path)
        path.write_bytes(mark + changed)
        with pytest.raises(InputError, match="CRC-32"):
            check_lines(path)
    path.write_bytes(b"# lanewise")
    with pytest.raises(InputError, match="line 1 is damaged"):
        check_lines(path)
