"""Flocks that processes share: `python flocks_program.py KIND ...` in each of them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from typing import Any

from lanewise.sims.boids import Flock
from lanewise.support.errors import InputError
from tests.mesh.rank_devices import of_all_ranks
from tests.mesh.test_flocks import KINDS, changed, flock, flown


def lost(place: Any) -> str:
    """What is said of an agent that leaves the world."""
    f = flock(place, boundary="bounded", search="all-pairs")
    state = f.state
    state.position[201], state.forward[201], state.speed[201] = (24.9, 0, 0), (1, 0, 0), 9
    state.up[201] = (0, 1, 0)
    f = Flock(state=state, boundary="bounded", search="all-pairs", world=25.0, device=place)
    try:
        f.run(30)
    except InputError as error:
        return str(error)
    return "nothing"


def bits(place: Any, kinds: Iterable[str]) -> dict[str, str]:
    """What everything leaves, by what it was."""
    found: dict[str, Any] = {kind: flown(place, (1, 39), **KINDS[kind]) for kind in kinds}
    found["few"] = flown(place, (5,), agents=3)
    found["changed"] = changed(place)
    return {n: hashlib.sha256(repr(v).encode()).hexdigest() for n, v in found.items()} | {"lost": lost(place)}


def main(*kinds: str) -> None:
    mesh = of_all_ranks()
    found = bits(mesh, kinds)
    if mesh.rank == 0:
        print(json.dumps({"mesh": str(mesh), "bits": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
