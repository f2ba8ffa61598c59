"""The sums of floats that kernels scatter to: words next to an array while a kernel runs, and the
rounding of them after it.

Words become floats on a CPU by a loop over the planes that are used, on a GPU by a thread for each
element.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.language import exact_sums
from lanewise.language.target import target_of
from lanewise.primitives import own_sums
from lanewise.runtime import cpu
from lanewise.runtime.device import WrittenKernel, get_device
from lanewise.runtime.memory import address, allocate


def words_for(array: Any, device: str) -> Any:
    """Words for the elements of an array of float32 or float64, all zero.

    Raises `DeviceError` where there is no room.
    """
    kind = exact_sums.FORMATS[array.dtype.name]
    target = target_of(device)
    length = (
        exact_sums.length_on_host if target.compiled and target.host_memory else exact_sums.length
    )
    nbytes = 8 * length(kind, int(array.size))
    return allocate(device, nbytes, purpose(kind)).view(np.int64)


def purpose(kind: exact_sums.FloatFormat) -> str:
    """What words are for, in errors about memory."""
    return f"an exact sum of {kind.name}, which takes {8 * kind.words} bytes per element,"


def close(words: Any, array: Any, device: str) -> None:
    """Add the words to the elements of an array in one row, each rounded once, and make them zero
    again.
    """
    if not array.size:
        return
    if not isinstance(array, np.ndarray):
        close_on_gpu(words, array, device)
    elif not target_of(device).compiled:
        kind = exact_sums.FORMATS[array.dtype.name]
        for n in range(array.size):
            array[n] = exact_sums.rounded(kind, words, n, array[n])
        words[:] = 0
    else:
        own_sums.finish(words, array)
        kind = exact_sums.FORMATS[array.dtype.name]
        planes = own_sums.planes_of(kind, words)
        if own_sums.is_used(kind, planes):
            close_on_host(planes, array)


# ------------------------------------------------------------ on a CPU

GRAIN = 1_024  # elements
HOST_TEXT = """WORDS, LIMBS, SIGNIFICAND, MOST = {words}, {words} - 1, {significand}, {most}


def add(words, word, piece):  # words of 64 bits, one for every 2^32
    while piece:
        before = words[word]
        after = int64(uint64(before) + uint64(piece))
        words[word] = after
        if (before ^ after) & (piece ^ after) >= 0:
            return
        piece = int64(-1) if piece < 0 else int64(1)
        word += 2


def add_float(words, bits):
    rest = bits & ((int64(1) << int64(SIGNIFICAND - 1)) - int64(1))
    exponent, negative = int64(bits) >> int64(SIGNIFICAND - 1) & int64(MOST), bits < 0
    if exponent == MOST:
        return {nan} if rest else {below} if negative else {above}
    place = exponent if exponent else int64(1)
    number, shift = rest | int64(1) << int64(SIGNIFICAND - 1) if exponent else rest, place & int64(31)
    low, high = int64(uint64(number) << uint64(shift) & uint64(0xFFFFFFFF)), number >> (int64(32) - shift)
    add(words, place >> 5, -low if negative else low)
    add(words, (place >> 5) + 1, -high if negative else high)
    return 0


def bit_length(number):  # of 1 to 2^32 - 1
    size, rest = 1, number
    for step in (16, 8, 4, 2, 1):
        if rest >> int64(step):
            rest >>= int64(step)
            size += step
    return size


def rounded(digits, first, last):  # the float that is nearest to words of 64 bits, zero but for these, as its bits; overwrites them
    carry = int64(0)
    for w in range(first, last):
        low = (digits[w] & int64(0xFFFFFFFF)) + carry
        carry = (digits[w] >> int64(32)) + (low >> int64(32))
        digits[w] = low & int64(0xFFFFFFFF)
    negative, top, carry = carry < 0, -1, int64(1)
    for w in range(first, last):
        if negative:
            low = (~digits[w] & int64(0xFFFFFFFF)) + carry
            digits[w] = low & int64(0xFFFFFFFF)
            carry = low >> int64(32)
        if digits[w]:
            top = w
    if top < 0:
        return int64(0)
    drop = max(32 * top + bit_length(digits[top]) - SIGNIFICAND, 1)
    word, shift = drop >> 5, drop & 31
    kept = uint64(digits[word]) >> uint64(shift) | uint64(digits[word + 1]) << uint64(32 - shift)
    if shift:
        kept |= uint64(digits[word + 2]) << uint64(64 - shift)
    half = drop - 1
    rest = digits[half >> 5] & ((int64(1) << int64(half & 31)) - int64(1)) != 0
    for w in range(first, half >> 5):
        rest = rest or digits[w] != 0
    if digits[half >> 5] >> int64(half & 31) & int64(1) and (rest or kept & uint64(1)):
        kept += uint64(1)
    number = int64(MOST) << int64(SIGNIFICAND - 1)
    if drop < MOST:  # else the sum of both would wrap
        number = min(number, (int64(drop - 1) << int64(SIGNIFICAND - 1)) + int64(kept))
    return number | int64({sign}) if negative else number


