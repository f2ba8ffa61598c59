"""Identifiers of generated code: the user's names, dots as underscores, no clash with a word of the
language or another name.
"""

from __future__ import annotations

from collections.abc import Iterable

from lanewise.emit import cuda_prelude
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.names import identifier, is_own
from lanewise.ir.traverse import expressions, reads, statements, writes

_CPP = """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq final override import module main
std linux unix NULL NAN INFINITY assert"""
_CUDA = """threadIdx blockIdx blockDim gridDim warpSize dim3 cudaError_t cudaStream_t printf malloc free memcpy memset
clock clock64 size_t ptrdiff_t"""
_MATH = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erf erfc
erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim fdivide floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp
lgamma llrint llround log log10 log1p log2 logb lrint lround max min modf nan nearbyint nextafter norm norm3d norm4d
normcdf normcdfinv pow powi rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d round rsqrt saturate scalbln scalbn
signbit sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn abs labs llabs umin umax ullmin ullmax llmin
llmax mul24 umul24 mulhi umulhi mul64hi float_as_int int_as_float isnan isinf isfinite isnormal popc clz ffs brev"""
_VECTORS = [
    f"{kind}{n}"
    for kind in [
        "char",
        "uchar",
        "short",
        "ushort",
        "int",
        "uint",
        "long",
        "ulong",
        "longlong",
        "ulonglong",
        "float",
        "double",
    ]
    for n in (1, 2, 3, 4)
]
CUDA_WORDS = frozenset(_CPP.split()).union(
    _CUDA.split(),
    _MATH.split(),
    (f"{m}f" for m in _MATH.split()),
    _VECTORS,
    (f"make_{v}" for v in _VECTORS),
    cuda_prelude.DEFINITIONS,
)


class Names:
    """Maps IR names to identifiers, the same one each time. `first` are served before all others:
    the user's own names.
    """

    def __init__(
        self, words: frozenset[str], taken: Iterable[str] = (), first: Iterable[str] = ()
    ) -> None:
        self._identifiers: dict[str, str] = {}
        self._used = {*words, *taken}
        for name in first:
            self(name)

    def __call__(self, name: str) -> str:
        if name not in self._identifiers:
            base = identifier(name)
            candidate, n = base, 1
            while candidate in self._used:
                candidate = f"{base}_" if n == 1 else f"{base}_{n}"
                n += 1
            self._identifiers[name] = candidate
            self._used.add(candidate)
        return self._identifiers[name]

    def known(self, name: str) -> str:
        """The identifier of a name that has one, else the name as it is."""
        return self._identifiers.get(name, name)


def user_names(block: ir.Block) -> list[str]:
    """The names in a block that are not lanewise's own, in order of text."""
    names = (
        n
        for s in statements(block)
        for n in (*writes(s), *(x for e in expressions(s) for x in reads(e)))
    )
    return [n for n in dict.fromkeys(names) if not is_own(n)]


def function_names(kernel: ir.Kernel, words: frozenset[str]) -> dict[str, str]:
    """The identifiers of the kernel's functions, by name; the entry has its own."""
    names = Names(words, taken=[entry_name(kernel)])
    return {f.name: names(f.name) for f in functions(kernel.body)}


def entry_name(kernel: ir.Kernel) -> str:
    """The kernel's name in the generated text, and in the compiled code."""
    return f"{kernel.name}_kernel"
