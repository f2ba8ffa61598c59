"""Words of exact sums in place of arrays of floats that elements are added to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from lanewise.frontend.function import Signature
from lanewise.frontend.scattered import summed_arrays
from lanewise.language.types import I64
from lanewise.launch.arguments import Arguments
from lanewise.primitives.exact_sums import summed, words_for
from lanewise.runtime.device import get_device


def add_words(signature: Signature, arrays: Mapping[str, Any], arguments: Arguments) -> None:
    """Words of exact sums stand in place of arrays of floats that are added to, and are added to
    these behind the kernel.
    """
    rows = {
        n: arrays[n].reshape(-1)
        for n in arrays
        if n in summed_arrays(signature.source, signature.arrays)
    }
    if not rows:
        return
    words = {n: words_for(row, arguments.device) for n, row in rows.items()}
    arguments.added |= {n: (each, I64) for n, each in words.items()}
    arguments.summed |= rows
    turns = get_device(arguments.device).turns(f"a bound call of {signature.source.name}")
    arguments.surround(partial(summed, rows, words, arguments.device, turns=turns))
