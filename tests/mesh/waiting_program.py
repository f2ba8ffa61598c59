"""Rank 0 is at its end, and waits for rank 1, which is over for all that rank 0 can see of it: no launcher ends anybody
here.
"""

from __future__ import annotations

import time

import lanewise as lw
from lanewise.runtime import ranks

mesh = lw.Mesh.over_ranks("cpu")
if mesh.rank == 1:
    time.sleep(3600)  # more than a test waits for anything
else:
    known, begin = ranks.joined(), time.monotonic()
    assert known is not None
    other = known.members[1]
    ranks.Member.is_gone = property(lambda self: self == other and time.monotonic() - begin > 2)  # type: ignore[assignment]
