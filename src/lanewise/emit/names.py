"""Identifiers of generated code: the user's names, dots as underscores, no clash with a keyword or another name."""

from __future__ import annotations

import keyword

_RESERVED = frozenset(keyword.kwlist) | frozenset(
    "auto double float int long short signed unsigned char void bool const static extern register volatile struct union enum class template "
    "typename typedef namespace using public private protected friend virtual inline operator new delete this throw try catch switch case "
    "default do goto sizeof and or not xor bitand bitor compl asm export mutable explicit constexpr decltype nullptr true false "
    "threadIdx blockIdx blockDim gridDim warpSize f32 f64 i32 i64 u32 math range min max abs rsqrt".split()
)


class Names:
    """Maps IR names to identifiers, the same one each time."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        self._used: set[str] = set()

    def __call__(self, name: str) -> str:
        if name not in self._taken:
            base = name.replace(".", "_")
            candidate, n = (f"{base}_" if base in _RESERVED else base), 1
            while candidate in self._used:
                n += 1
                candidate = f"{base}_{n}"
            self._taken[name] = candidate
            self._used.add(candidate)
        return self._taken[name]
