"""The layout of arrays that leave it open, as those on GPUs do that are made without one: what the
kernels want that name their record.

At the first call all kernels of the program that name the record have a say, each as often as it
was called so far, and once where it was not. Later the calls since then count, and the records move
once more where a model says that this would have saved more than it costs: never where a caller has
memory of the array, or a call is bound to it.

A choice takes tens of milliseconds, as long as thousands of short calls, and programs make arrays
in loops. So a kernel keeps what was chosen at its calls, for numbers of records, and shares of the
kernels in the calls, that round to the same powers of two: a later look at the same kernels counts,
and chooses nothing anew.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanewise.advice.choice import LayoutChoice
from lanewise.advice.choose import candidates, choice_among
from lanewise.advice.cost import ArrayUse, MemoryModel, memory_model
from lanewise.advice.uses import Use, accesses_of, used_leaves
from lanewise.language.record import Record
from lanewise.language.target import is_compiled
from lanewise.layouts import Layout, default_layout
from lanewise.patterns.calls import Calls
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.known_kernels import kernels_naming
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.open_layout import CAPTURED, THREADS, USUAL, OpenLayout
from lanewise.records.storage import Storage
from lanewise.runtime.device import get_device
from lanewise.support.errors import DeviceError, LanewiseError

VISITED = 256  # elements that a search looks at for each one, where nothing has counted them
WALKING = 8  # times as long as the same arithmetic where neighbours read neighbours
COPIES = 4  # times as long as streaming both layouts: a column of one is spread in the other
NEW_CODE = 0.1  # seconds: what compiling each kernel once more takes
LENT = "arrays of its memory are out"
FULL = "there is no memory for a copy"

Votes = Mapping[Calls, float]
"""The kernels that have a say, and how often each is called."""


def settle_layouts(calls: Calls, records: Mapping[str, RecordArray]) -> None:
    """Choose the layout of arrays of a call that leave it open."""
    arrays = {id(storage_of(r).owner): r for r in records.values()}
    for array in arrays.values():
        storage = storage_of(array).owner
        if (left := storage.open) is None or left.settled:
            continue
        with left.lock:
            _settle(calls, storage, left, class_of(array))


def _settle(calls: Calls, storage: Storage, left: OpenLayout, cls: type[Any]) -> None:
    if left.is_elsewhere():
        storage.settle(THREADS)
    elif not is_compiled(storage.device):
        left.reason = f"{storage.layout}: the interpreter is as fast in every layout"
        storage.settle()
    elif get_device(storage.device).is_capturing():
        storage.settle(CAPTURED)  # a graph has its addresses, and nothing says when it is launched
    elif not left.decided:
        _decide(calls, storage, left, cls)
    elif left.is_due or calls not in left.users:
        _look_again(calls, storage, left)


def _decide(calls: Calls, storage: Storage, left: OpenLayout, cls: type[Any]) -> None:
    """At the first call."""
    known = dict.fromkeys([*kernels_naming(cls), calls])
    votes: dict[Calls, float] = {c: max(1, c.made) for c in known}
    default = default_layout(storage.record, storage.device)
    choice = _kept_choice(calls, storage, votes, default)
    for c in known:
        left.users[c] = c.made
    left.users[calls] = max(0, calls.made - 1)  # this call is the first one of those after it
    left.reason = _reason(choice, storage.layout, votes)
    if choice is not None and choice.layout != storage.layout:
        if storage.side.is_lent:
            left.reason += f"; not moved, as {LENT}"
        else:
            _move(storage, left, choice.layout)
    left.looked()


def _move(storage: Storage, left: OpenLayout, layout: Layout) -> bool:
    """Whether there was memory for a copy, without which the records stay where they are."""
    try:
        storage.lie_as(layout)
    except DeviceError:
        left.reason += f"; not moved, as {FULL}"
        return False
    return True


def _look_again(calls: Calls, storage: Storage, left: OpenLayout) -> None:
    """At later calls, ever more seldom."""
    if calls not in left.users:
        left.users[calls] = max(0, calls.made - 1)
    since: dict[Calls, float] = {c: c.made - before for c, before in left.users.items()}
    votes = {c: times for c, times in since.items() if times > 0}
    choice = _kept_choice(calls, storage, votes, storage.layout)
    left.looked()
    if choice is not None and choice.worth_changing and not storage.side.is_lent:
        before = left.reason
        # a choice is for one call of the kernel with the most of them
        saved = max(votes.values()) * (choice.before.seconds - choice.best.seconds)
        if saved > _cost_of_moving(choice, memory_model(storage.device), len(votes)):
            left.reason = f"{_reason(choice, choice.current, votes)}, moved once more"
            if not _move(storage, left, choice.layout):
                left.reason = before
            storage.settle()
    if left.is_usual:
        storage.settle(USUAL)


def _cost_of_moving(choice: LayoutChoice, model: MemoryModel, kernels: int) -> float:
    """Seconds."""
    moved = choice.before.memory + choice.best.memory
    return COPIES * moved / model.streamed + NEW_CODE * kernels


def _kept_choice(
    calls: Calls, storage: Storage, votes: Votes, current: Layout
) -> LayoutChoice | None:
    """A choice that was made at an earlier call like this one, or a new one: for one call of the
    kernel with the most of them, and as many of the others as come on it.
    """
    if not votes:
        return None
    most = max(votes.values())
    shares = {c: _rounded(times / most) for c, times in votes.items()}
    kept, who = calls.kept, tuple((weakref.ref(c), share) for c, share in shares.items())
    key = ("layout", storage.record, storage.device, _rounded(max(1, len(storage))), current, who)
    if key not in kept:
        kept[key] = _choice(storage, shares, current)
    return kept[key]


def _rounded(number: float) -> float:
    """The power of two that is nearest."""
    return 2.0 ** round(math.log2(number))


def _choice(storage: Storage, votes: Votes, current: Layout) -> LayoutChoice | None:
    count = max(1, len(storage))
    return layout_wanted(storage.record, count, storage.device, votes, current)


def layout_wanted(
    record: Record, count: int, device: str, votes: Votes, current: Layout
) -> LayoutChoice | None:
    """Among layouts in which every field has a view; None where nothing is known of the kernels."""
    uses = [a for calls, times in votes.items() for a in _uses(calls, record, times)]
    if not uses:
        return None
    model = memory_model(device)
    layouts = candidates(record.leaves, uses, model, count, current)
    choice = choice_among(layouts, record, device, uses, model, count, current)
    kept = tuple(c for c in choice.reasons if not c.copies or c.layout == current)
    return replace(choice, reasons=kept)


def _uses(calls: Calls, record: Record, times: float) -> list[ArrayUse]:
    """What a kernel does with the records, by its pattern; nothing where it cannot be read, as it
    says itself when it is called.

    A search copies what it reads of an element once, in the order of its structure, and computes
    much more often: no layout makes that faster.
    """
    kernel, name = calls.kernel, calls.name
    try:
        if isinstance(kernel, Elementwise | Pairwise) and not calls.signature.scattered:
            return [
                replace(a, operations=VISITED * WALKING * a.operations)
                if a.role == "gathered"
                else a
                for a in accesses_of(record, [Use(kernel, weight=times)])
            ]
        return used_leaves(name, calls.lowered, calls.signature, record, times)
    except LanewiseError:
        return []


def _reason(choice: LayoutChoice | None, layout: Layout, votes: Votes) -> str:
    """Why records lie as they do, a clause."""
    if choice is None:
        return f"{layout}, the default: nothing is known of the kernels"
    named = ", ".join(f"{c.name} x {times:g}" for c, times in votes.items())
    wanted, before = choice.best.layout, choice.current
    if not choice.worth_changing:
        return f"{before} for {named}: no other layout is 5 % faster by the model"
    gain = f"{1 + choice.gain:.2f} times as fast as {before} by the model"
    return f"{wanted} for {named}: {gain}"
