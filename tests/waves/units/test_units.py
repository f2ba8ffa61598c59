"""Work units in this process: one list however a search is divided and interrupted; nothing wrong, foreign or twice is merged."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lanewise.sims import waves
from lanewise.sims.common import devices as known_devices
from lanewise.sims.waves.commands import files
from lanewise.sims.waves.hierarchical import CANDIDATE
from lanewise.sims.waves.units import (
    Job,
    Ready,
    State,
    Unit,
    Workers,
    divide,
    engines,
    forget,
    read_state,
    run,
    search_in_units,
    validate,
    work,
    write_state,
)
from lanewise.sims.waves.units.checkpoint import path_of, start_of
from lanewise.sims.waves.units.engines import described_workers
from lanewise.sims.waves.units.validation import ResultError
from lanewise.support.errors import DeviceError, InputError
from tests.waves.units.data import SKY, a_job, a_search, make_files


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("erfa")
    return make_files(tmp_path_factory.mktemp("sfts"))


@pytest.fixture(scope="module")
def ready(pattern: str) -> Ready:
    return a_job(pattern).load()


@pytest.fixture(scope="module")
def whole(pattern: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The list of an undisturbed search in one unit."""
    return search_in_units(a_job(pattern), tmp_path_factory.mktemp("whole") / "u").candidates.tobytes()


@pytest.fixture(scope="module")
def result(ready: Ready, tmp_path_factory: pytest.TempPathFactory) -> State:
    """The state of a unit that is done."""
    unit = divide(len(SKY), 2, ready.grids.frequencies, 3)[1]
    return work.process(ready, unit, tmp_path_factory.mktemp("result"), 0.0)


@pytest.mark.parametrize(
    ("sizes", "wanted", "count"), [((5, 2, 11), 1, 1), ((5, 2, 11), 3, 3), ((5, 2, 11), 7, 10), ((1, 1, 11), 4, 4)]
)
def test_units_cover_a_search_once(sizes: tuple[int, int, int], wanted: int, count: int) -> None:
    units = divide(*sizes, wanted)
    assert [u.number for u in units] == list(range(count))
    times = np.zeros(sizes, int)
    for u in units:
        times[slice(*u.sky), slice(*u.spins), slice(*u.frequencies)] += 1
    assert (times == 1).all()


def test_what_a_search_leaves_behind(pattern: str, tmp_path: Path) -> None:
    """Nothing, also not what a kill within a checkpoint's writing has left; files of others stay, and their folder."""
    for name, more in (("a", ()), ("b", ("notes.txt",))):
        folder = tmp_path / name
        found = search_in_units(a_job(pattern, sky=SKY[:1]), folder)
        for other in (".unit-000000.json.0123abcd.tmp", *more):
            (folder / other).write_text("half", encoding="utf-8")
        forget(folder, found.units)
        assert (sorted(p.name for p in folder.iterdir()) if folder.exists() else []) == list(more)
        assert folder.exists() == bool(more)


def test_too_many_units() -> None:
    with pytest.raises(InputError, match="13 work units requested; there are 2 directions, 2 spin-downs and 3 freq"):
        divide(2, 2, 3, 13)


def search_bytes(job: Job, folder: Path, **options: Any) -> bytes:
    return search_in_units(job, folder, **options).candidates.tobytes()


