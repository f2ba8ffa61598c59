"""Direct sums in slices: the same bits for any memory, float64 by NumPy, and never more than may be on the device."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.pairwise.slices import PLAN, InSlices
from lanewise.records.arrays import RecordArray
from lanewise.support.errors import ArgumentError, DeviceError

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@lw.record
class Star:
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def pulls(target: Star, source: Star, eps2: lw.f32) -> tuple[lw.vec3, lw.i64]:
    d = source.position - target.position
    others = 0 if lw.same(target, source) else 1
    return source.mass * d * lw.rsqrt(lw.dot(d, d) + eps2) ** 3, lw.i64(others)


@lw.pairwise
def seen(target: Star, source: Star) -> tuple[lw.Count, lw.Any, lw.All]:
    d = source.position - target.position
    near = lw.dot(d, d) < 1.0
    return near, near and not lw.same(target, source), near


@lw.pairwise
def numbered(target: Star, source: Star) -> lw.i32:
    return lw.index_of(source)


@lw.pairwise
def lowest(target: Star, source: Star) -> lw.Min[lw.f32]:
    return source.mass


def stars(count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return Star.array(
        position=rng.normal(size=(count, 3)).astype("f4"), mass=rng.random(count).astype("f4"), device="cpu"
    )


def exactly(x: Any, y: Any, eps2: float) -> np.ndarray:
    a, b, m = (np.asarray(v, np.float64) for v in (x.position, y.position, y.mass))
    d = b[None] - a[:, None]
    return (m[None, :, None] * d / (np.sum(d * d, axis=2) + eps2)[:, :, None] ** 1.5).sum(axis=1)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=12, deadline=None)
@given(st.integers(1, 150), st.integers(1, 150), st.integers(5, 70), st.integers(0, 99), st.booleans())
def test_any_memory_gives_the_same_bits(
    device: str, targets: int, sources: int, group: int, seed: int, same: bool
) -> None:
    x = stars(targets, seed)
    y = x if same else stars(sources, seed + 1)
    least = lw.in_slices(pulls, device=device, group=group).slices(x, y)
    found: list[Any] = []
    for resident in (1, 2, 1000):
        memory = least.nbytes + (resident - least.resident) * y[:group].copy().nbytes
        sliced = lw.in_slices(pulls, memory=max(memory, 1), device=device, group=group)
        assert sliced.slices(x, y).resident == min(resident, least.groups)
        assert sliced.slices(x, y).nbytes <= memory
        found.append(sliced(x, y, 0.01))
    for force, others in found:
        assert force.tobytes() == found[0][0].tobytes()
        assert (others == len(y) - (1 if same else 0)).all()
    np.testing.assert_allclose(found[0][0], exactly(x, y, 0.01), rtol=2e-4, atol=2e-4)
    if least.groups == 1 and device == "cpu":
        one = pulls(x, y, 0.01, plan=PLAN)
        assert one[0].tobytes() == found[0][0].tobytes()


@pytest.mark.parametrize("device", DEVICES)
def test_counts_and_truths(device: str) -> None:
    x = stars(90, 5)
    whole = [np.asarray(v) for v in seen(x, x)]
    for found, wanted in zip(lw.in_slices(seen, device=device, group=20)(x, x), whole, strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("targets", "sources"), [(5, 0), (0, 5), (0, 0)])
def test_nobody(targets: int, sources: int, device: str) -> None:
    """Of no sources all are near, and none is; as in one piece."""
    x, y = stars(targets, 1), stars(sources, 2)
    for kernel, values in ((seen, ()), (pulls, (0.1,))):
        whole = kernel(x, y, *values)
        for found, wanted in zip(lw.in_slices(kernel, device=device, group=3)(x, y, *values), whole, strict=True):
            assert np.array_equal(found, wanted)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)


def test_no_more_lies_there_than_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are counted as they come; those of a pass are gone before the next."""
    alive: list[Any] = []
    sent, most, brought = 0, 0, InSlices._brought

    def counted(self: InSlices, array: RecordArray, number: int) -> RecordArray:
        nonlocal sent, most
        import gc
        import weakref

        gc.collect()
        copy = brought(self, array, number)
        size = copy.nbytes
        alive.append((weakref.ref(copy), size))
        sent += size
        most = max(most, sum(s for r, s in alive if r() is not None))
        return copy

    monkeypatch.setattr(InSlices, "_brought", counted)
    x = stars(1000, 7)
    for memory in (8_000, 11_000, 13_000, 60_000):
        alive.clear()
        sent = most = 0
        sliced = lw.in_slices(pulls, memory=memory, device="cpu", group=100)
        sliced(x, x, 0.1)
        said = sliced.slices(x, x)
        assert said.sent == sent
        assert most <= said.nbytes <= memory


