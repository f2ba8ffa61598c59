"""The first call of a kind, compared with all pairs: no numbers that are wrong without a word.

A proof says that a group of sources may stand for them, and not that an expansion converges at the
angle of a call: that of exp(30 s) does not. And an accuracy is an aim, which is missed where many
results cancel: errors are relative to each. So the results of some targets, enough to see 1 % of
them that are wrong (`tail.py`), are compared with those of all pairs.

A kind is what decides errors, but for a crowd here or there: the device, numbers of elements to a
power of two, the form of the sources to powers of four, the values of a call to a power of two.
What a call gives does not follow from what was found: its bits depend on its arguments alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.frontend.function import Signature
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.types import F32
from lanewise.launch.arguments import Arguments, flatten_uniforms
from lanewise.launch.compiled import Call
from lanewise.launch.sized import Result
from lanewise.launch.tuned_plans import size_class
from lanewise.patterns.search.checked_positions import Places
from lanewise.patterns.search.points import Points, form_of
from lanewise.patterns.search.searched_launch import SearchedLaunch
from lanewise.patterns.search.tree.call import FarFields
from lanewise.patterns.search.tree.tail import (
    errors_of_parts,
    median_and_most,
    parts_of,
    relative,
)
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import Need, on, to_host
from lanewise.support.errors import FarFieldWarning
from lanewise.support.numerals import counted
from lanewise.support.warned import warn_user

MEDIAN, MOST = 1e-2, 5e-2  # of right results, where no accuracy was requested

EveryPair = Callable[[Arguments, slice], tuple[Any, ...]]
"""The results of all pairs for some of the targets of a call."""


class Comparison:
    """What was compared of the calls of one function over a tree. far: its kernels; every: all
    pairs of a call.
    """

    def __init__(self, signature: Signature, far: FarFields, every: EveryPair) -> None:
        self._signature, self._far, self._tree, self._every = signature, far, far.search, every
        kinds = signature.parameters.items()
        leaves = [t.leaves(n, kind) for n, kind in kinds if not isinstance(kind, Record)]
        self._values = tuple(n for some in leaves for n in some)
        self._known = set[Hashable]()

    def knows(self, points: Places, values: Mapping[str, Any]) -> bool:
        """Whether nothing is to be compared of such a call. points: of targets and sources; values:
        by their names in the IR.

        While a graph is captured nothing runs that could be compared.
        """
        return (
            self._kind(points, values) in self._known or get_device(points[1].device).is_capturing()
        )

    def compare(
        self, call: Arguments, points: Places, results: tuple[Any, ...], *, says: bool = True
    ) -> None:
        """Warn (`FarFieldWarning`) where the results of a call, which ran, are wrong; a call like
        an earlier one is not looked at. says: no other process says it.
        """
        if not self.is_new(call, points):
            return
        self._known.add(self._kind(points, flatten_uniforms(self._signature, call.uniforms)))
        if not says:
            return
        places, sources = points
        limit = MOST if self._tree.accuracy is None else self._tree.accuracy
        looked = partial(self._errors, call, results)
        errors = errors_of_parts(places.count, sources.count, limit, looked)
        if self._wrong(errors):
            warn_user(self._told(errors, points[1]), FarFieldWarning)

    def forget(self) -> None:
        """Compare anew: calls get another tree, which was calibrated."""
        self._known.clear()

    def compare_bound(self, arguments: Arguments, points: Places, call: Call, *, own: bool) -> None:
        """The same of a bound call: it runs once, and its results are what they were. own: they are
        its own and nothing yet.
        """
        launch = call.launch
        if not isinstance(launch, SearchedLaunch) or not self.is_new(arguments, points):
            return
        with on(arguments.device):
            before = () if own else tuple(r.copy() for r in call.results)
            try:
                launch.launches.run()
                self.compare(arguments, points, call.results)
            finally:
                for result, values in zip(call.results, before, strict=not own):
                    result[...] = values

    def is_new(self, call: Arguments, points: Places) -> bool:
        """Whether it is a first call of a kind."""
        values = flatten_uniforms(self._signature, call.uniforms)
        return all(p.count for p in points) and not self.knows(points, values)

    def needs(
        self, call: Arguments, points: Places, kinds: Iterable[t.ValueType]
    ) -> tuple[Need, ...]:
        """The memory that a first call of a kind takes besides, for results of types `kinds`: parts
        of the targets are compared one after the other.
        """
        if not self.is_new(call, points):
            return ()
        places, sources = points
        part = next(parts_of(places.count, sources.count))
        count = len(range(*part.indices(places.count)))
        nbytes = sum(Result("", kind, count).nbytes for kind in kinds)
        return (Need(call.device, nbytes, f"{counted(count, 'target', 'targets')} over all pairs"),)

    def _kind(self, points: Places, values: Mapping[str, Any]) -> Hashable:
        places, sources = points
        return (
            sources.device,
            places is sources,
            size_class(places.count),
            size_class(sources.count),
            sources.once("form", form_of),
            *[_size(values[n]) for n in self._values if n in values],
        )

    def _errors(
        self, call: Arguments, results: tuple[Any, ...], some: slice
    ) -> NDArray[np.float64]:
        """Of some targets, but for those where all pairs have no number."""
        with on(call.device):
            wanted = [rows(r) for r in self._every(call, some)]
            found = [rows(r[some]) for r in results]
        sound = np.all([np.isfinite(w).all(axis=1) for w in wanted], axis=0)
        both = zip(found, wanted, strict=True)
        return np.max([self._relative(f[sound], w[sound]) for f, w in both], axis=0)

    def _relative(
        self, found: NDArray[np.float64], wanted: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Relative to each result, as an accuracy is; without one, to half of the results at least:
        those where contributions cancel are not wrong.
        """
        if self._tree.accuracy is not None or not len(wanted):
            return relative(found, wanted)
        return relative(found, wanted, float(np.median(np.linalg.norm(wanted, axis=1))))

    def _wrong(self, errors: NDArray[np.float64]) -> bool:
        if not len(errors):
            return False
        median, most = median_and_most(errors)
        if self._tree.accuracy is not None:
            return bool(most > self._tree.accuracy)
        return bool(median > MEDIAN or most > MOST)

    def _told(self, errors: NDArray[np.float64], sources: Points) -> str:
        tree, name = self._tree, self._signature.source.name
        median, most = median_and_most(errors)
        why = "as where a function swings or grows within a group"
        wanted = f"a median below {MEDIAN:g} and 99 % below {MOST:g}"
        ways = ["a smaller theta", "a larger order"]
        if self._far.takes_an_accuracy:
            ways.append("accuracy=")
        if tree.accuracy is not None:
            wanted = f"99 % below {tree.accuracy:g}"
            ways = [f"{name}'s tune, which looks for a tree that keeps it", "a smaller accuracy"]
            ways += ["a smaller theta", "a larger order"]
            why = "as where results cancel, or a function swings or grows within a group"
        if sources.precision == F32:
            why += ", or lengths are such that numbers leave the range of float32"
            ways.append("records of float64")
        return (
            f"{name} over {tree.describe()}: results are not those of all pairs. Of "
            f"{counted(len(errors), 'target', 'targets')} the median error is {median:.1e}, 99 % "
            f"are below {most:.1e}, the largest is {errors.max():.1e}, relative to the results; "
            f"wanted {wanted}. Expansions of groups do not hold, {why}: choose {', '.join(ways)}, "
            "or lw.AllPairs(); lw.far_errors measures what that gives"
        )


def rows(result: Any) -> NDArray[np.float64]:
    """A result on the host, of shape (n, components)."""
    values = np.asarray(to_host(result), np.float64)
    return values.reshape(len(values), math.prod(values.shape[1:]))


def _size(value: Any) -> tuple[int, bool]:
    """The power of two next to a number, and whether it is positive."""
    mantissa, exponent = math.frexp(value)
    return exponent, mantissa > 0
