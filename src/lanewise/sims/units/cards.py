"""GPUs for units: one is taken when a unit's process begins, and given back when it ends.

The claims lie in one folder of the machine, so all scans of a user share its GPUs, no matter who
started them. Claims of processes that are gone are taken over.
"""

from __future__ import annotations

import getpass
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lanewise.io.claims import claimed
from lanewise.support.errors import DeviceError, InputError

PATIENCE = 0.2  # seconds between two looks for a card that is free


@contextmanager
def a_card(
    cards: Sequence[str], stop: threading.Event, folder: Path | None = None
) -> Generator[str | None]:
    """One of these cards, which no other process has within the block; None if `stop` is set
    before one is free.

    folder: of the claims. Raises DeviceError where there are no cards.
    """
    if not cards:
        raise DeviceError("the units run on cuda, and this machine has no GPU; wanted --device cpu")
    place = _place() if folder is None else folder
    with ExitStack() as held:
        while not stop.is_set():
            for card in cards:
                try:
                    held.enter_context(claimed([place / card.replace("/", "_")]))
                except InputError:  # another process's
                    continue
                yield card
                return
            time.sleep(PATIENCE)
        yield None


def _place() -> Path:
    """The folder of this user's claims."""
    place = Path(tempfile.gettempdir()) / f"lanewise-cards-{getpass.getuser()}"
    place.mkdir(mode=0o700, exist_ok=True)
    return place