@pytest.fixture(scope="module")
def on_cpu(pattern: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The list by kernels on a CPU."""
    return search_bytes(a_job(pattern, device="cpu"), tmp_path_factory.mktemp("cpu") / "u")


@pytest.mark.parametrize("units", [3, 10, 24])
def test_the_list_does_not_depend_on_the_units(pattern: str, whole: bytes, tmp_path: Path, units: int) -> None:
    assert search_bytes(a_job(pattern), tmp_path / "u", units=units) == whole


@pytest.mark.quick("3")
@pytest.mark.parametrize("units", [3, pytest.param(10, marks=pytest.mark.slow), 24])
def test_nor_on_a_device(pattern: str, on_cpu: bytes, tmp_path: Path, units: int) -> None:
    assert search_bytes(a_job(pattern, device="cpu"), tmp_path / "u", units=units) == on_cpu


@pytest.mark.cuda
def test_nor_on_a_gpu(pattern: str, whole: bytes, tmp_path: Path) -> None:
    """To the bit in any division, with a worker, and resumed by another device; as the definition but for mean 2F."""
    pytest.importorskip("distributed")
    job = a_job(pattern, device="cuda")
    found = search_bytes(job, tmp_path / "1")
    for units in (3, 10, 24):
        assert search_bytes(job, tmp_path / str(units), units=units) == found
    assert search_bytes(job, tmp_path / "w", workers=Workers(count=1)) == found
    ours, theirs = np.frombuffer(whole, CANDIDATE), np.frombuffer(found, CANDIDATE)
    for name in CANDIDATE.names or ():
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5 if name == "twoF" else 0)
    assert search_bytes(replace(job, device="cpu"), tmp_path / "3", resume=True) == found  # all units are there


@pytest.mark.cuda
def test_nor_on_two_gpus(pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker on each, whichever they are, and more units than these; the command by either name."""
    pytest.importorskip("distributed")
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    job = a_job(pattern, device="cuda")
    found = search_bytes(job, tmp_path / "this process")
    for gpus in ((0, 1), (1, 0), (1,)):
        folder = tmp_path / "-".join(map(str, gpus))
        assert search_bytes(job, folder, units=5, workers=Workers(gpus=gpus)) == found
    assert search_bytes(job, tmp_path / "2", workers=Workers(count=2)) == found


def test_two_programs_have_clusters_at_once() -> None:
    """Dask's server of metrics takes port 8787 where nothing else is said, and warns, which is an error here, if it is not free."""
    pytest.importorskip("distributed")
    with engines._cluster([]) as one, engines._cluster([]) as two, contextlib.closing(socket.socket()) as taken:
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        with engines._cluster([]) as three:
            assert len({c.scheduler_address for c in (one, two, three)}) == 3


def test_devices_find_the_same(whole: bytes, on_cpu: bytes) -> None:
    """Sums in float32 move mean 2F; in these data no peak is near enough to the threshold to change a count."""
    ours, theirs = np.frombuffer(whole, CANDIDATE), np.frombuffer(on_cpu, CANDIDATE)
    for name in CANDIDATE.names or ():
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5 if name == "twoF" else 0)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_transforms_in_units(pattern: str, tmp_path: Path, device: str) -> None:
    """F by resampling: one list for any number of units, and candidates are computed again by transforms, too."""
    job = a_job(pattern, device=device, method="resamp", sky=SKY[:2])
    assert search_bytes(job, tmp_path / "a", units=1) == search_bytes(job, tmp_path / "b", units=3)
    with pytest.raises(InputError, match="2 directions, 2 spin-downs and one band, which resampling does not divide"):
        search_in_units(job, tmp_path / "d", units=5)
    with pytest.raises(InputError, match=r'of another search: f is "demod" here and "resamp" there'):
        search_in_units(replace(job, method="demod"), tmp_path / "a", resume=True)
    with pytest.raises(InputError, match="method is 'fast'; wanted one of demod, resamp"):
        search_in_units(replace(job, method="fast"), tmp_path / "c")


def test_the_list_is_that_of_the_search_without_units(pattern: str, whole: bytes) -> None:
    job = a_job(pattern)
    sfts = waves.load_sfts(pattern)
    found = waves.hierarchical_search(sfts, job.search, waves.Ephemeris.load("EPV00"), SKY, job.most)
    ours = np.frombuffer(whole, found.dtype)
    assert found.tobytes() == ours.tobytes()


