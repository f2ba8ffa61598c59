"""What a threadwise call takes, and what it says of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw


@lw.threadwise
def scale(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], by: lw.f32):
    c[y, x] = by * a[y, x]


@lw.threadwise
def fill(i: lw.index, c: lw.Array1[lw.i32]):
    c[i] = i


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def read_only(*shape: int) -> Any:
    array = zeros(*shape)
    array.flags.writeable = False
    return array


WHAT = "a contiguous array of NumPy or CuPy with 2 dimensions of float32"
ONCE = np.zeros((2, 4, 4), np.float32)
REFUSED: dict[str, tuple[Any, ...]] = {
    "a list": ([[1.0]], zeros(4, 4), f"scale: 'a' must be {WHAT}, found list [[1.0]]"),
    "a number": (1.0, zeros(4, 4), f"scale: 'a' must be {WHAT}, found float 1.0"),
    "a masked array": (np.ma.zeros((4, 4), np.float32), zeros(4, 4), f"scale: 'a' must be {WHAT}, found a masked one; pass .filled(value) of it"),
    "another type": (
        zeros(4, 4, dtype=np.float64), zeros(4, 4),
        f"scale: 'a' must be {WHAT}, found one of float64 with shape (4, 4); nothing is converted, because arrays are passed as they are: "
        "make it one of float32",
    ),
    "another type of what is written": (
        zeros(4, 4), zeros(4, 4, dtype=np.int32),
        f"scale: 'c' must be {WHAT}, found one of int32 with shape (4, 4); nothing is converted, because a kernel writes into it: "
        "make it one of float32",
    ),
    "another order of bytes": (
        zeros(4, 4, dtype=">f4"), zeros(4, 4),
        f"scale: 'a' must be {WHAT}, found one of >f4 with shape (4, 4); nothing is converted, because arrays are passed as they are: "
        "make it one of float32",
    ),
    "another number of dimensions": (
        zeros(4), zeros(4, 4),
        f"scale: 'a' must be {WHAT}, found one of float32 with shape (4,); reshape it, or declare it as lw.Array1[lw.f32]",
    ),
    "a part of an array": (
        zeros(4, 8)[:, ::2], zeros(4, 4),
        f"scale: 'a' must be {WHAT}, found one of float32 with shape (4, 4), which is not contiguous; pass np.ascontiguousarray(...) of it, "
        "which copies it",
    ),
    "a transposed result": (
        zeros(4, 4), zeros(4, 5).T,
        f"scale: 'c' must be {WHAT}, found one of float32 with shape (5, 4), which is not contiguous; pass np.ascontiguousarray(...) of it, "
        "and copy the result back",
    ),
    "a result that is read-only": (zeros(4, 4), read_only(4, 4), "scale: 'c' is written by the kernel, and this array is read-only"),
    "the same array twice": (ONCE[0], ONCE[0], "scale: 'c' is written, and shares memory with 'a'; give it its own memory"),
    "overlapping arrays": (
        ONCE.reshape(8, 4)[:5], ONCE.reshape(8, 4)[4:], "scale: 'c' is written, and shares memory with 'a'; give it its own memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_arrays_that_do_not_fit_are_refused(what: str) -> None:
    a, c, message = REFUSED[what]
    with pytest.raises(lw.ArgumentError) as error:
        scale(a, c, 1.0, grid=(4, 4))
    assert str(error.value) == message


def test_neighbours_in_memory_are_apart() -> None:
    ONCE[0] = 3
    scale(ONCE[0], ONCE[1], 2.0, grid=(4, 4))
    assert (ONCE[1] == 6).all()


def test_what_is_only_read_may_be_read_only_and_shared() -> None:
    @lw.threadwise
    def add(i: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
        c[i] = a[i] + b[i]

    a, c = np.arange(5, dtype=np.float32), zeros(5)
    a.flags.writeable = False
    for _ in range(2):
        add(a, a, c, grid=5)
    np.testing.assert_array_equal(c, 2 * a)


TWO = "grid= says how many values (y, x) have: wanted grid=(n, n), 2 integers from 0 on"
GRIDS: dict[str, tuple[Any, str]] = {
    "a number for two": (16, f"scale: {TWO}, found 16"),
    "three for two": ((1, 2, 3), f"scale: {TWO}, found (1, 2, 3)"),
    "negative": ((4, -4), f"scale: {TWO}, found (4, -4)"),
    "floats": ((4.0, 4.0), f"scale: {TWO}, found (4.0, 4.0)"),
    "booleans": ((True, True), f"scale: {TWO}, found (True, True)"),
    "more than a call counts": (
        (2**40, 2**40),
        "scale: grid=(1099511627776, 1099511627776) has 1,208,925,819,614,629,174,706,176 points; 64 bits count up to 4,611,686,018,427,387,904",
    ),
    "a text": ("44", f"scale: {TWO}, found '44'"),
}


@pytest.mark.parametrize("what", GRIDS)
def test_grids_that_do_not_fit_are_refused(what: str) -> None:
    grid, message = GRIDS[what]
    with pytest.raises(lw.ArgumentError) as error:
        scale(zeros(4, 4), zeros(4, 4), 1.0, grid=grid)
    assert str(error.value) == message


@pytest.mark.parametrize("grid", [7, (7,), [7], np.int64(7), (np.int32(7),)])
def test_grids_of_one_index(grid: Any) -> None:
    c = zeros(9, dtype=np.int32)
    for _ in range(2):
        c[:] = -1
        fill(c, grid=grid)
        np.testing.assert_array_equal(c, [0, 1, 2, 3, 4, 5, 6, -1, -1])
    with pytest.raises(lw.ArgumentError, match="fill: grid= says how many values i has: wanted grid=len"):
        fill(c, grid=(3, 3))


def test_what_is_missing_or_too_much_is_said() -> None:
    a, c = zeros(4, 4), zeros(4, 4)
    for call, message in (
        (lambda: scale(a, c, 1.0), "scale needs grid; its parameters are a, c, by, grid"),
        (lambda: scale(a, c, grid=(4, 4)), "scale needs by; its parameters are a, c, by, grid"),
        (lambda: scale(a, c, 1.0, (4, 4)), "scale takes 3 arguments (a, c, by), and grid= by keyword, found 4"),
        (lambda: scale(a, c, 1.0, grid=(4, 4), wide=3), "scale has no parameter 'wide'; its parameters are a, c, by, grid"),
        (lambda: scale(a, c, a, grid=(4, 4)), "scale: 'by' must be one f32 for all, found an array of float32 with shape (4, 4)"),
        (lambda: scale(a, c, 1.0, grid=(4, 4), out=c), "scale has 0 results: wanted no out, found 1"),
    ):  # fmt: skip
        with pytest.raises(lw.ArgumentError) as error:
            call()
        assert str(error.value) == message


def test_arrays_of_numpy_stay_on_the_cpu_whatever_the_default_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.patterns.threadwise import arguments

    monkeypatch.setattr(arguments, "default_device", lambda: "cuda")
    assert scale.compile(zeros(2, 2), zeros(2, 2), 1.0, grid=(2, 2)).executable.device == "cpu"


def test_annotations_are_no_arrays() -> None:
    with pytest.raises(lw.ArgumentError, match=r"lw.Array2 is an annotation; a call takes arrays of NumPy or CuPy"):
        lw.Array2()
    assert repr(lw.index) == "lanewise.index"


def test_a_plan_with_another_device_is_refused() -> None:
    with pytest.raises(lw.PlanError, match="only a GPU divides"):
        scale(zeros(4, 4), zeros(4, 4), 1.0, grid=(4, 4), plan=lw.Plan(parts=2))


def test_type_checkers_accept_kernels(tmp_path: Any) -> None:
    """Names, indices, assignments in place, shapes and calls, as a strict checker sees them."""
    import shutil
    import subprocess
    import sys
    from pathlib import Path

    pyright = shutil.which("pyright") or str(Path(sys.executable).parent / "pyright")
    if not Path(pyright).exists():
        pytest.skip("pyright is not installed")
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nimport lanewise as lw\n\n\n"
        "@lw.threadwise\n"
        "def kernel(z: lw.index, y: lw.index, x: lw.index, a: lw.Array2[lw.f32], v: lw.Array1[lw.i32], c: lw.Array3[lw.f64]) -> None:\n"
        "    m, n = a.shape\n"
        "    s = 0.0\n"
        "    for k in range(a.shape[1]):\n"
        "        s += a[y, k] * v[k]\n"
        "    if x < len(v) and m < n:\n"
        "        c[z, y, x] += s\n"
        "    c[z, y, x] = s\n\n\n"
        "kernel(np.zeros((2, 2), np.float32), np.zeros(2, np.int32), np.zeros((2, 2, 2)), grid=(2, 2, 2))\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [pyright, "--pythonpath", sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**__import__("os").environ, "PYTHONPATH": str(Path(lw.__file__).parent.parent)},
    )  # fmt: skip
    assert "0 errors" in done.stdout, done.stdout
