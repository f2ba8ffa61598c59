"""`lw.far_errors`: how far results over a tree are from those over all pairs, measured once for
calls of a kind.

Targets, spread evenly over their array, meet every source, by the same function: they are parts of
the array, so an element that meets itself is known. What was measured is kept in the
store of tuned plans, for the function, its numbers, the tree, the layouts, the machine, the number
of elements (to a power of two) and their crowding (to a power of four).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.ir.pattern import Work
from lanewise.launch.arguments import Arguments
from lanewise.launch.compiled import Compiled
from lanewise.launch.tuned_plans import (
    Entry,
    Key,
    make_key,
    read_entry,
    store_enabled,
    write_entry,
)
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search.all_pairs import AllPairs
from lanewise.patterns.search.automatic import FEW, Nearest, look
from lanewise.patterns.search.picker import kind_of_call
from lanewise.patterns.search.points import points_of
from lanewise.patterns.search.tree.compared import rows
from lanewise.patterns.search.tree.search import Tree
from lanewise.patterns.search.tree.tail import (
    errors_of_parts,
    median_and_most,
    relative,
    spread,
)
from lanewise.planning.plan import Plan
from lanewise.records.same_elements import copied_part
from lanewise.support.attributes import frozen, settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, ArgumentTypeError
from lanewise.support.numerals import counted

SAMPLE = 1024  # targets that are looked at, where no accuracy is to be judged


@frozen
@dataclass(frozen=True, slots=True)
class FarErrors:
    """What `lw.far_errors` found: errors relative to the results of all pairs.

    predicted: the error that 99 % of the results shall be below, which the tree was requested; None
    where it goes by an angle. median, most (which 99 % are below), largest: as measured. targets:
    how many were looked at. seconds: of a call over the tree. kept: whether they were measured
    before, for such a call.
    """

    predicted: float | None
    median: float
    most: float
    largest: float
    targets: int
    seconds: float
    kept: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For a machine-readable result."""
        return asdict(self)

    @property
    def holds(self) -> bool | None:
        """Whether 99 % of the results are within what was predicted; None without a prediction."""
        return None if self.predicted is None else self.most <= self.predicted

    def __str__(self) -> str:
        asked = "none" if self.predicted is None else f"99 % below {self.predicted:.1e}"
        when = "measured before, for such a call" if self.kept else "measured now"
        return (
            f"predicted {asked}; median {self.median:.1e}, 99 % {self.most:.1e}, largest "
            f"{self.largest:.1e} (of {counted(self.targets, 'target', 'targets')} against all "
            f"pairs, {when})"
        )


def _values_of(given: Sequence[Any]) -> list[str]:
    """The names of what a function takes besides targets and sources."""
    function = given[0]
    if not isinstance(function, Pairwise):
        return []
    return list(function._calls.signature.parameters)[2:]  # pyright: ignore[reportPrivateUsage]


@partial(settings_by_name, more=_values_of)
def far_errors(
    function: Pairwise, targets: Any, sources: Any, *, again: bool = False, **named: Any
) -> FarErrors:
    """The errors of a pairwise function over `lw.Tree`, compared with all pairs, for about 1,024
    targets; with an accuracy for 768 to 6,144, until it is clear whether the tree reaches it.

    targets, sources: arrays of records, as in a call, with the function's other arguments by name.
    An error is the length of the difference of two results, divided by the length of the result of
    all pairs; if there are several results, the largest error counts. The sums over all pairs are
    in float64, their terms in the types of the function. Errors are stored with the tuned plans
    (`LANEWISE_TUNED=off` ignores them), so calls of one kind are measured once; again: measure
    again.

    Raises `ArgumentTypeError` for anything but a pairwise function, `ArgumentError` for a function
    without a tree and if results of all pairs are not finite, and all errors of a call.
    """
    if not isinstance(function, Pairwise):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentTypeError(
            f"lw.far_errors takes a pairwise function over a tree, found {shown(function)}"
        )
    if not isinstance(again, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"lw.far_errors: again= is True or False, found {shown(again)}")
    if not isinstance(function.search, Tree):
        raise ArgumentError(
            f"lw.far_errors({function.__name__}): it runs over {function.search.describe()}, and "
            f"errors are those of a tree; wanted {function.__name__}.using(search=lw.Tree(...))"
        )
    calls = function._calls  # pyright: ignore[reportPrivateUsage]
    arguments: Arguments = calls.given((targets, sources), named)
    compiled = function.compile(targets, sources, **named)
    key = _key(function.search, compiled, arguments, targets, sources)
    entry = read_entry(key, _found) if store_enabled() and not again else None
    if entry is not None:
        return replace(_found(entry), kept=True)
    measured = _measured(function, function.search, targets, sources, named)
    if store_enabled():
        plan = compiled.plan
        log = {"errors": measured.as_dict()}
        write_entry(key, Entry(plan, measured.seconds, plan, measured.seconds, log))
    return measured


