"""GPUs for units: one is taken when the part of a unit's work begins that needs it, and given back
when that part ends.

The claims lie in one folder of the machine, so all scans and searches of a user share its GPUs, no
matter who started them. Who asked first gets the first one that is free. Claims of processes that
are gone are taken over.
"""

from __future__ import annotations

import getpass
import glob
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lanewise.io.claims import claimed, holder_of, lock_of
from lanewise.support.errors import DeviceError, InputError

PATIENCE = 0.05  # seconds between two looks for a card that is free
WAITING = "waiting for a GPU"  # what the status says of a unit


@contextmanager
def a_card(
    cards: Sequence[str],
    mark: Path | None = None,
    folder: Path | None = None,
    busy: Callable[[], None] = lambda: None,
) -> Generator[str]:
    """One of these cards, which no other process has within the block; waits for it.

    mark: claimed while it waits, for others to see. folder: of the claims. busy: called if it has
    to wait. Raises DeviceError where there are no cards.
    """
    check_cards(cards)
    place = _place() if folder is None else folder
    with ExitStack() as held:
        with claimed([mark]), _ticket(place, cards) as ticket:
            card = _free(place, cards, ticket, held)
            if card is None:
                busy()
            while card is None:
                time.sleep(PATIENCE)
                card = _free(place, cards, ticket, held)
        yield card


def check_cards(cards: Sequence[str]) -> None:
    """Raise DeviceError where there are no cards."""
    if not cards:
        raise DeviceError("the units run on cuda, and this machine has no GPU; wanted --device cpu")


def is_wanted(card: str, folder: Path | None = None) -> bool:
    """Whether a process waits for this card."""
    place, name = _place() if folder is None else folder, _name(card)
    return any(holder_of(place / t) is not None for t in _tickets(place, name))


def waits(mark: Path) -> bool:
    """Whether a process waits for a card with this mark."""
    return holder_of(mark) is not None


@contextmanager
def _ticket(place: Path, cards: Sequence[str]) -> Generator[str]:
    """A place in the queues of these cards within the block: tickets are in the order of their
    names.
    """
    ticket = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    with claimed([place / f"{_name(card)}.{ticket}" for card in cards]):
        yield ticket


def _free(place: Path, cards: Sequence[str], ticket: str, held: ExitStack) -> str | None:
    """A card that is held now; None where others have all, or wait for them since before."""
    for card in cards:
        if not _is_first(place, _name(card), ticket):
            continue
        try:
            held.enter_context(claimed([place / _name(card)]))
        except InputError:  # another process's
            continue
        return card
    return None


def _is_first(place: Path, card: str, ticket: str) -> bool:
    """Whether no other process waits for a card since before; tickets of the dead are removed."""
    for name in _tickets(place, card):
        if name >= f"{card}.{ticket}":
            return True
        if holder_of(place / name) is not None:
            return False
        lock_of(place / name).unlink(missing_ok=True)
    return True


def _tickets(place: Path, card: str) -> list[str]:
    """Those of a card, in their order."""
    locks = place.glob(f".{glob.escape(card)}.[0-9]*.lock")
    return sorted(lock.name[1 : -len(".lock")] for lock in locks)


def _name(card: str) -> str:
    """Of the file of a card."""
    return card.replace("/", "_")


def _place() -> Path:
    """The folder of this user's claims."""
    place = Path(tempfile.gettempdir()) / f"lanewise-cards-{getpass.getuser()}"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


class Turn:
    """Whether this process shares cards with others, and holds one now: `TURN` is the only one.

    A unit's process `shares`; what runs there takes its turn where its first array is made. In any
    other process all of it does nothing.
    """

    def __init__(self) -> None:
        self._cards: tuple[str, ...] = ()
        self._mark: Path | None = None
        self._held: ExitStack | None = None

    @property
    def is_shared(self) -> bool:
        """Whether this process takes turns."""
        return bool(self._cards)

    def share(self, cards: Sequence[str], mark: Path) -> None:
        """Take turns from now on, on any of these cards; for the mark see `a_card`."""
        self._cards, self._mark = tuple(cards), mark

    def begin(self) -> None:
        """Wait for a card, which is then the only one that this process sees. Nothing may have
        asked the driver for its devices before, as it asks for the visible ones once.
        """
        if not self._cards or self._held is not None:
            return
        with ExitStack() as held:
            os.environ["CUDA_VISIBLE_DEVICES"] = held.enter_context(a_card(self._cards, self._mark))
            self._held = held.pop_all()

    def end(self) -> None:
        """Give the card back."""
        if self._held is not None:
            held, self._held = self._held, None
            held.close()


TURN = Turn()
