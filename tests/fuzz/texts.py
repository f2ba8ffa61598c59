"""Modules from generated text, as a user's file would be: executed without what this file imports from the future."""

from __future__ import annotations

import io
import linecache
import math
import types
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import lanewise as lw


@contextmanager
def executed(text: str, file: str) -> Iterator[types.SimpleNamespace]:
    """The names that a text defines, which can be compiled as long as the context lasts: until then Python knows its lines."""
    linecache.cache[file] = (len(text), None, io.StringIO(text, newline=None).readlines(), file)
    names = {"__name__": "fuzzed", "lw": lw, "np": np, "math": math}
    try:
        exec(compile(text, file, "exec", dont_inherit=True), names)
        yield types.SimpleNamespace(**names)
    finally:
        linecache.cache.pop(file, None)