def rounded_near(one, other, third, first):  # the same of three neighbouring words; -1 where their sum has too few bits, or too many
    if third + int64(2**29) >> int64(30):
        return int64(-1)
    low, carry = uint64(one) + (uint64(other) << uint64(32)), int64(0)
    if low < uint64(one):
        carry = int64(1)
    high = (one >> int64(63)) + (other >> int64(32)) + third + carry
    sign = high >> int64(63)
    low, high = (low ^ uint64(sign)) + uint64(sign & int64(1)), high ^ sign
    if sign and not low:
        high += 1
    if high >> int64(30):
        return int64(-1)
    upper = uint64(high) << uint64(32) | low >> uint64(32)
    wide = upper if upper else low
    near = wide & ~(wide >> uint64(1))  # whose exponent as a float is that of `wide`: it is not rounded up
    size = (float64(near).view(int64) >> int64(52)) - int64(1022) + (int64(32) if upper else int64(0))
    drop = size - int64(SIGNIFICAND)
    if drop < 1 or drop > 63 or not wide:
        return int64(-1)
    kept = low >> uint64(drop) | uint64(high) << uint64(64 - drop)
    half = uint64(1) << uint64(drop - 1)
    rest = low & (half - uint64(1)) | kept & uint64(1)
    if low & half and rest:
        kept += uint64(1)
    number, drop = int64(MOST) << int64(SIGNIFICAND - 1), drop + 32 * first
    if drop < MOST:  # else the sum of both would wrap
        number = min(number, (int64(drop - 1) << int64(SIGNIFICAND - 1)) + int64(kept))
    return number | (sign & int64({sign}))


def exact_sums_kernel(words, elements, begin, end):
    digits = zeros(LIMBS + 2, int64)  # two that stay zero
    count = len(words) // WORDS - 1
    used, planes = empty(WORDS, int64), 0  # of those but the last, which is for what is no finite number
    for w in range(LIMBS):
        if words[count * WORDS + w]:
            used[planes] = w
            planes += 1
    specials = words[count * WORDS + LIMBS] != 0
    if not planes and not specials:
        return
    for e in range(begin, end):
        special, any_ = words[count * LIMBS + e] if specials else int64(0), int64(0)
        for n in range(planes):
            any_ |= words[count * used[n] + e]
        if not any_ and not special:
            continue
        for n in range(planes):
            digits[used[n]] = words[count * used[n] + e]
            words[count * used[n] + e] = 0
        if special:
            words[count * LIMBS + e] = 0
        bits = int64(elements[e])
        special |= add_float(digits, bits)
        place = (bits >> int64(SIGNIFICAND - 1) & int64(MOST)) >> int64(5)
        if planes and not (bits & int64({magnitude})):
            place = used[0]
        first = min(used[0], place) if planes else place
        last = min(max(used[planes - 1] if planes else place, place + 1) + 3, LIMBS)  # of a word's carries, and the sign
        infinite = int64(MOST) << int64(SIGNIFICAND - 1)
        if special == {above}:
            elements[e] = infinite
        elif special == {below}:
            elements[e] = infinite | int64({sign})
        elif special:
            elements[e] = infinite | int64(1) << int64(SIGNIFICAND - 2)
        else:
            near = int64(-1)
            if last <= first + 5:
                near = rounded_near(digits[first], digits[first + 1], digits[first + 2], first)
            number = rounded(digits, first, last) if near == -1 else near
            if number or bits != int64({sign}):  # words may be there and cancel: then the element keeps its bits, -0.0 too
                elements[e] = number
        for w in range(first, last):
            digits[w] = 0
"""


@cache
def host_text_of(name: str) -> str:
    """The text for a type of floats, by NumPy's name of it."""
    kind = exact_sums.FORMATS[name]
    return HOST_TEXT.format(
        words=kind.words,
        significand=kind.significand,
        most=kind.most,
        sign=kind.sign if kind.sign < 2**63 else -(2**63),
        nan=exact_sums.NAN,
        above=exact_sums.ABOVE,
        below=exact_sums.BELOW,
        magnitude=kind.sign - 1,
    ).replace("-9223372036854775808", "-9223372036854775807 - 1")


def close_on_host(words: Any, array: Any) -> None:
    """Add the words to the elements of an array of NumPy, and make them zero again."""
    kernel: Any = cpu.own_kernel(host_text_of(array.dtype.name), "exact_sums")
    signed = array.view("int32" if array.itemsize == 4 else "int64")
    cpu.run_range(kernel, (words, signed), array.size, GRAIN)
    words[-exact_sums.FORMATS[array.dtype.name].words :] = 0


# ------------------------------------------------------------ on a GPU

