"""Compaction: NumPy's boolean index is the oracle, on both devices and for records in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import lanewise as lw
from lanewise.primitives import compaction, mask_count, record_moves
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import ArgumentError

DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu"]
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoSoA(8), lw.SoAoAS()]


def on(device: str, array: Any, mask: Any) -> Any:
    if device == "cpu":
        return lw.compact(array, mask)
    import cupy

    return lw.compact(cupy.asarray(array), cupy.asarray(mask)).get()


@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
def test_rows_are_those_of_a_boolean_index(device: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["f4", "f8", "i2", "u1", "?", "c16", "f2"]))
    shape = data.draw(st.sampled_from([(), (3,), (2, 2), (0,), (8,)]))
    count = data.draw(st.integers(0, 40) | st.sampled_from([4096, 16_384, 16_385]))
    rng = np.random.default_rng(count)
    array = (rng.random((count, *shape)) * 100).astype(dtype)
    mask = rng.random(count) < data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    result = on(device, array, mask)
    assert result.dtype == array.dtype
    assert result.shape == array[mask].shape
    assert result.tobytes() == array[mask].tobytes()


@pytest.mark.parametrize("device", DEVICES)
@given(mask=nps.arrays(bool, st.integers(0, 100)), skipped=st.integers(0, 5))
def test_arrays_may_begin_anywhere(device: str, mask: Any, skipped: int) -> None:
    array = np.arange(len(mask) + skipped, dtype=np.int32)
    if device == "cuda":
        import cupy

        whole = cupy.asarray(np.concatenate([np.zeros(skipped, bool), mask]))
        assert (
            lw.compact(cupy.asarray(array)[skipped:], whole[skipped:]).get().tolist() == array[skipped:][mask].tolist()
        )
    else:
        assert lw.compact(array[skipped:], mask).tolist() == array[skipped:][mask].tolist()


@given(data=st.data())
def test_masks_that_keep_little(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 60_000))
    mask = np.zeros(count, bool)
    mask[data.draw(st.lists(st.integers(0, count - 1), max_size=50))] = True
    begin, beyond = sorted(data.draw(st.tuples(st.integers(0, count), st.integers(0, count))))
    mask[begin : min(beyond, begin + data.draw(st.integers(0, 3_000)))] = True  # some tiles keep little, others much
    for array in (np.arange(count, dtype=np.float32), np.arange(3 * count, dtype=np.int16).reshape(count, 3)):
        assert lw.compact(array, mask).tobytes() == array[mask].tobytes()


@lw.record
class Particle:
    position: lw.vec3
    cell: lw.i32
    energy: lw.f64


@pytest.mark.parametrize("device", [*DEVICES, "python"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_records_of_every_layout(device: str, layout: lw.Layout) -> None:
    rng, n = np.random.default_rng(4), 300
    fields = {"position": rng.random((n, 3), np.float32), "cell": np.arange(n, dtype=np.int32), "energy": rng.random(n)}
    particles = Particle.array(**fields, layout=layout, device=device)
    mask = rng.random(n) < 0.4
    if device == "cuda":
        import cupy

        kept = lw.compact(particles, cupy.asarray(mask))
    else:
        kept = lw.compact(particles, mask)
    assert (kept.layout, kept.device, len(kept)) == (layout, device, mask.sum())
    assert type(kept[0]) is type(particles[0])
    for name, values in kept.numpy().items():
        assert values.tolist() == fields[name][mask].tolist()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_many_records_of_every_layout(layout: lw.Layout) -> None:
    """More than NumPy's indexing moves, which threads share, with blocks that begin and end anywhere."""
    rng, n = np.random.default_rng(4), 2 * record_moves.FEW + 2_011
    fields = {"position": rng.random((n, 3), np.float32), "cell": np.arange(n, dtype=np.int32), "energy": rng.random(n)}
    particles = Particle.array(**fields, layout=layout, device="cpu")
    mask = rng.random(n) < 0.8
    kept = lw.compact(particles, mask)
    for name, values in kept.numpy().items():
        assert values.tobytes() == fields[name][mask].tobytes()


