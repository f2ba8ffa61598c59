"""The guarded process of long campaigns: `python -m tests.fuzz.worker CAMPAIGN MODULE FUNCTION`."""

from __future__ import annotations

import importlib
import sys
import warnings

from tests.fuzz.campaign import run_case
from tests.fuzz.guarded import serve

if __name__ == "__main__":
    campaign, module, function = sys.argv[1:]
    body = getattr(importlib.import_module(module), function)
    warnings.simplefilter("error")  # as in all tests
    serve(lambda question: run_case(campaign, body, **question))
