"""The guarded process of long campaigns: `python -m tests.fuzz.worker CAMPAIGN MODULE FUNCTION`.

A question may name another campaign of random programs, for runs of many patterns in turn.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

from tests.fuzz.campaign import run_case
from tests.fuzz.guarded import serve


def answered(campaign: str, module: str, function: str, question: dict[str, Any]) -> dict[str, Any]:
    """What one case gave."""
    named = question.pop("named", None)
    if named is not None:
        campaign, module, function = named
    return run_case(campaign, getattr(importlib.import_module(module), function), **question)


if __name__ == "__main__":
    first, where, name = sys.argv[1:]
    importlib.import_module(where)  # before it says that it is ready: no case waits for it
    warnings.simplefilter("error")  # as in all tests
    serve(lambda question: answered(first, where, name, question))
