"""Campaign "damage": whatever is done to a file that lanewise reads, the command ends in its form, or goes on with what
the file held.

A case takes a good file of some kind, damages it, and runs the command that reads it. It may end with code 2 and lines
that begin with `error:`, or with code 0. Bytes of a checkpoint that are changed must never lead to another state: its
sums are there to notice. What a lie in its form (a dataset of another type, a setting out of range) leads to need not
be the same, but must not raise.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import json
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
from PIL import Image

from lanewise.io.formats import write_particles
from lanewise.sims.gravity import make_initial_conditions
from lanewise.sims.lbm.obstacles import as_solid, read_mask
from lanewise.support.errors import FileWarning, LanewiseError
from tests.fuzz import waves_files
from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.commands import RUNS, SCRATCH, Ended, command, folder, remember_programs, state
from tests.io.samples import renew_sums

STEPS = 4
MORE = 2
CHECKPOINTS = tuple(RUNS)
PARTICLES = {"npz": "a.npz", "csv": "a.csv", "tipsy": "a.tipsy", "gadget": "a.h5"}
READERS: dict[str, tuple[str, tuple[object, ...]]] = {
    **{kind: (name, ("gravity", "run", "--ic", name, "--steps", 1)) for kind, name in PARTICLES.items()},
    "agents": ("a.csv", ("boids", "run", "--from", "a.csv", "--steps", 1, "--search", "all-pairs")),
    **{product: ("a.h5", (product, "run", "--resume", "a.h5", "--steps", MORE)) for product in CHECKPOINTS},
}  # fmt: skip
OBSTACLES = {"npy": "a.npy", "png": "a.png", "stl": "a.stl", "stl text": "a.stl"}
WAVES = tuple(f"waves {kind}" for kind in waves_files.READERS) if waves_files.THERE else ()
BOX, BOX3 = (20, 40), (12, 12, 24)
MESHES = importlib.util.find_spec("trimesh") is not None  # it makes the meshes, and reads them
KINDS = [
    kind
    for kind in (*READERS, *OBSTACLES, *WAVES)
    if MESHES or not kind.startswith("stl")
    for _ in range(4 if kind in CHECKPOINTS else 1)
]
WORDS = [b"nan", b"inf", b"-1", b"1e999", b"", b"x", b'"', b"\n", b"\0", b"\xff", b"9" * 400, b",", b"0x10", b"True"]


def body(case: Case) -> str:
    remember_programs()
    random = case.random
    kind = random.choice(KINDS)
    name = "" if kind in WAVES else OBSTACLES[kind] if kind in OBSTACLES else READERS[kind][0]
    if kind in WAVES:
        return damaged_waves(case, kind.removeprefix("waves "))
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place:
        path = Path(place) / name
        path.write_bytes(good_file(kind))
        lies = kind in CHECKPOINTS and random.random() < 0.5
        case.shown = f"{kind}: " + (lie(path, random) if lies else damage_bytes(path, random, text=kind in TEXTS))
        before = path.read_bytes()
        with folder(Path(place)):
            ended = (
                obstacle(name, BOX3 if kind.startswith("stl") else BOX)
                if kind in OBSTACLES
                else command(*READERS[kind][1])
            )
        case.shown += f" -> {ended}"
        check_form(ended)
        case.counts[f"{kind} {ended.code}"] += 1
        if ended.code == 2:
            assert path.read_bytes() == before, "a refused file was changed"
            return "refused"
        if kind in CHECKPOINTS and not lies:
            assert state(path) == good_end(kind), "other content was accepted"
            return "no effect"
        return "accepted"


def damaged_waves(case: Case, kind: str) -> str:
    """One of the files of a search, damaged, and the command that reads it; sums notice what is changed."""
    random, name = case.random, waves_files.READERS[kind][0]
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place, folder(Path(place)):
        waves_files.write(kind)
        path = Path(name)
        lies = path.suffix == ".json" and random.random() < 0.5
        how = (
            waves_files.lie(path, random, _lie_in_json)
            if lies
            else damage_bytes(path, random, text=kind not in waves_files.SUMMED)
        )
        case.shown = f"waves {kind}: {how}"
        before = path.read_bytes()
        ended = waves_files.read(kind)
        case.shown += f" -> {ended}"
        check_form(ended)
        case.counts[f"waves {kind} {ended.code}"] += 1
        if ended.code == 2:
            assert not path.exists() or path.read_bytes() == before, "a refused file was changed"
            return "refused"
        if kind in waves_files.SUMMED and not lies:
            assert waves_files.results(kind) == waves_files.good_end(kind), "other content was accepted"
            return "no effect"
        return "accepted"


def obstacle(name: str, shape: tuple[int, ...]) -> Ended:
    """What `--mask` and `--stl` do with a file before anything is compiled; what it raises but lanewise's own errors
    escapes.
    """
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            as_solid(read_mask(name, shape), shape)
        except LanewiseError as error:
            return Ended(2, f"{errors.getvalue()}error: {error}\n")
    return Ended(0, errors.getvalue())


def check_form(ended: Ended) -> None:
    """Code 0, or code 2 and one message."""
    assert ended.code in (0, 2), "another code"
    assert "Traceback" not in ended.errors, "a traceback"
    assert ended.code == 0 or ended.errors.splitlines()[-1:] != [], "no message"
    assert ended.code == 0 or any(line.startswith("error: ") for line in ended.errors.splitlines()), "no error"


# ------------------------------------------------------------ good files


@functools.cache
def good_file(kind: str) -> bytes:
    """A small good file of a kind."""
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place:
        path = Path(place) / (OBSTACLES.get(kind) or READERS[kind][0])
        if kind in CHECKPOINTS:
            with folder(path.parent):
                ended = command(kind, "run", *RUNS[kind], "--steps", STEPS, "--out", path.name)
            assert ended.code == 0, ended
        else:
            MAKERS[kind](path)
        return path.read_bytes()


@functools.cache
def good_end(product: str) -> dict[str, Any]:
    """The state to which a good checkpoint is resumed."""
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place, folder(Path(place)):
        Path("a.h5").write_bytes(good_file(product))
        ended = command(*READERS[product][1])
        assert ended.code == 0, ended
        return state(Path("a.h5"))


def _particles(path: Path) -> None:
    with warnings.catch_warnings():  # CSV has no place for the softening
        warnings.simplefilter("ignore", FileWarning)
        write_particles(path, make_initial_conditions("plummer", 8, 1))


def _agents(path: Path) -> None:
    with folder(path.parent):
        ended = command("boids", "run", "--agents", 8, "--steps", 1, "--search", "all-pairs", "--final", path.name)
    assert ended.code == 0, ended


def _npy(path: Path) -> None:
    mask = np.zeros(BOX, np.uint8)
    mask[8:12, 16:20] = 1
    np.save(path, mask)


def _png(path: Path) -> None:
    picture = np.full((12, 12), 255, np.uint8)
    picture[3:9, 3:9] = 0
    Image.fromarray(picture).save(path)


def _stl(path: Path) -> None:
    import trimesh

    trimesh.creation.box((2, 1, 1)).export(path)


def _stl_text(path: Path) -> None:
    import trimesh

    path.write_text(trimesh.exchange.stl.export_stl_ascii(trimesh.creation.box((2, 1, 1))))


MAKERS: dict[str, Callable[[Path], None]] = {
    **dict.fromkeys(PARTICLES, _particles), "agents": _agents, "npy": _npy, "png": _png, "stl": _stl, "stl text": _stl_text,
}  # fmt: skip
TEXTS = ("csv", "agents", "stl text")


# ------------------------------------------------------------ damage


def damage_bytes(path: Path, random: Random, *, text: bool) -> str:
    """Change bytes; says how."""
    if path.suffix == ".npz" and random.random() < 0.5:
        return _damage_member(path, random)
    data = bytearray(path.read_bytes())
    how = _change(data, random, text=text)
    path.write_bytes(data)
    return how


def _change(data: bytearray, random: Random, *, text: bool) -> str:
    size = len(data)
    place = min(int(size * random.random() ** random.choice((1, 3))), size - 1)  # often near the beginning
    length = min(random.choice((1, 4, 16, 64, 512)), size - place)
    how = random.choice(
        ("bit", "bit", "bits", "cut", "random", "zeros", "ones", "copy", "longer", "gone") + ("word", "word") * text
    )
    match how:
        case "bit" | "bits":
            for _ in range(1 if how == "bit" else random.randint(2, 20)):
                at = place if how == "bit" else random.randrange(size)
                data[at] ^= 1 << random.randrange(8)
        case "cut":
            del data[place:]
        case "random":
            data[place : place + length] = random.randbytes(length)
        case "zeros":
            data[place : place + length] = bytes(length)
        case "ones":
            data[place : place + length] = b"\xff" * length
        case "copy":
            start = random.randrange(size - length + 1)
            data[place : place + length] = data[start : start + length]
        case "longer":
            data += random.randbytes(length)
        case "gone":
            del data[place : place + length]
        case _:
            data[place : place + random.randint(0, 6)] = random.choice(WORDS)
    return f"{how} at {place}, length {length}"


def _damage_member(path: Path, random: Random) -> str:
    """One array of an archive, whose own sums are then right again; or another array in its place."""
    with zipfile.ZipFile(path) as archive:
        members = {n: bytearray(archive.read(n)) for n in archive.namelist()}
    name = random.choice(list(members))
    if random.random() < 0.5:
        how = _change(members[name], random, text=False)
    else:
        stream = io.BytesIO()
        np.save(stream, _odd_array(random))
        members[name], how = bytearray(stream.getvalue()), "another array"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, bytes(data))
    return f"{name}: {how}"


def _odd_array(random: Random) -> Any:
    return random.choice((
        np.zeros((8, 3)), np.zeros((3, 8)), np.zeros(8), np.zeros(()), np.zeros((0, 3)), np.full((8, 3), np.nan), np.full(8, 1e300),
        np.full((8, 3), 1e39), np.zeros((8, 3), "c16"), np.zeros((8, 3), "i2"), np.array(["text"] * 8), np.array(b"x"),
        np.zeros(8, [("a", "f8"), ("b", "i4")]), np.full(8, 2**63, "u8"), np.arange(8)[::-1].copy(), np.zeros((8, 3), "M8[s]"),
        np.array(True), np.float64(1e308), np.int64(-1),
    ))  # fmt: skip


def lie(path: Path, random: Random) -> str:
    """Something in the form of a checkpoint that its writer never wrote, with sums that are right; says what."""
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = random.choice(names)
        attributes = [(n, a) for n in ("", *names) for a in (file[n] if n else file).attrs]
        if random.random() < 0.5 and attributes:
            inner = [(n, a) for n, a in attributes if n.startswith("lanewise")] or attributes
            return _lie_in_attribute(file, random, *random.choice(inner if random.random() < 0.8 else attributes))
        what = random.choice(("gone", "array", "array", "typed", "group", "null", "soft", "external"))
        held = file[name]
        typed = _retyped(held, random) if isinstance(held, h5py.Dataset) and what == "typed" else None
        del file[name]
        match what:
            case "gone":
                pass
            case "group":
                file.create_group(name)
            case "null":
                file[name] = h5py.Empty("f8")
            case "soft":
                file[name] = h5py.SoftLink(f"/{random.choice(names)}")
            case "external":
                file[name] = h5py.ExternalLink("other.h5", "/x")
            case _:
                odd = typed if typed is not None else _odd_array(random)
                file[name] = (
                    odd.astype("S8") if odd.dtype.kind == "U" else odd.view("i8") if odd.dtype.kind == "M" else odd
                )
        if random.random() < 0.9:
            renew_sums(file)
    return f"{name}: {what}"


def _retyped(held: Any, random: Random) -> Any:
    """The same values in another type, shape or storage, or with one that is no number."""
    values = np.array(held[()])
    if values.dtype.kind not in "iufb":
        return values
    match random.randrange(5):
        case 0:
            with np.errstate(all="ignore"):
                return values.astype(random.choice(("f4", "f8", "i4", "i8", "u1", ">f8", "f2")))
        case 1:
            return values.reshape(-1)
        case 2:
            return values[: len(values) // 2] if values.ndim else values
        case 3 if values.dtype.kind == "f" and values.size:
            values.flat[random.randrange(values.size)] = random.choice((np.nan, np.inf, 1e30, -1.0))
            return values
        case _:
            return values  # of one piece: nothing can be appended


def _lie_in_attribute(file: Any, random: Random, name: str, attribute: str) -> str:
    attributes = (file[name] if name else file).attrs
    value: Any = attributes[attribute]
    text = value.decode(errors="replace") if isinstance(value, bytes) else ""
    if text.startswith("{") and random.random() < 0.8:
        values: Any = json.loads(text)
        how = _lie_in_json(values, random)
        attributes[attribute] = np.bytes_(json.dumps(values))
        return f"{name}@{attribute}: {how}"
    odd: Any = random.choice(
        (
            None,
            0,
            -1,
            1,
            2**62,
            -(2**62),
            1e308,
            np.nan,
            np.inf,
            0.5,
            b"x",
            b"",
            np.zeros(3),
            np.complex128(1j),
            np.zeros((2, 2), "i4"),
            True,
        )
    )
    if odd is None:
        del attributes[attribute]
    else:
        attributes[attribute] = np.bytes_(odd or b"\0") if isinstance(odd, bytes) else odd
    return f"{name}@{attribute}: {odd!r}"


def _lie_in_json(values: Any, random: Random) -> str:
    """Change one value somewhere in it."""
    while True:
        keys: list[Any] = list(values) if isinstance(values, dict) else list(range(len(values)))
        if not keys:
            return "nothing"
        key = random.choice(keys)
        if isinstance(values[key], dict | list) and values[key] and random.random() < 0.7:
            values = values[key]
            continue
        if isinstance(values, dict) and random.random() < 0.2:
            del values[key]
            return f"{key} gone"
        odd = random.choice(
            (
                None,
                -1,
                0,
                1,
                3,
                10**6,
                10**30,
                1e308,
                1e-300,
                float("nan"),
                "x",
                "",
                [],
                {},
                [1, 2],
                True,
                "f64",
                "cuda",
                "aos",
            )
        )
        values[key] = odd
        return f"{key}: {odd!r}"


DAMAGE = Campaign("damage", body, limit=300.0, renew=100_000, memory=16 << 30)
"""The first case of a process compiles; a process is not renewed, for it compiles nothing more."""
