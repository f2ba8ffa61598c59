"""The catalogue: every optimisation with its name, the plan's field, the values worth trying, and a sentence for each value.

The order is that of the compiler: arithmetic, division into kernels, loops, memory, threads. `explain` makes a row of
each entry, `tune` makes an axis of its values, the ladders climb them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanewise.ir.pattern import Pattern
from lanewise.target import is_gpu

LAYOUT = "layout"  # the field of the one optimisation that lies in the records and not in the plan


@dataclass(frozen=True, slots=True)
class Optimisation:
    """One optimisation.

    name: the standard term; literature: what else papers and compilers call it. field: of the plan, or `LAYOUT`.
    cuda, cpu: values worth trying for pairwise kernels of that kind of device, the neutral one first; elementwise: the
    same for elementwise kernels and reductions on a GPU (on a CPU: `elementwise_cpu`); sites: for sites of a lattice on a
    GPU, where these differ. One value means that there is nothing to try. on_request: it changes results by more than
    rounding in another order, or costs accuracy, so that it is never chosen unless the user asks for it. shape: other
    fields that it decides, for an optimisation that gives a kernel a shape of its own.
    """

    name: str
    field: str
    sentence: Callable[[Any, str], str]
    literature: str = ""
    cuda: tuple[Any, ...] = ()
    cpu: tuple[Any, ...] = ()
    elementwise: tuple[Any, ...] = ()
    elementwise_cpu: tuple[Any, ...] = ()
    sites: tuple[Any, ...] = ()
    on_request: bool = False
    shape: tuple[tuple[str, Any], ...] = ()

    def values(self, kind: str, pattern: Pattern) -> tuple[Any, ...]:
        """The values worth trying on a "cuda" or "cpu" device for a pattern; none when it is of no use there."""
        if pattern.over_pairs:
            return self.cuda if is_gpu(kind) else self.cpu
        if pattern.merging is not None and is_gpu(kind) and self.sites:
            return self.sites
        return self.elementwise if is_gpu(kind) else self.elementwise_cpu

    def describe(self, value: Any, kind: str = "cuda") -> str:
        """What a kernel with this value does, as one clause."""
        return self.sentence(value, kind)


def _choice(**sentences: str) -> Callable[[Any, str], str]:
    """A sentence for each value of a choice; `off` and `on` stand for the two truth values."""
    return lambda value, kind: sentences[{False: "off", True: "on"}.get(value, str(value))]


def _tile(value: int, kind: str) -> str:
    if not value:
        return "sources are read one by one"
    if is_gpu(kind):
        return f"{value} sources at a time are staged in shared memory by the whole block"
    return f"sources are summed in tiles of {value}"


def _unroll(value: int, kind: str) -> str:
    return {0: "the inner loop is written out completely", 1: "the inner loop is as written"}.get(
        value, f"the inner loop is written out {value} times"
    )


def _cap(value: int, kind: str) -> str:
    return f"a thread gets at most {value} registers" if value else "a thread gets as many registers as it likes"


def _min_blocks(value: int, kind: str) -> str:
    return f"registers are capped so that {value} blocks fit a multiprocessor" if value else "no cap on registers"


def _vector_bits(value: int, kind: str) -> str:
    return f"SIMD registers of {value} bits" if value else "SIMD registers as wide as the compiler prefers"


_SWITCH = (False, True)

OPTIMISATIONS: tuple[Optimisation, ...] = (
    Optimisation(
        "reciprocal square root", "rsqrt",
        _choice(written="computed as written", hardware="1 / sqrt(x) by the approximate instruction",
                exact="by a rounded square root and a division"),
        literature="intrinsic functions", cuda=("written", "hardware", "exact"), cpu=("written", "hardware", "exact"),
        elementwise=("written", "hardware", "exact"), elementwise_cpu=("written", "hardware", "exact"), on_request=True,
    ),
    Optimisation(
        "FMA rearrangement", "fma",
        _choice(off="sums of products as written", on="each product joins its sum in one fused multiply-add"),
        literature="fused multiply-add", cuda=_SWITCH, cpu=_SWITCH, elementwise=_SWITCH, elementwise_cpu=_SWITCH,
    ),
    Optimisation(
        "fast-math", "fast_math",
        _choice(off="IEEE arithmetic", on="algebraic shortcuts that ignore NaN, infinity and rounding"),
        literature="-use_fast_math", cuda=_SWITCH, cpu=_SWITCH, elementwise=_SWITCH, elementwise_cpu=_SWITCH, on_request=True,
    ),
    Optimisation(
        "float64 accumulation", "accumulate",
        _choice(native="sums in the precision of the result", f64="sums of tiles are added in float64"),
        literature="mixed precision", cuda=("native", "f64"), cpu=("native", "f64"), on_request=True,
    ),
    Optimisation(
        "loop splitting", "fission",
        _choice(off="all results in one kernel", on="a kernel for each independent group of results"),
        literature="loop fission", cuda=_SWITCH, cpu=_SWITCH, elementwise=_SWITCH, elementwise_cpu=_SWITCH,
    ),
    Optimisation(
        "branch splitting", "branches",
        _choice(together="both sides of a branch in one kernel", apart="a kernel for each side of the branch"),
        literature="splitting of if-else", cuda=("together", "apart"), cpu=("together", "apart"),
        elementwise=("together", "apart"), elementwise_cpu=("together", "apart"),
    ),
    Optimisation(
        "if-elimination", "self_term",
        _choice(test="tested for every pair, where the function does so", loops="two loops, before and after the element itself",
                drop="no test: the term is proved to be zero"),
        literature="if-elimination through softening; two loops instead of the if",
        cuda=("test", "loops", "drop"), cpu=("test", "loops", "drop"),
    ),
    Optimisation(
        "invariant code motion", "hoist",
        _choice(off="computed for every pair", on="what no source changes is computed once a target"),
        literature="loop-invariant code motion", cuda=_SWITCH, cpu=_SWITCH,
    ),
    Optimisation(
        "reciprocity", "reciprocity",
        _choice(off="each pair is computed from both sides", scratch="partial sums in memory, added by a second kernel",
                ordered="blocks add to the result in a fixed order"),
        literature="Newton's third law", cuda=("off", "scratch", "ordered"), cpu=("off", "scratch", "ordered"),
        shape=(("block", 32), ("tile", 0), ("slices", 1), ("parts", 1), ("targets", 8), ("unroll", 1), ("prefetch", "none"),
               ("hoist", False), ("self_term", "test"), ("accumulate", "native")),
    ),
    Optimisation(
        "shared-memory blocking", "tile", _tile,
        literature="tiling", cuda=(0, 64, 128, 256, 512, 1024), cpu=(0, 128, 512, 2048),
    ),
    Optimisation(
        "thread merging", "targets",
        lambda v, kind: f"{v} {'targets' if v > 1 else 'target'} a {'thread' if is_gpu(kind) else 'loop'}"
        + (" share every source that is loaded" if v > 1 else ""),
        literature="register blocking", cuda=(1, 2, 4, 8, 16), cpu=(1, 2, 4, 8), sites=(1, 2, 4),
    ),
    Optimisation(
        "slicing of tiles", "slices",
        lambda v, kind: f"{v} groups of threads divide the sources of a tile" if v > 1 else "every thread meets every source",
        literature="several threads a body", cuda=(1, 2, 4, 8, 16),
    ),
    Optimisation(
        "splitting of sources", "parts",
        lambda v, kind: f"{v} blocks divide the sources of a target; a second kernel adds their sums in order"
        if v > 1 else "one block meets all sources of its targets",
        literature="split-k", cuda=(1, 2, 4, 8, 16, 32, 64),
    ),
    Optimisation(
        "data prefetching", "prefetch",
        _choice(none="a tile is fetched when it is needed", registers="the next tile is fetched into registers meanwhile",
                **{"async": "the next tile is copied asynchronously meanwhile"}),
        literature="double buffering", cuda=("none", "registers", "async"),
    ),
    Optimisation(
        "loop unrolling", "unroll", _unroll, literature="loop unrolling", cuda=(1, 2, 4, 8, 16, 32, 0),
    ),
    Optimisation(
        "constant-memory parameters", "uniforms",
        lambda v, kind: f"in {v} memory" if is_gpu(kind) else "arguments of the call",
        literature="constant memory", cuda=("global", "constant"), elementwise=("global", "constant"),
    ),
    Optimisation(
        "memory layout", LAYOUT, lambda v, kind: f"records lie as {v}", literature="structure-of-arrays and relatives",
    ),
    Optimisation(
        "thread-block merging", "block",
        lambda v, kind: f"blocks of {v} threads" if v else "no blocks",
        literature="block size", cuda=(32, 64, 128, 256, 512, 1024), elementwise=(32, 64, 128, 256, 512, 1024),
    ),
    Optimisation(
        "launch bounds", "min_blocks", _min_blocks,
        literature="__launch_bounds__", cuda=(0, 1, 2, 3, 4, 6, 8), elementwise=(0, 1, 2, 4, 8),
    ),
    Optimisation(
        "register cap", "registers", _cap,
        literature="-maxrregcount", cuda=(0, 32, 40, 48, 64, 96, 128, 168), elementwise=(0, 32, 40, 64),
    ),
    Optimisation(
        "SIMD width", "vector_bits", _vector_bits,
        literature="vectorisation", cpu=(0, 256, 512), elementwise_cpu=(0, 256, 512),
    ),
)  # fmt: skip


def optimisation(field: str) -> Optimisation:
    """The entry of a field of the plan."""
    return next(o for o in OPTIMISATIONS if o.field == field)
