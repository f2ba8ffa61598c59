"""What kernels of exact sums on a CPU begin with: `carried` adds a piece to a word, `added` any
float, `added_sum` a float64 that is a sum of floats; `left_over` is what an addition loses, and
`nearest` rounds the sum of two float64 once.
"""

from __future__ import annotations

from functools import cache

from lanewise.language.exact_sums import ABOVE, BELOW, F32, FORMATS, NAN

# A float64 counts from 2^-1075, words of float32 from 2^-150.
LOWER = 925
TEXT = """def carried(words, count, element, word, piece):  # what leaves a word that wraps goes two words higher
    while True:
        words[count * uint64({words}) + uint64(word)] = 1
        place = count * uint64(word) + element
        before = words[place]
        after = int64(uint64(before) + uint64(piece))
        words[place] = after
        if (before ^ after) & (piece ^ after) >= 0:
            return
        piece = int64(-1) if piece < 0 else int64(1)
        word += 2


def added(words, count, element, bits):  # any value at all
    exponent, rest = int64(bits >> {bits}({fraction})) & int64({most_exponent}), int64(bits) & int64({rest})
    if exponent == {most_exponent}:
        words[count * uint64({words}) + uint64({words} - 1)] = 1
        words[count * uint64({words} - 1) + element] |= {nan} if rest else {below} if bits < 0 else {above}
        return
    number, place = rest | int64({one}) if exponent else rest, exponent if exponent else int64(1)
    word, up, sign = place >> int64(5), place & int64(31), int64(bits) >> int64(63)
    low = int64(uint64(number) << uint64(up)) & int64(0xFFFFFFFF)
    high = number >> (int64(32) - up)
    if low:
        carried(words, count, element, word, (low ^ sign) - sign)
    if high:
        carried(words, count, element, word + 1, (high ^ sign) - sign)


def added_sum(words, count, element, value):  # a float64 that is a whole number of units
    pattern = float64(value).view(int64)
    exponent, number = pattern >> int64(52) & int64(2047), pattern & int64(0xFFFFFFFFFFFFF)
    if exponent:
        number |= int64(1) << int64(52)
    place = (exponent if exponent else int64(1)) - int64({lower})
    if place < 0:
        number, place = number >> -place, int64(0)
    word, up, sign = place >> int64(5), place & int64(31), pattern >> int64(63)
    low, high = int64(uint64(number & int64(0xFFFFFFFF)) << uint64(up)), number >> int64(32) << up
    if low:
        carried(words, count, element, word, (low ^ sign) - sign)
    if high:
        carried(words, count, element, word + 1, (high ^ sign) - sign)


"""
LEFT_OVER = """def left_over(a, b):  # what the sum of two float64 loses (D. E. Knuth), which is a float64
    total = a + b
    back = total - a
    return (a - (total - back)) + (b - back)


"""
NEAREST = """def nearest(large, near, odd, odd_sum):
    return large + near


"""
# What was rounded to an odd number may be rounded again to fewer bits.
NEAREST_SINGLE = """def nearest(large, near, odd, odd_sum):
    sum_, lost = large + near, left_over(large, near)
    pattern = float64(sum_).view(int64)
    if lost != 0.0 and not pattern & int64(1):
        odd[0] = pattern + (int64(1) if (lost > 0.0) == (sum_ > 0.0) else int64(-1))
        sum_ = odd_sum[0]
    return float32(sum_)


"""


@cache
def words_text(name: str) -> str:
    """The text for a type of floats, by NumPy's name of it."""
    kind = FORMATS[name]
    words = TEXT.format(
        words=kind.words,
        bits=kind.bits.name[1:],
        fraction=kind.fraction,
        most_exponent=kind.most,
        rest=(1 << kind.fraction) - 1,
        one=1 << kind.fraction,
        nan=NAN,
        above=ABOVE,
        below=BELOW,
        lower=LOWER if kind == F32 else 0,
    )
    return words + LEFT_OVER + (NEAREST_SINGLE if kind == F32 else NEAREST)
