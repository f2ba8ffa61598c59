"""Exact sums become floats on a GPU: a thread for each element."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.language import exact_sums
from lanewise.runtime import cuda, memory

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
        bits=TYPES[name][1], words=kind.words, group=exact_sums.GROUP, significand=kind.significand, most=kind.most,
        threads=THREADS, nan=exact_sums.NAN, above=exact_sums.ABOVE, below=exact_sums.BELOW,
    )  # fmt: skip


def close(words: Any, array: Any, device: str) -> None:
    """Add the words to the elements of an array of CuPy, and make them zero again."""
    kernel = cuda.loaded(device, text_of(array.dtype.name), "exact_sums", THREADS)
    blocks = -(-array.size // THREADS)
    kernel.launch((blocks, 1), (memory.address(words), memory.address(array), np.int64(array.size)))
