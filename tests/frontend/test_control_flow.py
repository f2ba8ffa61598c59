"""Branches, loops, early returns, and `and`/`or` that leave their right side alone."""

from __future__ import annotations

import numpy as np

from tests.frontend.ways import agree
from tests.written import module

N = np.arange(-3, 12, dtype=np.int32)


def test_branches_and_early_returns() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(n: lw.i32) -> tuple[lw.i32, lw.i32]:
            if n < 0:
                return -1, 0
            if n == 0:
                kind = 10
            elif n % 2 == 0:
                kind = 20
                if n > 6:
                    return kind, n
            else:
                kind = 30 if n > 4 else 40
            pass
            return kind, n * 2
    """).kernel
    got = agree(kernel, n=N)

    def expected(n: int) -> tuple[int, int]:
        if n < 0:
            return -1, 0
        kind = 10 if n == 0 else 20 if n % 2 == 0 else 30 if n > 4 else 40
        return (kind, n) if kind == 20 and n > 6 else (kind, n * 2)

    assert list(zip(got[0].tolist(), got[1].tolist(), strict=True)) == [expected(int(n)) for n in N]


def test_nested_loops_with_break_and_continue() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(n: lw.i32) -> tuple[lw.i32, lw.i32]:
            steps = 0
            for i in range(10):
                if i == n:
                    continue
                for j in range(i, 2 * i + 1, 2):
                    if j > 7:
                        break
                    if (i + j) % 3 == 0:
                        continue
                    steps += i * j
                if steps > 90:
                    break
                steps += 1
            down = 0
            for k in range(n, -4, -3):
                down = down * 10 + k
            return steps, down
    """).kernel
    got = agree(kernel, n=N)

    def expected(n: int) -> int:
        steps = 0
        for i in range(10):
            if i == n:
                continue
            for j in range(i, 2 * i + 1, 2):
                if j > 7:
                    break
                if (i + j) % 3 == 0:
                    continue
                steps += i * j
            if steps > 90:
                break
            steps += 1
        return steps

    assert got[0].tolist() == [expected(int(n)) for n in N]


def test_while_and_collatz() -> None:
    kernel = module("""
        @lw.function
        def next_one(n):
            return n // 2 if n % 2 == 0 else 3 * n + 1

        @lw.elementwise
        def kernel(n: lw.i64) -> tuple[lw.i32, lw.i64]:
            steps = 0
            top = n
            while n > 1 and steps < 500:
                n = next_one(n)
                top = lw.max(top, n)
                steps += 1
            searched = 0
            while next_one(searched) < 40:
                searched += 3
                if searched % 2 == 0:
                    continue
                searched += 1
            return steps, top + searched
    """).kernel
    got = agree(kernel, n=np.array([1, 6, 7, 27, 97]))
    assert got[0].tolist() == [0, 8, 16, 111, 118]


def test_endless_loop_that_returns() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(n: lw.i32) -> lw.i32:
            k = 0
            while True:
                k += 1
                if k * k > n:
                    return k
    """).kernel
    assert agree(kernel, n=np.array([0, 3, 4, 99, 100], np.int32))[0].tolist() == [1, 2, 3, 10, 11]


def test_the_bounds_of_range_are_computed_once() -> None:
    kernel = module("""
        @lw.elementwise
        def kernel(n: lw.i32) -> tuple[lw.i32, lw.i64]:
            count = 0
            for i in range(n):
                n = n + 5
                count += 1
            wide: lw.i64 = 0
            for i in range(lw.u32(3)):
                wide += i
            return count, wide
    """).kernel
    assert agree(kernel, n=N)[0].tolist() == [max(int(n), 0) for n in N]


def test_logic_evaluates_its_right_side_only_when_needed() -> None:
    """An index out of bounds would be an error in the interpreter, an endless helper would never return."""
    kernel = module("""
        @lw.function
        def first_above(start, limit):
            k = start
            while k <= limit:
                k += 1
            return k

        @lw.function
        def counts_to(n):
            k = 0
            while k != n:
                k += 1
            return True

        @lw.elementwise
        def kernel(n: lw.i32) -> tuple[lw.bool, lw.bool, lw.bool, lw.bool, lw.i32, lw.i32]:
            a = lw.zeros(lw.i32, 4)
            a[1] = 1
            inside = 0 <= n and n < 4 and a[n] == 1
            outside = n < 0 or n >= 4 or a[n] == 0
            chained = 0 <= n < 4 > a[lw.clamp(n, 0, 3)] == a[1]
            helpers = n >= 0 and counts_to(n) or first_above(n, 3) == 4
            guarded = a[n] if 0 <= n < 4 else -1
            lazily = first_above(0, n) if n >= 0 and counts_to(n) else n
            return inside, outside, chained, helpers, guarded, lazily
    """).kernel
    got = agree(kernel, n=N)
    assert got[0].tolist() == [bool(n == 1) for n in N]
    assert got[1].tolist() == [bool(n != 1) for n in N]
    assert got[2].tolist() == [bool(n == 1) for n in N]
    assert got[4].tolist() == [int(n == 1) if 0 <= n < 4 else -1 for n in N]
    assert got[5].tolist() == [int(n) + 1 if n >= 0 else int(n) for n in N]


def test_chained_comparisons_compute_the_middle_once_and_the_end_only_when_needed() -> None:
    kernel = module("""
        @lw.function
        def half(n):
            return n // 2

        @lw.elementwise
        def kernel(n: lw.i32) -> tuple[lw.bool, lw.bool, lw.bool]:
            return 0 < half(n) < half(n + 3) <= 4, -1 < n <= 2 < 3, 1 < n != 5 <= 7
    """).kernel
    got = agree(kernel, n=N)
    assert got[0].tolist() == [0 < n // 2 < (n + 3) // 2 <= 4 for n in N.tolist()]
    assert got[2].tolist() == [1 < n != 5 <= 7 for n in N.tolist()]


def test_conditional_expressions_of_vectors() -> None:
    kernel = module("""
        @lw.function
        def length_of(v):
            return lw.dot(v, v)

        @lw.elementwise
        def kernel(n: lw.i32, v: lw.vec2) -> tuple[lw.vec2, lw.vec2, lw.vec2]:
            a = v if n > 2 else -v
            b = v if n > 4 else length_of(v) * 2
            c = 0.5 if n > 4 else v * 2
            return a, b, c
    """).kernel
    v = np.stack([N, N[::-1]], axis=1).astype(np.float32)
    got = agree(kernel, n=N, v=v)
    np.testing.assert_array_equal(got[0], np.where(N[:, None] > 2, v, -v))
    np.testing.assert_array_equal(got[1], np.where(N[:, None] > 4, v, (v * v).sum(1, keepdims=True) * 2))
    np.testing.assert_array_equal(got[2], np.where(N[:, None] > 4, np.float32(0.5), v * 2))