def test_what_is_said() -> None:
    x = stars(1000, 8)
    said = lw.in_slices(pulls, memory=9_000, device="cpu", group=100).explain(x, x)
    assert said == (
        "pulls: 1,000 targets and 1,000 sources on cpu, in slices\n"
        "slices: 10 groups of 100 sources, 1 at a time, 10 passes over the targets\n"
        "memory: 7,872 bytes at most; 193,600 bytes go to the device\n"
        "bits: group sums are added in a fixed order, so the bits do not depend on memory=; a single call keeps "
        "one running sum and rounds differently"
    )
    assert "each sum is that of a call in one piece" in lw.in_slices(pulls, device="cpu").explain(x, x)


def test_refusals() -> None:
    x = stars(1000, 9)
    with pytest.raises(DeviceError, match="and may have 100; allow more, or a smaller group"):
        lw.in_slices(pulls, memory=100, device="cpu").slices(x, x)
    with pytest.raises(ArgumentError, match="counts from the beginning of a slice"):
        lw.in_slices(numbered, device="cpu")(x, x)
    with pytest.raises(ArgumentError, match="is found over all sources at once"):
        lw.in_slices(lowest, device="cpu")(x, x)
    with pytest.raises(ArgumentError, match="different parts of one array"):
        lw.in_slices(pulls, device="cpu")(x[:100], x, 0.1)
    with pytest.raises(ArgumentError, match="a search has to see all sources at once"):
        lw.in_slices(pulls.using(lw.AllPairs(radius=1.0)), device="cpu")
    with pytest.raises(ArgumentError, match=r"in_slices\(memory=0\): wanted a positive integer"):
        lw.in_slices(pulls, memory=0)


@pytest.mark.parametrize("group", [20, 200])
def test_options_of_a_call_in_one_piece_are_refused(group: int) -> None:
    x = stars(90, 9)
    near = lw.in_slices(seen, device="cpu", group=group)
    with pytest.raises(
        ArgumentError,
        match=r"^seen in slices: found plan=Plan\(.*; slices have the plan lw\.Plan\(reciprocity='off'\), which .*: leave plan out$",
    ):
        near(x, x, plan=lw.Plan(block=64))
    places = (np.zeros(90, "i8"), np.zeros(90, bool), np.zeros(90, bool))
    with pytest.raises(
        ArgumentError,
        match=r"(?s)^seen in slices: found out=.*; results .* new arrays of the host: leave out= out, and copy",
    ):
        near(x, x, out=places)
    assert len(near(x, x, out=None, plan=None)) == 3


def test_of_a_file(tmp_path: Any) -> None:
    """Bodies in a file that is mapped to memory."""
    raw = np.random.default_rng(1).random((300, 4)).astype("f4")
    raw.tofile(tmp_path / "stars")
    mapped = np.memmap(tmp_path / "stars", np.dtype([("position", "f4", 3), ("mass", "f4")]), mode="c")
    x = Star.array(mapped, copy=False, device="cpu")
    force, _ = lw.in_slices(pulls, memory=6_000, device="cpu", group=50)(x, x, 0.1)
    np.testing.assert_allclose(force, exactly(x, x, 0.1), rtol=2e-4, atol=2e-4)
