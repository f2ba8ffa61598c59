"""Local arrays: zeroed, indexed at run time, per element; also in loops and of every scalar type."""

from __future__ import annotations

import numpy as np

from tests.frontend.ways import agree
from tests.written import module

N = np.arange(9, dtype=np.int32)


def test_histogram_and_prefix_sums() -> None:
    kernel = module("""
        BINS = 5

        @lw.elementwise
        def kernel(n: lw.i32) -> tuple[lw.i32, lw.i32, lw.f32]:
            counts = lw.zeros(lw.i32, BINS)
            for k in range(n):
                counts[k * k % BINS] += 1
            counts[-1] += 100
            for k in range(1, BINS):
                counts[k] = counts[k] + counts[k - 1]
            weights = lw.zeros(lw.f32, 2 * BINS)
            weights[n] = 0.5
            weights[n // 2] += 1
            total = 0.0
            for k in range(10):
                total += weights[k] * (k + 1)
            return counts[4], counts[2], total
    """).kernel
    got = agree(kernel, n=N)

    def expected(n: int) -> tuple[int, int]:
        counts = np.zeros(5, int)
        for k in range(n):
            counts[k * k % 5] += 1
        counts[-1] += 100
        sums = np.cumsum(counts)
        return int(sums[4]), int(sums[2])

    assert list(zip(got[0].tolist(), got[1].tolist(), strict=True)) == [expected(int(n)) for n in N]


def test_an_array_declared_in_a_loop_is_zero_again() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(n: lw.i32) -> lw.i32:
            total = 0
            for k in range(3):
                a = lw.zeros(lw.i32, 4)
                a[k] += n
                for m in range(4):
                    total += a[m]
            return total
    """).kernel
    assert agree(kernel, n=N)[0].tolist() == (3 * N).tolist()


def test_arrays_of_every_type() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(n: lw.i32) -> tuple[lw.bool, lw.u32, lw.i64, lw.f64, lw.f32]:
            flags = lw.zeros(lw.bool, 3)
            flags[1] = n > 4
            keys = lw.zeros(lw.u32, 3)
            keys[2] = lw.u32(n) * 3000000000
            wide = lw.zeros(lw.i64, 2)
            wide[0] = n
            wide[0] <<= 33
            reals = lw.zeros(lw.f64, 3)
            reals[n % 3] = 0.1
            singles = lw.zeros(lw.f32, 3)
            singles[lw.clamp(n, 0, 2)] = 0.1
            return flags[1] or flags[0], keys[2], wide[0], reals[0], singles[2]
    """).kernel
    got = agree(kernel, n=N)
    assert got[0].tolist() == (N > 4).tolist()
    assert got[1].tolist() == [int(n) * 3000000000 % 2**32 for n in N]
    assert got[2].tolist() == [int(n) << 33 for n in N]
    assert got[3].tolist() == [0.1 if n % 3 == 0 else 0.0 for n in N]
    assert got[4].tolist() == [float(np.float32(0.1)) if n >= 2 else 0.0 for n in N]


def test_insertion_sort() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(a: lw.vec4) -> lw.vec4:
            s = lw.zeros(lw.f32, 4)
            s[0], s[1], s[2], s[3] = a
            for k in range(1, 4):
                value = s[k]
                j = k - 1
                while j >= 0 and s[j] > value:
                    s[j + 1] = s[j]
                    j -= 1
                s[j + 1] = value
            return lw.vec4(s[0], s[1], s[2], s[3])
    """).kernel
    a = np.random.default_rng(3).normal(size=(20, 4)).astype(np.float32)
    np.testing.assert_array_equal(agree(kernel, a=a)[0], np.sort(a, axis=1))
