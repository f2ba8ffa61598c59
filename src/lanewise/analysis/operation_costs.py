"""Instructions of an operation on a GPU, by its name and type, and how long they take."""

from __future__ import annotations

from collections.abc import Mapping

from lanewise.language.types import BOOL, F32, F64, I64, Scalar

Cost = Mapping[str, float]


_FLOAT: dict[str, Cost] = {
    "/": {"special": 1, "fp32 fma": 5, "compare": 1, "branch": 3},
    "sqrt": {"special": 1, "fp32 mul": 2, "fp32 fma": 2, "integer": 1, "compare": 1, "branch": 3},
    "rsqrt": {"special": 1},
    "exp": {"special": 1, "fp32 fma": 4, "fp32 mul": 1, "integer": 1},
    "exp2": {"special": 1, "fp32 mul": 2, "compare": 1},
    "log": {
        "fp32 fma": 12,
        "fp32 mul": 2,
        "fp32 add": 1,
        "integer": 5,
        "conversion": 1,
        "compare": 2,
        "select": 2,
    },
    "log2": {"special": 1, "fp32 mul": 1, "fp32 add": 1, "compare": 1, "select": 1},
    "log10": {"special": 1, "fp32 mul": 2, "fp32 add": 1, "compare": 1, "select": 1},
    "sin": {
        "fp32 fma": 9,
        "fp32 mul": 2,
        "conversion": 2,
        "integer": 2,
        "compare": 3,
        "select": 4,
        "branch": 2,
    },
    "cos": {
        "fp32 fma": 9,
        "fp32 mul": 2,
        "conversion": 2,
        "integer": 3,
        "compare": 3,
        "select": 4,
        "branch": 2,
    },
    "tan": {
        "fp32 fma": 11,
        "fp32 mul": 3,
        "special": 1,
        "conversion": 2,
        "integer": 2,
        "compare": 2,
        "select": 1,
        "branch": 2,
    },
    "asin": {"special": 1, "fp32 fma": 10, "fp32 mul": 4, "compare": 3, "select": 2},
    "acos": {"special": 1, "fp32 fma": 10, "fp32 mul": 4, "compare": 3, "select": 3, "integer": 1},
    "atan": {"special": 1, "fp32 fma": 8, "fp32 mul": 2, "compare": 2, "select": 2},
    "atan2": {
        "special": 1,
        "fp32 fma": 16,
        "fp32 mul": 2,
        "compare": 6,
        "select": 5,
        "integer": 2,
        "branch": 5,
    },
    "sinh": {"special": 2, "fp32 fma": 10, "fp32 mul": 2, "compare": 2, "select": 1, "branch": 2},
    "cosh": {"special": 2, "fp32 fma": 5, "fp32 mul": 2, "integer": 1},
    "tanh": {
        "special": 2,
        "fp32 fma": 6,
        "fp32 mul": 2,
        "fp32 add": 1,
        "compare": 2,
        "select": 1,
        "integer": 1,
    },
    "cbrt": {"special": 2, "fp32 fma": 2, "fp32 mul": 5, "fp32 add": 2, "compare": 3, "select": 2},
    "pow": {
        "special": 1,
        "fp32 fma": 19,
        "fp32 mul": 10,
        "fp32 add": 13,
        "conversion": 3,
        "integer": 6,
        "compare": 10,
        "select": 6,
        "branch": 4,
    },
    "expm1": {"special": 1, "fp32 fma": 9, "fp32 mul": 2, "integer": 2, "compare": 2, "select": 2},
    "log1p": {
        "fp32 fma": 11,
        "fp32 mul": 2,
        "fp32 add": 2,
        "integer": 6,
        "compare": 4,
        "select": 3,
    },
    "erf": {"special": 1, "fp32 fma": 9, "fp32 mul": 1, "compare": 2, "select": 10},
    "erfc": {"special": 2, "fp32 fma": 17, "fp32 mul": 5, "fp32 add": 3, "compare": 3, "select": 3},
    "gamma": {"special": 4, "fp32 fma": 24, "fp32 mul": 8, "compare": 8, "select": 6, "branch": 6},
    "hypot": {
        "special": 1,
        "fp32 fma": 3,
        "fp32 mul": 6,
        "integer": 5,
        "compare": 3,
        "select": 1,
        "branch": 3,
    },
    "floor": {"conversion": 1},
    "round": {"conversion": 1},
    "ceil": {"conversion": 1},
    "trunc": {"conversion": 1},
    "%": {
        "special": 1,
        "fp32 fma": 8,
        "fp32 mul": 4,
        "fp32 add": 4,
        "conversion": 1,
        "compare": 6,
        "select": 4,
        "branch": 6,
    },
    "//": {
        "special": 2,
        "fp32 fma": 14,
        "fp32 mul": 4,
        "fp32 add": 6,
        "conversion": 2,
        "compare": 8,
        "select": 6,
        "branch": 9,
    },
    "min": {"extreme": 1},
    "max": {"extreme": 1},
    "clamp": {"extreme": 2},
    "mix": {"fp32 add": 1, "fp32 fma": 1},
    "fma": {"fp32 fma": 1},
    "abs": {},
    "+": {"fp32 add": 1},
    "-": {"fp32 add": 1},
    "*": {"fp32 mul": 1},
    "select": {"select": 1},
}


