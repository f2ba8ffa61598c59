"""Kernels from text: a module that exists only in memory, with lines and columns as in a file."""

from __future__ import annotations

import linecache
import math
import textwrap
import types
from typing import Any

import numpy as np

import lanewise as lw


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3


def module(source: str, file: str = "kernels.py", **names: Any) -> types.SimpleNamespace:
    """Execute source text under a file name; the names it defines. Without a module of that name Python finds the lines
    in its cache.
    """
    text = textwrap.dedent(source).strip("\n") + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    known = {"lw": lw, "np": np, "math": math, "Body": Body, **names}
    exec(compile(text, file, "exec"), known)
    return types.SimpleNamespace(**known)
