"""What generated CUDA C++ is built of: the spelling of types and literals, and functions that a
kernel gets when it uses them.
"""

from __future__ import annotations

from lanewise.language.types import BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, Scalar
from lanewise.runtime.cuda_spelling import TYPES
from lanewise.runtime.exact_sums_text import SCATTER_SUM

UNSIGNED = {I32: "unsigned int", I64: "unsigned long long"}
"""Of the same size, where arithmetic wraps.

C++ leaves open what a signed result beyond its type is, and compilers use that.
"""
CONVERSIONS = {I32: "lw_to_int", U32: "lw_to_unsigned", I64: "lw_to_long"}
_VECTORS = {
    BOOL: "uchar", I8: "char", U8: "uchar", I16: "short", U16: "ushort", I32: "int", U32: "uint",
    I64: "longlong", F16: "ushort", F32: "float", F64: "double",
}  # fmt: skip

_EXCHANGE = """__device__ __forceinline__ void lw_scatter_{{name}}({kind} *element, {kind} value)
{{{{  // most values change nothing, and are only compared; -0.0 is smaller than 0.0, and NaN wins
    {word} *const place = reinterpret_cast<{word} *>(element);
    const {word} bits = value == value ? {bits}(value) : {nan};
    {word} now = *reinterpret_cast<volatile {word} *>(place);
    for (;;) {{{{
        const {kind} old = {number}(now);
        const bool signs = {{low}} >> {sign_bit} && !({{high}} >> {sign_bit});
        if (!(old == old) || !(value {{sign}} old || (value == old && signs) || value != value)) return;
        const {word} before = atomicCAS(place, now, bits);
        if (before == now) return;
        now = before;
    }}}}
}}}}
"""
_SCATTER = (
    """__device__ __forceinline__ void lw_scatter_{name}(int *element, int value) {{ atomic{Name}(element, value); }}
__device__ __forceinline__ void lw_scatter_{name}(unsigned int *element, unsigned int value) {{ atomic{Name}(element, value); }}
__device__ __forceinline__ void lw_scatter_{name}(long long *element, long long value) {{ atomic{Name}(element, value); }}
"""
    + _EXCHANGE.format(
        kind="float",
        word="unsigned int",
        bits="__float_as_uint",
        number="__uint_as_float",
        nan="0x7fc00000u",
        sign_bit=31,
    )
    + _EXCHANGE.format(
        kind="double",
        word="unsigned long long",
        bits="(unsigned long long)__double_as_longlong",
        number="__longlong_as_double",
        nan="0x7ff8000000000000ull",
        sign_bit=63,
    )
)

