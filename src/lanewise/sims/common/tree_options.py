"""Errors about trees in the words of commands: who says `--theta 2` reads of `--theta 2`, and not
of `Tree(theta=2.0)`.

    Tree(method='dual', accuracy=...): ... choose theta= and order=, or method='walk'
    --walk dual, --accuracy: ... choose --theta and --order, or --walk walk
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from lanewise.sims import PRODUCTS
from lanewise.support.errors import ArgumentError, CompileError, FarFieldWarning, InputError

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = {n: n for n in ("accuracy", "theta", "order", "leaf")} | {"method": "walk"}
_SETTING = re.compile(
    r"\w+\([^()]*\)|"  # of something else
    rf"\b({'|'.join(OPTIONS)})=('\w*'|\.\.\.|-?\w+(?:\.\w+)?(?:[+-]\d+)?|)",
    re.ASCII,
)
_TREE = re.compile(r"(?:lw\.)?Tree\(([^()]*)\)")
_CHOICE = re.compile(r"\b(walk|dual)\((order=\d+, leaf=\d+), opening=([^()]*)\)")
FLOAT64 = "records of float64"
IN_PYTHON = "; lw.far_errors measures what that gives"


def in_options(text: str, *, precision: bool) -> str:
    """The text with options for settings of trees. precision: whether the command has that of
    records.
    """
    text = _CHOICE.sub(r"method='\1', \2 and an opening of \3", text)
    text = text.replace(IN_PYTHON, "").replace("lw.AllPairs()", "--method direct")
    text = _SETTING.sub(_option, _TREE.sub(r"\1", text))
    return text.replace(FLOAT64, "--precision f64") if precision else text


def _option(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    value = "" if found[2] == "..." else found[2].strip("'")
    return f"--{OPTIONS[found[1]]} {value}".rstrip()


@contextmanager
def _warning(said: Callable[[str], str]) -> Generator[None]:
    """Within the block warnings of far fields are lines of the command."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if category is FarFieldWarning:
            print(f"warning: {said(str(message))}", file=sys.stderr)
        else:
            before(message, category, *place, **options)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def speaking_options(command: F) -> F:
    """A command whose errors and warnings about trees speak of its options.

    Its argument `name`, where it has one, is that of a product, or of a kernel of a file, whose
    records have their own types.
    """

    @wraps(command)
    def run(*positional: Any, **named: Any) -> Any:
        precision = named.get("name", "gravity") in PRODUCTS

        def said(text: str) -> str:
            return in_options(text, precision=precision)

        try:
            with _warning(said):
                return command(*positional, **named)
        except CompileError as e:  # its message shows a line of the user's
            raise CompileError(
                e.message, e.location, found=said(e.found), wanted=said(e.wanted),
                hint=said(e.hint), calls=e.calls,
            ) from e  # fmt: skip
        except (ArgumentError, InputError) as error:
            text = said(str(error))
            if text == str(error):
                raise
            raise InputError(text) from error

    return cast(F, run)