# What `--use_fast_math` makes of them.
_FAST: dict[str, Cost] = {
    "/": {"special": 1, "fp32 mul": 1},
    "sqrt": {"special": 1},
    "exp": {"special": 1, "fp32 mul": 1},
    "exp2": {"special": 1},
    "log": {"special": 1, "fp32 mul": 1},
    "log2": {"special": 1},
    "log10": {"special": 1, "fp32 mul": 1},
    "sin": {"special": 1, "fp32 mul": 1},
    "cos": {"special": 1, "fp32 mul": 1},
    "tan": {"special": 3, "fp32 mul": 2},
    "tanh": {"special": 1},
    "pow": {"special": 2, "fp32 mul": 1},
    "hypot": {"special": 1, "fp32 fma": 1, "fp32 mul": 4, "integer": 5, "compare": 2, "select": 1},
}


_DOUBLE: dict[str, Cost] = {
    "/": {
        "special": 1,
        "fp64 fma": 7,
        "fp64 mul": 1,
        "fp32 fma": 1,
        "compare": 2,
        "integer": 1,
        "branch": 3,
    },
    "sqrt": {"special": 1, "fp64 fma": 5, "fp64 mul": 3, "integer": 5, "compare": 1, "branch": 3},
    "rsqrt": {"special": 1, "fp64 fma": 3, "fp64 mul": 2, "integer": 2, "compare": 1, "select": 2},
    "exp": {
        "fp64 fma": 14,
        "fp64 add": 3,
        "fp64 mul": 1,
        "integer": 12,
        "compare": 2,
        "select": 2,
        "branch": 3,
    },
    "exp2": {
        "fp64 fma": 12,
        "fp64 add": 5,
        "fp64 mul": 2,
        "integer": 12,
        "compare": 3,
        "select": 3,
        "branch": 3,
    },
    "log": {
        "special": 1,
        "fp64 fma": 17,
        "fp64 add": 8,
        "fp64 mul": 5,
        "integer": 22,
        "compare": 4,
        "select": 2,
        "branch": 3,
    },
    "sin": {
        "fp64 fma": 12,
        "fp64 mul": 3,
        "fp64 add": 2,
        "wide conversion": 2,
        "integer": 12,
        "select": 2,
        "branch": 5,
    },
    "tanh": {
        "special": 2,
        "fp64 fma": 28,
        "fp64 add": 4,
        "fp64 mul": 2,
        "wide conversion": 3,
        "integer": 10,
        "branch": 3,
    },
    "cbrt": {
        "special": 3,
        "fp64 fma": 6,
        "fp64 mul": 3,
        "fp64 add": 4,
        "wide conversion": 2,
        "conversion": 2,
        "integer": 14,
    },
    "atan2": {
        "special": 1,
        "fp64 fma": 26,
        "fp64 add": 8,
        "fp64 mul": 3,
        "integer": 12,
        "select": 16,
        "branch": 6,
    },
    "hypot": {
        "special": 1,
        "fp64 fma": 4,
        "fp64 mul": 7,
        "fp64 add": 3,
        "integer": 18,
        "select": 8,
        "compare": 4,
    },
    "acos": {
        "special": 1,
        "fp64 fma": 32,
        "fp64 add": 8,
        "fp64 mul": 6,
        "integer": 16,
        "branch": 6,
    },
    "pow": {
        "special": 1,
        "fp64 fma": 35,
        "fp64 add": 14,
        "fp64 mul": 6,
        "integer": 30,
        "compare": 8,
        "select": 8,
        "branch": 10,
    },
    "floor": {"wide conversion": 1},
    "round": {"wide conversion": 1},
    "ceil": {"wide conversion": 1},
    "trunc": {"wide conversion": 1},
    "%": {"fp64 mul": 3, "fp64 add": 6, "integer": 120, "select": 40, "branch": 20},
    "//": {
        "fp64 mul": 4,
        "fp64 add": 10,
        "fp64 fma": 7,
        "special": 1,
        "integer": 120,
        "select": 44,
        "branch": 24,
    },
    "min": {"fp64 add": 2, "select": 2},
    "max": {"fp64 add": 2, "select": 2},
    "clamp": {"fp64 add": 4, "select": 4},
    "mix": {"fp64 add": 1, "fp64 fma": 1},
    "fma": {"fp64 fma": 1},
    "abs": {},
    "+": {"fp64 add": 1},
    "-": {"fp64 add": 1},
    "*": {"fp64 mul": 1},
    "select": {"select": 2},
}