DEFINITIONS = {
    "lw_rsqrt": """__device__ __forceinline__ float lw_rsqrt(float x)  // approximate by definition; subnormal x counts as zero
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ double lw_rsqrt(double x)  // an estimate of 20 bits, refined once to third order
{
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double error = fma(-x * y, y, 1.0);
    const double refined = y * fma(fma(0.375, error, 0.5), error, 1.0);  // no operation reads three registers
    const unsigned int size = __double2hiint(y) & 0x7fffffff;
    return size - 1u < 0x7fefffffu ? refined : y;  // zero, infinity and NaN are what they are
}
""",
    "lw_from_half": """__device__ __forceinline__ float lw_from_half(unsigned short x)  // the bits of a float16
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
""",
    "lw_to_half": """__device__ __forceinline__ unsigned short lw_to_half(float x)  // rounded to the nearest float16
{
    unsigned short y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
""",
    "lw_scatter_add": """// Whole numbers, which wrap: the sum does not hang on the order.
__device__ __forceinline__ void lw_scatter_add(int *element, int value) { atomicAdd(element, value); }
__device__ __forceinline__ void lw_scatter_add(unsigned int *element, unsigned int value) { atomicAdd(element, value); }
__device__ __forceinline__ void lw_scatter_add(long long *element, long long value)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(element), (unsigned long long)value);
}
""",
    "lw_scatter_sum": SCATTER_SUM,
    "lw_scatter_min": _SCATTER.format(name="min", Name="Min", sign="<", low="bits", high="now"),
    "lw_scatter_max": _SCATTER.format(name="max", Name="Max", sign=">", low="now", high="bits"),
    "lw_clock": """__device__ __forceinline__ long long lw_clock()  // nothing that touches memory moves across it
{
    long long cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles) : : "memory");
    return cycles;
}
""",
    "lw_rotate": """template <class T> __device__ __forceinline__ T lw_rotate(T x)  // the value of the next thread of the warp
{
    return __shfl_sync(0xffffffffu, x, threadIdx.x + 1);
}
""",
    "lw_behind": """// The value of a thread so far behind this one, in its group of neighbours.
template <class T> __device__ __forceinline__ T lw_behind(T x, int distance, int group)
{
    return __shfl_down_sync(0xffffffffu, x, distance, group);
}
""",
    "lw_before": """// The value of a thread so far before this one, in its group of neighbours.
template <class T> __device__ __forceinline__ T lw_before(T x, int distance, int group)
{
    return __shfl_up_sync(0xffffffffu, x, distance, group);
}
""",
    "lw_last": """template <class T> __device__ __forceinline__ T lw_last(T x, int group)  // of the last of a group
{
    return __shfl_sync(0xffffffffu, x, group - 1, group);
}
""",
    "lw_first": """template <class T> __device__ __forceinline__ T lw_first(T x, int group)  // of the first of a group
{
    return __shfl_sync(0xffffffffu, x, 0, group);
}
""",
    "lw_least": """__device__ __forceinline__ float lw_least(float x)  // of a warp; what is no number is left out
{
    for (int apart = 16; apart; apart /= 2) x = fminf(x, __shfl_xor_sync(0xffffffffu, x, apart));
    return x;
}

__device__ __forceinline__ double lw_least(double x)
{
    for (int apart = 16; apart; apart /= 2) x = fmin(x, __shfl_xor_sync(0xffffffffu, x, apart));
    return x;
}
""",
    "lw_draw": """__device__ __forceinline__ int lw_draw(int *counter, int total)  // the next number, for a warp
{
    int number = 0;
    if (threadIdx.x % 32 == 0) {
        number = atomicAdd(counter, 1);
        if (number == total - 1) *counter = 0;
    }
    return __shfl_sync(0xffffffffu, number, 0);
}
""",
    "lw_await_turn": """__device__ __forceinline__ void lw_await_turn(const int *turn, int wanted)
{
    int now = wanted;
    do {
        if (threadIdx.x % 32 == 0) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
    } while (__shfl_sync(0xffffffffu, now, 0) != wanted);
    __syncwarp();
}
""",
    "lw_end_turn": """__device__ __forceinline__ void lw_end_turn(int *turn, int following)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) asm volatile("st.release.gpu.global.s32 [%0], %1;" : : "l"(turn), "r"(following) : "memory");
}
""",
    "lw_copy_async": """template <int bytes> __device__ __forceinline__ void lw_copy_async(void *to, const void *from)
{
    const unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"(place), "l"(from), "n"(bytes) : "memory");
}
""",
    "lw_copy_async_or_zero": """template <int bytes>
__device__ __forceinline__ void lw_copy_async_or_zero(void *to, const void *from, bool there)
{
    const unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    const int size = there ? bytes : 0;  // of what is read: zeros follow
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" : : "r"(place), "l"(from), "n"(bytes), "r"(size) : "memory");
}
""",
    "lw_copy_past_l1": """template <int bytes> __device__ __forceinline__ void lw_copy_past_l1(void *to, const void *from)
{
    const unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" : : "r"(place), "l"(from), "n"(bytes) : "memory");
}
""",
    "lw_copy_past_l1_or_zero": """template <int bytes>
__device__ __forceinline__ void lw_copy_past_l1_or_zero(void *to, const void *from, bool there)
{
    const unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    const int size = there ? bytes : 0;  // of what is read: zeros follow
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" : : "r"(place), "l"(from), "n"(bytes), "r"(size) : "memory");
}
""",
    "lw_commit_async": """__device__ __forceinline__ void lw_commit_async()  // what this thread has begun to copy is a group
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}
""",
    "lw_wait_async_but": """template <int groups> __device__ __forceinline__ void lw_wait_async_but()  // its last groups of copies
{
    asm volatile("cp.async.wait_group %0;" : : "n"(groups) : "memory");
}
""",
    "lw_wait_async": """__device__ __forceinline__ void lw_wait_async()  // for the copies of this thread
{
    asm volatile("cp.async.wait_all;" : : : "memory");
}
""",
    "lw_min": """template <class T> __device__ __forceinline__ T lw_min(T a, T b)  // not a number when a or b is not
{
    return a < b || a != a ? a : b;
}
#if __CUDA_ARCH__ >= 800
template <> __device__ __forceinline__ float lw_min(float a, float b)  // one instruction, for which -0.0 is below 0.0
{
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#endif
""",
    "lw_max": """template <class T> __device__ __forceinline__ T lw_max(T a, T b)  // not a number when a or b is not
{
    return a > b || a != a ? a : b;
}
#if __CUDA_ARCH__ >= 800
template <> __device__ __forceinline__ float lw_max(float a, float b)  // one instruction, for which -0.0 is below 0.0
{
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#endif
""",
    "lw_mix": """template <class T> __device__ __forceinline__ T lw_mix(T a, T b, T weight) { return a + (b - a) * weight; }
""",
    "lw_to_int": """// The nearest limit beyond the type; NaN is 0.
__device__ __forceinline__ int lw_to_int(float x) { return __float2int_rz(x); }
__device__ __forceinline__ int lw_to_int(double x) { return x == x ? __double2int_rz(x) : 0; }
""",
    "lw_to_unsigned": """// The nearest limit beyond the type; NaN is 0.
__device__ __forceinline__ unsigned int lw_to_unsigned(float x) { return __float2uint_rz(x); }
__device__ __forceinline__ unsigned int lw_to_unsigned(double x) { return x == x ? __double2uint_rz(x) : 0u; }
""",
    "lw_to_long": """// The nearest limit beyond the type; NaN is 0.
__device__ __forceinline__ long long lw_to_long(float x) { return x == x ? __float2ll_rz(x) : 0LL; }
__device__ __forceinline__ long long lw_to_long(double x) { return x == x ? __double2ll_rz(x) : 0LL; }
""",
    "lw_abs": """// Of the smallest number: itself.
__device__ __forceinline__ int lw_abs(int x) { return x < 0 ? (int)(0u - (unsigned int)x) : x; }
__device__ __forceinline__ long long lw_abs(long long x) { return x < 0 ? (long long)(0ULL - (unsigned long long)x) : x; }
""",
    "lw_shift_left": """// Nothing is left after as many places as there are bits; a negative number of places counts as more.
__device__ __forceinline__ unsigned int lw_shift_left(unsigned int x, unsigned int n) { return n < 32u ? x << n : 0u; }
__device__ __forceinline__ int lw_shift_left(int x, int n) { return (int)lw_shift_left((unsigned int)x, (unsigned int)n); }
__device__ __forceinline__ long long lw_shift_left(long long x, long long n)
{
    return (unsigned long long)n < 64ULL ? (long long)((unsigned long long)x << n) : 0LL;
}
""",
    "lw_shift_right": """// Copies of the sign are left after as many places as there are bits; a negative number of places counts as more.
__device__ __forceinline__ unsigned int lw_shift_right(unsigned int x, unsigned int n) { return n < 32u ? x >> n : 0u; }
__device__ __forceinline__ int lw_shift_right(int x, int n) { return x >> ((unsigned int)n < 32u ? n : 31); }
// Of 64 bits by halves: the assemblers of CUDA 12.9 and 13.0 make one rotation of (x << n) + (x >> 64 - n), and of their
// difference, also where x is signed.
__device__ __forceinline__ long long lw_shift_right(long long x, long long n)
{
    const double halves = __longlong_as_double(x);
    const int high = __double2hiint(halves), low = __double2loint(halves);
    const int places = (unsigned long long)n < 64ULL ? (int)n : 63;
    const int above = places < 32 ? high >> places : high >> 31;
    const int below = places < 32 ? (int)__funnelshift_r((unsigned int)low, (unsigned int)high, places) : high >> (places - 32);
    return __double_as_longlong(__hiloint2double(above, below));
}
""",
    "lw_any_floor_divide": """__device__ __forceinline__ int lw_any_floor_divide(int a, int b)  // rounds towards minus infinity; wraps
{
    if (b == 0) return 0;
    if (b == -1) return (int)(0u - (unsigned int)a);
    const int q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
__device__ __forceinline__ long long lw_any_floor_divide(long long a, long long b)
{
    if (b == 0) return 0;
    if (b == -1) return (long long)(0ULL - (unsigned long long)a);
    const long long q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
__device__ __forceinline__ unsigned int lw_any_floor_divide(unsigned int a, unsigned int b) { return b == 0 ? 0 : a / b; }
""",
    "lw_any_modulo": """template <class T> __device__ __forceinline__ T lw_any_modulo(T a, T b)  // the sign of b, as in Python
{
    if (b == 0 || b == -1) return 0;
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
__device__ __forceinline__ unsigned int lw_any_modulo(unsigned int a, unsigned int b) { return b == 0 ? 0 : a % b; }
""",
    "lw_floor_divide": """template <class T> __device__ __forceinline__ T lw_floor_divide(T a, T b)  // rounds towards minus infinity
{
    if (b == 0) return 0;
    const T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
""",
    "lw_modulo": """template <class T> __device__ __forceinline__ T lw_modulo(T a, T b)  // the sign of b, as in Python
{
    if (b == 0) return 0;
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
""",
    "lw_float_modulo": """template <class T> __device__ __forceinline__ T lw_float_modulo(T a, T b)  // the sign of b, as in Python
{
    const T r = fmod(a, b);
    return r == 0 ? copysign(r, b) : (r < 0) != (b < 0) ? r + b : r;
}
""",
    "lw_float_floor_divide": """template <class T> __device__ __forceinline__ T lw_float_floor_divide(T a, T b)  // as in Python
{
    if (b == 0) return a / b;
    const T r = fmod(a, b);
    const T q = (a - r) / b - (r != 0 && (r < 0) != (b < 0) ? 1 : 0);
    const T whole = floor(q);
    return q == 0 ? copysign(q, a / b) : q - whole > T(0.5) ? whole + 1 : whole;
}
""",
}


def prelude(body: str) -> str:
    """The definitions that a text uses."""
    return "".join(
        f"{text}\n"
        for name, text in DEFINITIONS.items()
        if f"{name}(" in body or f"{name}<" in body
    )


def vector_type(scalar: Scalar, lanes: int) -> str:
    """The CUDA type of a load of that many scalars."""
    return TYPES[scalar] if lanes == 1 else f"{_VECTORS[scalar]}{lanes}"