REFUSED: list[tuple[Any, Any, str]] = [
    (np.ones(3), np.ones(2, bool), "the mask has 2 elements, and the array 3; one for each is wanted"),
    (np.ones(3), np.ones(3), "compact: the mask must be a contiguous array of NumPy or CuPy of shape (n,) of bool"),
    (np.ones(3), [True] * 3, "found [True, True, True]"),
    ([1.0], np.ones(1, bool), "with at least one axis, or an array of records, found [1.0]"),
    (
        np.ones((4, 2)).T,
        np.ones(2, bool),
        "found one of float64 with shape (2, 4) on the host, which is not contiguous",
    ),
    (np.arange(6)[::2], np.ones(3, bool), "which is not contiguous; pass np.ascontiguousarray(...) of it"),
    (np.array([None]), np.ones(1, bool), "found one of object"),
    (np.ma.masked_array([1.0]), np.ones(1, bool), "compact: the array must be"),
]


@pytest.mark.parametrize(("array", "mask", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(array: Any, mask: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        lw.compact(array, mask)
    assert text in str(error.value)


def test_records_that_are_all_left_out() -> None:
    for count in (2, 0):
        assert len(lw.compact(Particle.zeros(count), np.zeros(count, bool))) == 0


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.SoAoAS()], ids=str)
def test_views_of_records(layout: lw.Layout) -> None:
    particles = Particle.array(position=np.zeros((9, 3)), cell=np.arange(9), energy=np.arange(9.0), layout=layout)
    kept = lw.compact(particles[1:8:2], np.array([True, False, True, True]))
    assert (kept.layout, kept.cell.tolist(), kept.energy.tolist()) == (layout, [1, 5, 7], [1.0, 5.0, 7.0])


def test_the_texts_compile_for_a_gpu() -> None:
    for wide in (True, False):
        compile_cubin(mask_count.count_text(wide=wide), "mask_count", "sm_90")
    compile_cubin(compaction.text_of(16, 3), "compaction", "sm_90")


MANY = 5000  # records: pieces of a block of threads, and blocks of a layout that are not full
OF_BLOCKS = lw.SoAoAS((("position", "cell"), ("energy",)))


@pytest.mark.parametrize("layout", [*LAYOUTS, lw.AoAS(16), OF_BLOCKS, lw.AoSoA(1)], ids=str)
@pytest.mark.parametrize("part", [slice(None), slice(8, None), slice(3, 4000), slice(1, None, 3)], ids=str)
def test_threads_move_what_numpy_moves(layout: lw.Layout, part: slice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above some thousand records they share the work, below that NumPy's own indexing does it: the same bytes."""
    rng = np.random.default_rng(7)
    fields = {"position": rng.random((MANY, 3), "f4"), "cell": np.arange(MANY, dtype="i4"), "energy": rng.random(MANY)}
    particles = Particle.array(**fields, layout=layout, device="cpu")[part]
    mask, order = rng.random(len(particles)) < 0.6, rng.integers(-len(particles), len(particles), 2 * MANY)
    few = particles[mask], particles[order], lw.compact(particles, mask)
    monkeypatch.setattr(record_moves, "FEW", 1)
    for one, other, rows in zip(
        few, (particles[mask], particles[order], lw.compact(particles, mask)), (mask, order, mask), strict=True
    ):
        for name, values in other.numpy().items():
            assert values.tobytes() == fields[name][part][rows].tobytes()
            assert values.tobytes() == one.numpy()[name].tobytes()
    own = particles.copy()
    assert own.compact(mask) == mask.sum()
    assert own.cell.tolist() == fields["cell"][part][mask].tolist()
    own.append(particles[:2])
    assert own.cell.tolist() == [*fields["cell"][part][mask].tolist(), *fields["cell"][part][:2].tolist()]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [*range(1, 18), 40, 16_384 - 3, 16_384 + 5, 2 * 16_384 + 7])
def test_few_that_are_kept_may_be_the_last(device: str, count: int) -> None:
    """A mask that keeps little is looked at in words of eight: the elements behind the last whole word count, too."""
    array = np.arange(count, dtype=np.int32) + 1
    for last in range(min(count, 9)):
        for more in ((), (0,), (count // 2,)):
            mask = np.zeros(count, bool)
            mask[[count - 1 - last, *more]] = True
            assert on(device, array, mask).tolist() == array[mask].tolist()
