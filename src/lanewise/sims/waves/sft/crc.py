"""CRC-64 of SFT files: polynomial 0xD800000000000000, reflected, started with all ones, not
inverted at the end.

A checksum is linear over bits, so that a block is cut into lanes which all advance together, eight
bytes per step ("slicing by 8":
Kounavis and Berry, IEEE Transactions on Computers 57, 2008), and the states of the lanes are folded
at the end: that of a lane, advanced by the length of its neighbour, is combined with the
neighbour's by exclusive or.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

POLYNOMIAL = 0xD800000000000000
START = 0xFFFFFFFFFFFFFFFF
_BYTE = np.uint64(0xFF)
_SHIFTS = tuple(np.uint64(8 * k) for k in range(8))


def crc64(words: Words, state: int = START) -> int:
    """The state after `words` ((n,) uint64, the bytes of the file in little-endian words), which
    continues at `state`.

    All parts of an SFT are multiples of eight bytes: header 48, comment padded, bins of 8.
    """
    if not len(words):
        return state
    # A step costs as much as some hundred words more in a lane's fold: sqrt(n) / 16 steps were
    # fastest for 20 to a million words.
    bits = (len(words) - 1).bit_length()
    steps = 1 << max(bits - 8, 0) // 2
    lanes = 1 << (-(-len(words) // steps) - 1).bit_length()
    # Zeros before the first word leave a state of zero as it is; the state so far is combined with
    # the first word.
    padded = np.zeros(lanes * steps, np.uint64)
    padded[-len(words) :] = words
    padded[-len(words)] ^= np.uint64(state)
    columns = np.ascontiguousarray(padded.reshape(lanes, steps).T)
    table = _advance(0)
    sums = np.zeros(lanes, np.uint64)
    for column in columns:
        sums = _apply(table, sums ^ column)
    power = steps.bit_length() - 1
    while len(sums) > 1:
        sums = _apply(_advance(power), sums[0::2]) ^ sums[1::2]
        power += 1
    return int(sums[0])


def _apply(table: Words, state: Words) -> Words:
    """A linear map of 64-bit states, by its (8, 256) table: one row a byte."""
    result = table[0][state & _BYTE]
    for k in range(1, 8):
        result ^= table[k][(state >> _SHIFTS[k]) & _BYTE]
    return result


@cache
def _advance(power: int) -> Words:
    """The table of "2^power words of zeros follow"."""
    if power == 0:
        return _one_word()
    half = _advance(power - 1)
    return _apply(half, half.ravel()).reshape(8, 256)


def _one_word() -> Words:
    byte = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        byte = np.where(
            byte & np.uint64(1),
            (byte >> np.uint64(1)) ^ np.uint64(POLYNOMIAL),
            byte >> np.uint64(1),
        )
    rows = [byte]
    for _ in range(7):
        rows.append((rows[-1] >> np.uint64(8)) ^ byte[rows[-1] & _BYTE])
    # The first byte of a word has seven more behind it.
    return np.stack(rows[::-1])
