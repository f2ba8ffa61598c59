"""lanewise: write the physics for one element; the data structure and the kernel are designed for your machine."""

from typing import TYPE_CHECKING

from lanewise._version import __version__
from lanewise.advice import LayoutChoice, Use, choose_layout
from lanewise.array_files import load, save
from lanewise.array_types import Array1, Array2, Array3, index
from lanewise.arrays import RecordArray, concatenate
from lanewise.collective.cumsum import cumsum
from lanewise.collective.histogram import histogram
from lanewise.compaction import compact
from lanewise.errors import (
    ArgumentError,
    CompileError,
    DeviceError,
    InputError,
    LanewiseError,
    PlanError,
    RecordError,
    StateError,
    VerificationError,
)
from lanewise.fates import Fate
from lanewise.frontend.helpers import function
from lanewise.interop.jax import jax_function
from lanewise.interop.torch import torch_function
from lanewise.interpolation import interpolate
from lanewise.lattices import D1Q3, D2Q5, D2Q9, D3Q7, D3Q19, D3Q27, Lattice
from lanewise.layouts import AoAS, AoS, AoSoA, Layout, SoA, SoAoAS
from lanewise.moved import MOVED
from lanewise.patterns.elementwise.kernel import elementwise
from lanewise.patterns.elementwise.kernel import max_ as max
from lanewise.patterns.elementwise.kernel import min_ as min
from lanewise.patterns.elementwise.kernel import sum_ as sum
from lanewise.patterns.pairwise.kernel import pairwise
from lanewise.patterns.search import AllPairs, Bounded, DynamicGrid, Nearest, Neighbors, Open, Periodic, StaticGrid
from lanewise.patterns.search.queries import nearest, neighbors
from lanewise.patterns.search.ragged import Ragged
from lanewise.patterns.segmentwise.kernel import segmentwise
from lanewise.patterns.sitewise.couple import couple
from lanewise.patterns.sitewise.kernel import Sitewise, sitewise
from lanewise.patterns.sitewise.stencil import Stencil, stencil
from lanewise.patterns.threadwise.kernel import threadwise
from lanewise.plan import Plan
from lanewise.population import Population
from lanewise.profiling import Profile
from lanewise.ragged import RaggedArray, ragged
from lanewise.random_numbers import (
    drandom,
    normal,
    normal4,
    random,
    random4,
    random_integer,
    unit_vector,
    unit_vector2,
)
from lanewise.record import RecordBase as Record
from lanewise.record import record
from lanewise.reductions import All, ArgKMin, ArgMax, ArgMin, Count, KMin, LogSumExp, Max, Min
from lanewise.reductions import Any_ as Any
from lanewise.runtime.devices import device
from lanewise.scatter import scatter_add, scatter_max, scatter_min
from lanewise.values import (
    Field,
    Row,
    acos,
    asin,
    atan,
    atan2,
    cbrt,
    ceil,
    clamp,
    cos,
    cosh,
    cross,
    dot,
    dpopulations,
    dvec2,
    dvec3,
    dvec4,
    exp,
    exp2,
    f32,
    f64,
    floor,
    fma,
    hypot,
    i32,
    i64,
    index_of,
    isfinite,
    isinf,
    isnan,
    ivec2,
    ivec3,
    ivec4,
    length,
    log,
    log2,
    log10,
    mix,
    normalize,
    pi,
    populations,
    rsqrt,
    same,
    select,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    u32,
    vec2,
    vec3,
    vec4,
    window,
    zeros,
)  # fmt: skip
from lanewise.values import (
    abs_ as abs,
)
from lanewise.values import (
    bool_ as bool,
)
from lanewise.values import (
    pow_ as pow,
)

if TYPE_CHECKING:  # for type checkers: what `__getattr__` imports
    from lanewise import io as io
    from lanewise import sims as sims


def __getattr__(name: str) -> object:
    """`lw.sims` and `lw.io` are imported when they are first used, and so are packages that are gone."""
    if name in ("io", "sims") or f"lanewise.{name}" in MOVED:
        import importlib

        return importlib.import_module(f"lanewise.{name}")
    raise AttributeError(f"module 'lanewise' has no attribute {name!r}")


__all__ = [
    "D1Q3",
    "D2Q5",
    "D2Q9",
    "D3Q7",
    "D3Q19",
    "D3Q27",
    "All",
    "AllPairs",
    "Any",
    "AoAS",
    "AoS",
    "AoSoA",
    "ArgKMin",
    "ArgMax",
    "ArgMin",
    "ArgumentError",
    "Array1",
    "Array2",
    "Array3",
    "Bounded",
    "CompileError",
    "Count",
    "DeviceError",
    "DynamicGrid",
    "Fate",
    "Field",
    "InputError",
    "KMin",
    "LanewiseError",
    "Lattice",
    "Layout",
    "LayoutChoice",
    "LogSumExp",
    "Max",
    "Min",
    "Nearest",
    "Neighbors",
    "Open",
    "Periodic",
    "Plan",
    "PlanError",
    "Population",
    "Profile",
    "Ragged",
    "RaggedArray",
    "Record",
    "RecordArray",
    "RecordError",
    "Row",
    "Sitewise",
    "SoA",
    "SoAoAS",
    "StateError",
    "StaticGrid",
    "Stencil",
    "Use",
    "VerificationError",
    "__version__",
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "bool",
    "cbrt",
    "ceil",
    "choose_layout",
    "clamp",
    "compact",
    "concatenate",
    "cos",
    "cosh",
    "couple",
    "cross",
    "cumsum",
    "device",
    "dot",
    "dpopulations",
    "drandom",
    "dvec2",
    "dvec3",
    "dvec4",
    "elementwise",
    "exp",
    "exp2",
    "f32",
    "f64",
    "floor",
    "fma",
    "function",
    "histogram",
    "hypot",
    "i32",
    "i64",
    "index",
    "index_of",
    "interpolate",
    "isfinite",
    "isinf",
    "isnan",
    "ivec2",
    "ivec3",
    "ivec4",
    "jax_function",
    "length",
    "load",
    "log",
    "log2",
    "log10",
    "max",
    "min",
    "mix",
    "nearest",
    "neighbors",
    "normal",
    "normal4",
    "normalize",
    "pairwise",
    "pi",
    "populations",
    "pow",
    "ragged",
    "random",
    "random4",
    "random_integer",
    "record",
    "rsqrt",
    "same",
    "save",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "segmentwise",
    "select",
    "sin",
    "sinh",
    "sitewise",
    "sqrt",
    "stencil",
    "sum",
    "tan",
    "tanh",
    "threadwise",
    "torch_function",
    "trunc",
    "u32",
    "unit_vector",
    "unit_vector2",
    "vec2",
    "vec3",
    "vec4",
    "window",
    "zeros",
]  # fmt: skip