def _key(tree: Tree, compiled: Compiled, arguments: Arguments, targets: Any, sources: Any) -> Key:
    """What decides errors: that of tuned plans, with the tree, numbers and crowding."""
    reference = compiled.reference
    key = make_key(
        reference,
        compiled.layouts,
        arguments.device,
        Work(reference.pattern, len(targets)),
        len(sources),
        Plan(),
        reference.identical,
    )
    points = points_of(sources, tree.position)
    crowd = Nearest(k=1, position=tree.position)
    outlook = look(crowd, points) if points.count > FEW else None
    numbers = ", ".join(f"{n}={np.asarray(v).tolist()}" for n, v in arguments.uniforms.items())
    kind = kind_of_call(crowd, points, outlook)
    taken = compiled.search.partition(";")[0]  # where an accuracy was calibrated another tree
    return replace(key, search=f"errors of {taken}; {numbers}; {kind}")


def _found(entry: Entry) -> FarErrors:
    """The errors of an entry; raises `ValueError` where it holds none."""
    try:
        return FarErrors(**entry.log["errors"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"it holds no errors: {error}") from error


def _measured(
    function: Pairwise, tree: Tree, targets: Any, sources: Any, named: Mapping[str, Any]
) -> FarErrors:
    found, seconds = _timed(function, targets, sources, named)
    every = function.using(search=AllPairs(position=tree.position))

    def errors_of(some: slice) -> NDArray[np.float64]:
        plan = Plan(accumulate="f64")
        wanted = _results(every(copied_part(targets, some), sources, plan=plan, **named))
        _check_finite(function.__name__, some, wanted)
        both = zip(found, wanted, strict=True)
        return np.max([relative(f[some], w) for f, w in both], axis=0)

    if not len(targets):
        raise ArgumentError(f"lw.far_errors({function.__name__}): there are no targets to look at")
    if tree.accuracy is None:
        errors = errors_of(spread(len(targets), SAMPLE))
    else:
        errors = errors_of_parts(len(targets), len(sources), tree.accuracy, errors_of)
    median, most = median_and_most(errors)
    return FarErrors(tree.accuracy, median, most, float(errors.max()), len(errors), seconds)


def _timed(
    function: Pairwise, targets: Any, sources: Any, named: Mapping[str, Any]
) -> tuple[list[NDArray[np.float64]], float]:
    """Results over the tree, and the seconds of the second of two calls."""
    _results(function(targets, sources, **named))  # on a GPU it is awaited
    start = time.perf_counter()
    found = _results(function(targets, sources, **named))
    return found, time.perf_counter() - start


def _results(found: Any) -> list[NDArray[np.float64]]:
    """Of a call, on the host, each of shape (n, components)."""
    return [rows(r) for r in (found if isinstance(found, tuple) else (found,))]


def _check_finite(name: str, some: slice, wanted: list[NDArray[np.float64]]) -> None:
    """Refuse targets whose results are no numbers even over all pairs."""
    bad = np.any([~np.isfinite(w).all(axis=1) for w in wanted], axis=0)
    if bad.any():
        at = int(np.argmax(bad))
        target = some.start + at * some.step
        what = ", ".join(str(w[at].tolist()) for w in wanted)
        raise ArgumentError(
            f"lw.far_errors({name}): over all pairs the result of target {target} is "
            f"{what}, and no error is relative to that; two elements in one place need a softening "
            "or a branch"
        )
