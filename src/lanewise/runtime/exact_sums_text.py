"""Exact sums in CUDA C++: what generated kernels and those of whole arrays add to words with."""

from __future__ import annotations

from lanewise.language.exact_sums import ABOVE, BELOW, F32, F64, GROUP, NAN

SCATTER_SUM = f"""// A sum of floats as whole numbers in words of 64 bits, one for every 2^32, in lines of {GROUP} elements.
// What leaves a word that wraps goes two words higher. The last word tells what is no finite number.
__device__ __forceinline__ void lw_scatter_piece(unsigned long long *word, long long piece)
{{
    const long long before = (long long)atomicAdd(word, (unsigned long long)piece);
    const long long after = (long long)((unsigned long long)before + (unsigned long long)piece);
    if (((before ^ after) & (piece ^ after)) >= 0) return;
    piece = piece < 0 ? -1 : 1;
    for (;;) {{
        word += {2 * GROUP};
        const long long high = (long long)atomicAdd(word, (unsigned long long)piece);
        if (high != (piece < 0 ? (long long)0x8000000000000000ull : 0x7fffffffffffffffll)) return;
    }}
}}
__device__ __forceinline__ void lw_scatter_sum(long long *words, long long element, float value)
{{
    const unsigned int bits = __float_as_uint(value), exponent = bits >> 23 & 255u, rest = bits & 0x7fffffu;
    unsigned long long *const own = reinterpret_cast<unsigned long long *>(words)
        + (element / {GROUP} * {GROUP * F32.words} + element % {GROUP});
    if (exponent == 255u) {{
        atomicOr(own + {GROUP * (F32.words - 1)}, rest ? {NAN}ull : bits >> 31 ? {BELOW}ull : {ABOVE}ull);
        return;
    }}
    const unsigned int place = exponent ? exponent : 1u;
    const long long number = (long long)(exponent ? rest | 0x800000u : rest) << (place & 31u);
    if (number) lw_scatter_piece(own + (place >> 5) * {GROUP}, bits >> 31 ? -number : number);
}}
__device__ __forceinline__ void lw_scatter_sum(long long *words, long long element, double value)
{{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(value), rest = bits & 0xfffffffffffffull;
    const unsigned int exponent = (unsigned int)(bits >> 52) & 2047u;
    unsigned long long *own = reinterpret_cast<unsigned long long *>(words)
        + (element / {GROUP} * {GROUP * F64.words} + element % {GROUP});
    if (exponent == 2047u) {{
        atomicOr(own + {GROUP * (F64.words - 1)}, rest ? {NAN}ull : bits >> 63 ? {BELOW}ull : {ABOVE}ull);
        return;
    }}
    const unsigned int place = exponent ? exponent : 1u, shift = place & 31u;
    const unsigned long long number = exponent ? rest | 0x10000000000000ull : rest;
    const long long low = (long long)(number << shift & 0xffffffffull), high = (long long)(number >> (32u - shift));
    own += (place >> 5) * {GROUP};
    if (low) lw_scatter_piece(own, bits >> 63 ? -low : low);
    if (high) lw_scatter_piece(own + {GROUP}, bits >> 63 ? -high : high);
}}
"""
