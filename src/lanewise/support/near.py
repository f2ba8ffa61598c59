"""What a misspelled name may have meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def near(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'softening'?`, or nothing where no known name is like this one."""
    close = difflib.get_close_matches(name, list(names))
    if not close:
        return ""
    alike = [difflib.SequenceMatcher(None, known, name).ratio() for known in close]
    best = [known for known, ratio in zip(close, alike, strict=True) if ratio == alike[0]]
    # Of several that are as close, the one with the same letters at the beginning and as many:
    # 'sao' is 'soa', and no 'soaoas'.
    nearest = min(best, key=lambda known: (abs(len(known) - len(name)), known[:1] != name[:1]))
    return f"; did you mean {nearest!r}?"


def misspelled(function: Callable[..., Any], name: str, given: Iterable[str]) -> TypeError | None:
    """Python's own error about a keyword that a function does not have, with the parameter that it
    is like; None where there is none. name: how users call the function; given: the keywords.
    """
    parameters = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    given = list(given)
    free = [n for n, p in parameters.items() if p.kind in by_name and n not in (*given, "self")]
    for keyword in given:
        if keyword not in parameters and (meant := near(keyword, free)):
            return TypeError(f"{name}() got an unexpected keyword argument {keyword!r}{meant}")
    return None


def meant_by(
    error: TypeError, function: Callable[..., Any], name: str, given: Iterable[str]
) -> TypeError | None:
    """`misspelled`, where Python refused the call itself; None of an error from within it."""
    within = error.__traceback__ is not None and error.__traceback__.tb_next is not None
    return None if within else misspelled(function, name, given)
