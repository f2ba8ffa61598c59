"""The indefinite article of a name in a message."""

from __future__ import annotations

import re

_VOWEL = re.compile(r"[aeio]|[fi]\d", re.IGNORECASE)  # `f32` begins as `ef` is said, `u8` as `you`


def an(thing: object) -> str:
    """The name with its article: an f32, a vec3, an Agent."""
    return f"an {thing}" if _VOWEL.match(str(thing)) else f"a {thing}"
