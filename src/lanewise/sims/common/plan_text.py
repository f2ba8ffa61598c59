"""A plan as text in a checkpoint: defaults may change with a tuning or a version, and with the plan
the order of sums.
"""

from __future__ import annotations

import json
from typing import Any, Literal, get_args, get_origin, get_type_hints

import lanewise as lw


def to_json(plan: lw.Plan) -> str:
    """Every field of a plan."""
    return json.dumps(plan.as_dict())


def from_json(text: str) -> lw.Plan:
    """The complete plan that `to_json` wrote; raises `ValueError` with what is wrong.

    Fields that a later version added are neutral: the version that wrote the plan did not have what
    they decide about.
    """
    try:
        decoded: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error
    if not isinstance(decoded, dict):
        raise ValueError(f"wanted the fields of a plan, found {text!r}")
    allowed = get_type_hints(lw.Plan)
    for name, value in decoded.items():  # pyright: ignore[reportUnknownVariableType]
        if name not in allowed:
            raise ValueError(f"a plan has no field {name!r}")
        if not _fits(value, allowed[name]):
            raise ValueError(f"its field {name!r} is {value!r}")
    return lw.Plan(**decoded).filled(lw.Plan.neutral())


def _fits(value: object, annotation: Any) -> bool:
    """Whether a value is one of `int | None`, `Literal["off", "scratch"] | None` and so on, but not
    None.
    """
    kinds = [k for k in get_args(annotation) if k is not type(None)]
    return any(
        value in get_args(k) if get_origin(k) is Literal else type(value) is k for k in kinds
    )
