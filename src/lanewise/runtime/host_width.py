"""Which SIMD registers this CPU has: LLVM is asked."""

from __future__ import annotations

from functools import cache

from llvmlite import binding

# LLVM's name of the feature, and the vendors'
NEEDED = {256: ("avx2", "AVX2"), 512: ("avx512f", "AVX-512")}


@cache
def _host() -> tuple[str, dict[str, bool]]:
    """The name and features of this CPU. LLVM is asked once: it answers under a lock, which a fork
    may find held for ever.
    """
    return binding.get_host_cpu_name(), dict(binding.get_host_cpu_features())


def problem(bits: int) -> str | None:
    """Why this CPU has no SIMD registers of that many bits, or None."""
    (feature, name), (host, features) = NEEDED[bits], _host()
    return None if features.get(feature, False) else f"this CPU ({host}) has no {name}"