# Functions of float64 that are not listed cost about what a sine or a logarithm costs.
_DOUBLE_OTHERS: Cost = {
    "special": 1,
    "fp64 fma": 24,
    "fp64 add": 5,
    "fp64 mul": 4,
    "integer": 14,
    "branch": 4,
}


_INTEGER: dict[str, Cost] = {
    "//": {"integer": 18, "conversion": 2, "special": 1, "compare": 4},
    "%": {"integer": 18, "conversion": 2, "special": 1, "compare": 4},
    "min": {"integer": 1},
    "max": {"integer": 1},
    "clamp": {"integer": 2},
    "abs": {"integer": 1},
    "select": {"select": 1},
}


_WIDE_INTEGER: dict[str, Cost] = {
    "*": {"integer": 3},
    "//": {"integer": 60, "wide conversion": 2, "special": 1, "compare": 8, "branch": 4},
    "%": {"integer": 60, "wide conversion": 2, "special": 1, "compare": 8, "branch": 4},
    "min": {"compare": 2, "select": 2},
    "max": {"compare": 2, "select": 2},
    "clamp": {"compare": 4, "select": 4},
    "abs": {"integer": 3},
    "select": {"select": 2},
    "<<": {"integer": 3},
    ">>": {"integer": 3},
}


# Cycles until the result of an instruction can be used, about what micro-benchmarks of recent
# architectures find.
LATENCY = {
    "fp32 add": 4.0,
    "fp32 mul": 4.0,
    "fp32 fma": 4.0,
    "fp64 add": 8.0,
    "fp64 mul": 8.0,
    "fp64 fma": 8.0,
    "special": 20.0,
    "integer": 5.0,
    "compare": 5.0,
    "select": 5.0,
    "extreme": 5.0,
    "conversion": 12.0,
    "wide conversion": 16.0,
    "branch": 4.0,
}


# of a sequence: they run next to its arithmetic
_CHECKS = frozenset({"integer", "compare", "select"})


# The same of a core of a CPU: AMD Zen 4, of EPYC 9004, by Agner Fog's instruction tables.
CPU_LATENCY = {
    "fp32 add": 3.0,
    "fp32 mul": 3.0,
    "fp32 fma": 4.0,
    "fp64 add": 3.0,
    "fp64 mul": 3.0,
    "fp64 fma": 4.0,
    "special": 12.0,
    "integer": 1.0,
    "compare": 1.0,
    "select": 1.0,
    "extreme": 2.0,
    "conversion": 4.0,
    "wide conversion": 4.0,
    "branch": 1.0,
}

# Operations of floats that the divider of a CPU makes, float32 and float64 alike.
CPU_DIVIDER_LATENCY = {"/": 11.0, "sqrt": 15.0, "rsqrt": 15.0}


def latency_of(cost: Cost, latencies: Mapping[str, float] = LATENCY) -> float:
    """Cycles from the operands to the result of an operation with these instructions."""
    alone = len(cost) == 1
    return sum(latencies[kind] * n for kind, n in cost.items() if alone or kind not in _CHECKS)


COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "isnan", "isinf", "isfinite"})


# predicates combine within the comparisons that make them
_FREE = frozenset({"leaf", "literal", "and", "or", "not"})


def operation_cost(
    operation: str, kind: Scalar, operands: tuple[Scalar, ...], *, fast_math: bool = False
) -> Cost:
    """Instructions of an operation with a result of type `kind`; division of integers is that
    by no constant.
    """
    if operation in _FREE or (operation == "negate" and kind.is_float):
        return {}
    if operation == "cast":
        return _conversion(operands[0], kind)
    if operation in COMPARISONS:
        return (
            {"fp64 add": 1} if operands[0] == F64 else {"compare": 2 if operands[0] == I64 else 1}
        )
    if kind == F32:
        return (_FAST.get(operation) if fast_math else None) or _FLOAT[operation]
    if kind == F64:
        return _DOUBLE.get(operation, _DOUBLE_OTHERS)
    if kind == BOOL:
        return {"integer": 1}
    if kind == I64:
        return _WIDE_INTEGER.get(operation, {"integer": 2})
    return _INTEGER.get(operation, {"integer": 1})


def _conversion(source: Scalar, target: Scalar) -> Cost:
    if source == target:
        return {}
    if BOOL in (source, target):
        return {"select": 1} if source == BOOL else {"compare": 1}
    if source.is_integer and target.is_integer:
        return {"integer": 1} if target == I64 and source.kind == "i" else {}
    return {"wide conversion": 1} if 8 in (source.size, target.size) else {"conversion": 1}