THREADS = 128
TYPES = {"float32": ("float", "unsigned int"), "float64": ("double", "unsigned long long")}
TEXT = """
typedef {bits} Bits;
#define WORDS {words}
#define LIMBS (WORDS - 1)
#define GROUP {group}
#define SIGNIFICAND {significand}
#define MOST {most}u  // the exponent of what is no finite number

// Adds `piece` to a number of words of 64 bits, one for every 2^32.
__device__ __forceinline__ void add(long long *words, int word, long long piece)
{{
    while (piece) {{
        const long long before = words[word];
        const long long after = (long long)((unsigned long long)before + (unsigned long long)piece);
        words[word] = after;
        if (((before ^ after) & (piece ^ after)) >= 0) return;
        piece = piece < 0 ? -1 : 1;
        word += 2;
    }}
}}

__device__ unsigned int add_float(long long *words, Bits bits)
{{
    const Bits rest = bits & ((Bits(1) << (SIGNIFICAND - 1)) - 1);
    const unsigned int exponent = (unsigned int)(bits >> (SIGNIFICAND - 1)) & MOST;
    const bool negative = bits >> (8 * sizeof(Bits) - 1);
    if (exponent == MOST) return rest ? {nan} : negative ? {below} : {above};
    const unsigned int place = exponent ? exponent : 1u, shift = place & 31u;
    const unsigned long long number = exponent ? rest | Bits(1) << (SIGNIFICAND - 1) : rest;
    const long long low = (long long)(number << shift & 0xffffffffull), high = (long long)(number >> (32u - shift));
    add(words, place >> 5, negative ? -low : low);
    add(words, (place >> 5) + 1, negative ? -high : high);
    return 0;
}}

extern "C" __global__ void __launch_bounds__({threads}) exact_sums_kernel(long long *words, Bits *elements, long long count)
{{
    const long long element = (long long)blockIdx.x * {threads} + threadIdx.x;
    if (element >= count) return;
    long long *const own = words + (element / GROUP * (GROUP * WORDS) + element % GROUP);
    long long sum[LIMBS];
    bool any = false;
    for (int w = 0; w < LIMBS; ++w) {{
        sum[w] = own[w * GROUP];
        if (sum[w]) {{ own[w * GROUP] = 0; any = true; }}
    }}
    unsigned int special = (unsigned int)own[LIMBS * GROUP];
    if (!any && !special) return;
    own[LIMBS * GROUP] = 0;
    special |= add_float(sum, elements[element]);
    const Bits infinite = Bits(MOST) << (SIGNIFICAND - 1), sign = Bits(1) << (8 * sizeof(Bits) - 1);
    if (special) {{
        elements[element] = special == {above} ? infinite : special == {below} ? infinite | sign : infinite | Bits(1) << (SIGNIFICAND - 2);
        return;
    }}
    long long carry = 0;  // digits of 32 bits
    for (int w = 0; w < LIMBS; ++w) {{
        const long long low = (sum[w] & 0xffffffffll) + carry;
        carry = (sum[w] >> 32) + (low >> 32);
        sum[w] = low & 0xffffffffll;
    }}
    const bool negative = carry < 0;
    int top = -1;
    carry = 1;
    for (int w = 0; w < LIMBS; ++w) {{
        if (negative) {{
            const long long low = (~sum[w] & 0xffffffffll) + carry;
            sum[w] = low & 0xffffffffll;
            carry = low >> 32;
        }}
        if (sum[w]) top = w;
    }}
    if (top < 0) {{
        elements[element] = 0;
        return;
    }}
    const int size = 32 * top + 32 - __clz((int)sum[top]), drop = max(size - SIGNIFICAND, 1);
    const int word = drop >> 5, shift = drop & 31;
    unsigned long long kept = (unsigned long long)sum[word] >> shift;
    if (word + 1 < LIMBS) kept |= (unsigned long long)sum[word + 1] << (32 - shift);
    if (shift && word + 2 < LIMBS) kept |= (unsigned long long)sum[word + 2] << (64 - shift);
    const int half = drop - 1;
    bool rest = (sum[half >> 5] & ((1ll << (half & 31)) - 1)) != 0;
    for (int w = 0; w < half >> 5; ++w) rest |= sum[w] != 0;
    kept += (sum[half >> 5] >> (half & 31) & 1) && (rest || (kept & 1));
    const unsigned long long rounded = ((unsigned long long)(drop - 1) << (SIGNIFICAND - 1)) + kept;
    elements[element] = (rounded < infinite ? Bits(rounded) : infinite) | (negative ? sign : Bits(0));
}}
"""


@cache
def text_of(name: str) -> str:
    """The text for a type of floats, by NumPy's name of it."""
    kind = exact_sums.FORMATS[name]
    return TEXT.format(
        bits=TYPES[name][1],
        words=kind.words,
        group=exact_sums.GROUP,
        significand=kind.significand,
        most=kind.most,
        threads=THREADS,
        nan=exact_sums.NAN,
        above=exact_sums.ABOVE,
        below=exact_sums.BELOW,
    )


def load_close(name: str, device: str) -> WrittenKernel:
    """What `close_on_gpu` runs for a type of floats: no graph can hold that it is loaded."""
    return get_device(device).load(text_of(name), "exact_sums", THREADS)


def close_on_gpu(words: Any, array: Any, device: str) -> None:
    """Add the words to the elements of an array of CuPy, and make them zero again."""
    kernel = load_close(array.dtype.name, device)
    blocks = -(-array.size // THREADS)
    kernel.launch((blocks, 1), (address(words), address(array), np.int64(array.size)))