class Stopped(Exception):
    """What stands for a kill."""


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_search_that_is_killed_again_and_again(
    pattern: str, whole: bytes, on_cpu: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    true, made = work.steps, [0]

    def dying(*arguments: Any) -> Iterator[Any]:
        for found in true(*arguments):
            made[0] += 1
            if made[0] % 4 == 0:
                raise Stopped
            yield found

    monkeypatch.setattr(work, "steps", dying)
    kills = 0
    while True:
        try:
            found = search_in_units(a_job(pattern, device=device), tmp_path / "u", units=2, seconds=0, resume=kills > 0)
        except Stopped:
            kills += 1
        else:
            break
    assert kills == 3
    assert made[0] == 10 + kills  # no step that has a checkpoint is done twice
    assert found.candidates.tobytes() == (whole if device == "numpy" else on_cpu)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_ctrl_c_keeps_what_is_done(
    ready: Ready, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """However long it was to the next checkpoint."""
    true = work.steps

    def interrupted(*arguments: Any) -> Iterator[Any]:
        for number, found in enumerate(true(*arguments)):
            if number == 3:
                raise KeyboardInterrupt
            yield found

    monkeypatch.setattr(work, "steps", interrupted)
    unit = divide(len(SKY), 2, ready.grids.frequencies, 1)[0]
    with pytest.raises(KeyboardInterrupt):
        work.process(replace(ready, job=a_job(pattern, device=device)), unit, tmp_path, 3600.0)
    assert read_state(tmp_path, unit, ready.digest).done == 3


@pytest.mark.parametrize(("first", "second"), [("cpu", "numpy"), ("numpy", "cpu")])
def test_a_search_goes_on_on_another_device(
    pattern: str, whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    """The second one takes over where the first one stopped, and computes no step of those before."""
    true, made = work.steps, list[str]()

    def dying(ready: Ready, *more: Any) -> Iterator[Any]:
        for found in true(ready, *more):
            if ready.job.device == first and made.count(first) == 4:
                raise Stopped
            made.append(ready.job.device)
            yield found

    monkeypatch.setattr(work, "steps", dying)
    with pytest.raises(Stopped):
        search_in_units(a_job(pattern, device=first), tmp_path / "u", units=3, seconds=0)
    found = search_in_units(a_job(pattern, device=second), tmp_path / "u", resume=True).candidates
    assert made == [first] * 4 + [second] * 6
    ours = np.frombuffer(whole, CANDIDATE)
    for name in CANDIDATE.names or ():
        np.testing.assert_allclose(found[name], ours[name], rtol=1e-5 if name == "twoF" else 0)


def test_checkpoints_of_another_search(pattern: str, tmp_path: Path) -> None:
    folder = tmp_path / "u"
    with pytest.raises(InputError, match="there is no search to resume; leave --resume out to begin one"):
        search_in_units(a_job(pattern), folder, resume=True)
    search_in_units(a_job(pattern), folder, units=2)
    with pytest.raises(
        InputError, match="there are checkpoints of a search; give --resume to continue from them, or --ov"
    ):
        search_in_units(a_job(pattern), folder)
    other = a_job(pattern, search=a_search(threshold=5.0), most=30)
    with pytest.raises(InputError) as refusal:
        search_in_units(other, folder, resume=True)
    assert "candidates is 30 here and 40 there; threshold is 5.0 here and 4.0 there; resume with" in str(refusal.value)
    with pytest.raises(InputError, match="divided into 2 work units, and --units is 3; leave --units out"):
        search_in_units(a_job(pattern), folder, units=3, resume=True)
    files = make_files(tmp_path, seed=9)
    with pytest.raises(InputError, match=r"data of H1 is .* here and .* there; data of L1"):
        search_in_units(a_job(files), folder, resume=True)
    assert len(search_in_units(other, folder, overwrite=True).candidates) == 30


def test_damaged_and_foreign_checkpoints(result: State, tmp_path: Path) -> None:
    unit, digest = result.unit, result.digest
    path = path_of(tmp_path, unit)
    assert read_state(tmp_path, unit, digest).done == 0
    write_state(tmp_path, result)
    again = read_state(tmp_path, unit, digest)
    assert (again.candidates.tobytes(), again.complete) == (result.candidates.tobytes(), True)
    with pytest.raises(InputError, match="it is a checkpoint of another search; wanted one of 0000"):
        read_state(tmp_path, unit, "0" * 64)
    with pytest.raises(InputError, match="it is a checkpoint of another unit"):
        read_state(tmp_path, Unit(unit.number, (0, 1), unit.spins, unit.frequencies), digest)
    text = path.read_text(encoding="utf-8")
    content = json.loads(text)
    for damaged, why in (
        (text[:-20], "it is no JSON"),
        (text.replace('"next": [', '"next": [1'), "its checksum is not that of its content"),
        (json.dumps({**content, "candidates": [[float("nan")] * 6]}), "its checksum is not that of its content"),
        ("{}", "it is no lanewise waves unit of version 1"),
    ):
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(InputError, match=f"damaged: {why}; delete it"):
            read_state(tmp_path, unit, digest)


def test_a_full_disk_leaves_the_last_checkpoint(
    ready: Ready, result: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_state(tmp_path, start_of(result.unit, result.digest))
    before = path_of(tmp_path, result.unit).read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"cannot be written into the folder .*: No space left on device"):
            work.process(ready, result.unit, tmp_path, 0.0)
    assert path_of(tmp_path, result.unit).read_bytes() == before
    assert os.listdir(tmp_path) == [path_of(tmp_path, result.unit).name]
    assert work.process(ready, result.unit, tmp_path, 0.0).candidates.tobytes() == result.candidates.tobytes()


def changed(result: State, place: int, name: str, value: float) -> State:
    rows = result.candidates.copy()
    rows[name][place] = value
    return replace(result, candidates=rows)


DAMAGES: list[tuple[Callable[[State], State], str]] = [
    (lambda s: replace(s, digest="0" * 64), "it is of another search"),
    (lambda s: replace(s, sky=s.unit.sky[0]), "it has 0 of"),
    (lambda s: replace(s, candidates=np.empty(0, CANDIDATE)), "it has 0 candidates; wanted 1 to 40"),
    (lambda s: changed(s, 3, "significance", np.nan), "significance of candidate 3 is not finite"),
    (lambda s: changed(s, 0, "freq", 61.0), "freq of candidate 0 is 61; wanted 60"),
    (lambda s: changed(s, 0, "count", 9.0), "count of candidate 0 is 9; wanted 0 to"),
    (lambda s: changed(s, 0, "f1dot", 1e-8), "f1dot of candidate 0 is 1e-08"),
    (lambda s: replace(s, candidates=s.candidates[::-1].copy()), "its candidates are not in their order"),
    (lambda s: changed(s, 0, "significance", 99.0), "candidate 0 has the count .* computed again it has"),
    (lambda s: changed(s, 0, "twoF", 99.0), "candidate 0 has the count .* mean 2F 99; computed again it has"),
    (lambda s: changed(s, -1, "delta", 1.5), "its candidates are not in their order|no pixel of the unit"),
]


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
def test_results_are_not_taken_on_trust(
    ready: Ready, result: State, damage: Callable[[State], State], why: str
) -> None:
    validate(ready, result)
    with pytest.raises(ResultError, match=f"work unit 1: its result is refused: .*({why})"):
        validate(ready, damage(result))


def test_a_count_that_is_wrong_is_found(ready: Ready, result: State) -> None:
    """In range, in order, and with the significance that belongs to it: only computing it again tells."""
    rows = result.candidates.copy()
    one = (rows["significance"][0] - rows["significance"][-1]) / max(rows["count"][0] - rows["count"][-1], 1.0)
    step = one or 1.0
    rows["count"][0] += 1.0
    rows["significance"][0] += step
    with pytest.raises(ResultError, match="candidate 0 has the count"):
        validate(ready, replace(result, candidates=rows))


def test_weighted_counts_are_computed_again_too(pattern: str, tmp_path: Path) -> None:
    weighted = a_job(pattern, search=a_search(weighted=True), sky=SKY[:2], most=3000)
    found = search_in_units(weighted, tmp_path / "u", units=2)  # validated on the way
    assert (found.candidates["count"] % 1 != 0).any()


def test_duplicates_are_refused(ready: Ready, result: State) -> None:
    waiting = {result.unit.number: result.unit}
    top = run.accept(ready, result, waiting, np.empty(0, CANDIDATE))
    assert (len(top), waiting) == (40, {})
    with pytest.raises(ResultError, match="work unit 1: its result is refused: it is unknown, or has one already"):
        run.accept(ready, result, waiting, top)


def test_a_unit_whose_result_is_wrong_is_computed_again(
    pattern: str, whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def lying(*arguments: Any) -> Iterator[State]:
        for state in engines.in_process(*arguments):
            seen.append(state.unit.number)
            wrong = state.unit.number == 1 and seen.count(1) <= lies
            yield changed(state, 0, "freq", 1.0) if wrong else state

    monkeypatch.setattr(run, "in_process", lying)
    lies = 1
    assert search_in_units(a_job(pattern), tmp_path / "a", units=3).candidates.tobytes() == whole
    assert seen == [0, 1, 2, 1]
    lies = 9
    with pytest.raises(ResultError, match="work unit 1: its result is refused: freq of candidate 0 is 1"):
        search_in_units(a_job(pattern), tmp_path / "b", units=3)


def test_devices_and_workers(
    pattern: str, ready: Ready, result: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5")
    assert [(d["env"]["CUDA_VISIBLE_DEVICES"], d["resources"]) for d in described_workers(2, True)] == [
        ("3", {"GPU": 1}), ("5", {"GPU": 1})
    ]  # fmt: skip
    assert [d["env"]["CUDA_VISIBLE_DEVICES"] for d in described_workers(3, True)] == ["3", "5", "3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5, 8")
    assert [d["env"]["CUDA_VISIBLE_DEVICES"] for d in described_workers(2, True, (0, 2))] == ["3", "8"]
    assert [d["env"]["CUDA_VISIBLE_DEVICES"] for d in described_workers(3, True, (0, 2))] == ["3", "8", "3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DeviceError, match="this machine has no GPU; wanted --device cpu"):
        described_workers(1, True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5, 8")
    monkeypatch.setattr(known_devices, "place_of", lambda _: stand_in)
    for devices, gpus in ((("cuda", "cuda:2"), (0, 2)), (("cuda:1",), (1,))):
        stand_in = SimpleNamespace(devices=devices)
        assert files.workers_of("cuda:0,2", None, None) == ("cuda", None, gpus)
        assert files.workers_of("cuda:0,2", 1, None) == ("cuda", 1, gpus)
    for devices, said in ((("cuda", "cuda"), "has cuda twice"), (("python",) * 2, "GPUs or the CPU, found python")):
        stand_in = SimpleNamespace(devices=devices)
        with pytest.raises(InputError, match=said):
            files.workers_of("cuda:0*2", None, None)
    with pytest.raises(InputError, match=r"cuda:0\*2 has 2 workers, and --workers is 3; leave one of them out"):
        files.workers_of("cuda:0*2", 3, None)
    with pytest.raises(InputError, match="--scheduler has the workers and their GPUs, found --device cuda:0,2"):
        files.workers_of("cuda:0,2", None, "tcp://host:8786")
    assert files.workers_of("cuda:1", 3, None) == ("cuda:1", 3, ())
    stand_in = SimpleNamespace(devices=("cpu",) * 4)
    assert files.workers_of("cpu*4", None, None) == ("cpu", 4, ())
    assert files.workers_of("cpu*4", 2, None) == ("cpu", 2, ())
    gpus = a_job(pattern, device="cuda")
    assert Workers().line(gpus) == ""
    assert Workers(gpus=(0, 2)).line(gpus) == "2 workers, a GPU each: 3, 8"
    assert Workers(count=1).line(gpus) == "1 worker, a GPU each: 3"
    assert Workers(count=4).line(gpus) == "4 workers, in turn on the GPUs: 3, 5, 8"
    assert Workers(count=3).line(a_job(pattern, device="cpu")) == "3 workers on cpu"
    assert Workers(scheduler="tcp://host:1").line(gpus) == "workers of tcp://host:1"
    assert Workers(gpus=(0, 2)).count == 2
    assert Workers(count=1, gpus=(0, 2)).count == 1
    assert all("resources" not in d and d["nthreads"] == 1 for d in described_workers(3, False))
    with pytest.raises(InputError, match="the device is 'cuda:1', and every worker sees one GPU"):
        search_in_units(a_job(pattern, device="cuda:1"), tmp_path / "g", workers=Workers(count=1))
    assert not (tmp_path / "g").exists()
    with pytest.raises(InputError, match="0 workers requested; wanted at least 1"):
        Workers(count=0)
    with pytest.raises(InputError, match="cannot both be requested"):
        Workers(count=1, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(InputError, match="--scheduler needs --units"):
        search_in_units(a_job(pattern), tmp_path / "u", workers=Workers(scheduler="tcp://127.0.0.1:1"))
    assert a_job(pattern, device="cuda").load().digest == ready.digest  # checkpoints go from device to device
    with pytest.raises(InputError, match="the worker does not see this folder"):
        work.process_remotely(ready.job, dict(ready.configuration), result.unit, str(tmp_path / "none"), 0.0)
    other: dict[str, object] = {**ready.configuration, "threshold": 9.0}
    with pytest.raises(InputError, match=r"than the coordinator: threshold is 4.0 here and 9.0 there"):
        work.process_remotely(ready.job, other, result.unit, str(tmp_path), 0.0)
