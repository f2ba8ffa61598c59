"""`translate` takes an agent function. FLAME GPU makes C++ of it; here Python calls it, with the C++ names in `math`."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def translate(function: Callable[..., Any]) -> Callable[..., Any]:
    assert getattr(function, "is_agent_function", False), "the decorator is missing"
    function.__globals__["math"] = SimpleNamespace(sqrtf=math.sqrt, sinf=math.sin)
    return function
