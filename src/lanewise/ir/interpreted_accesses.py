"""Loads, stores, scatters and copies as the interpreter does them: a step for each statement, which
refuses what lies outside and what two threads touch at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import Environment, Outcome, Step, evaluate, meaning_of, whole, whole_of
from lanewise.ir.interpreted_memory import ArrayMemory, Words, shared_of
from lanewise.ir.races import Races, Touch, element_place, thread_of
from lanewise.ir.shared import shared_groups
from lanewise.ir.traverse import expressions
from lanewise.language import exact_sums
from lanewise.language.scatter import combined
from lanewise.support.errors import NOWHERE, VerificationError

_TOUCH: dict[type[ir.ElementAccess], Touch] = {
    ir.LoadElement: "reads", ir.StoreElement: "writes", ir.ScatterElement: "scatters to",
}  # fmt: skip


@dataclass
class Accesses:
    """What a kernel does with its arrays and buffers; see `Interpreter`."""

    kernel: ir.Kernel
    env: Environment
    arrays: Mapping[str, ArrayMemory]
    buffers: Mapping[str, np.ndarray[Any, Any]]
    races: Races

    @cached_property
    def watched(self) -> dict[str, str]:
        """The buffers of written arrays with a shape, each with its array: their elements belong to
        single threads.
        """
        arrays = {
            a.name for a in self.kernel.arrays if a.shape and a.written and a.space == "global"
        }
        return {b.name: b.array for b in self.kernel.buffers if b.array in arrays}

    @cached_property
    def views(self) -> dict[str, str]:
        """The buffers in shared memory, each with the one that stands for all views of its memory
        as scalars of one size.
        """
        names = dict[str, str]()
        for group in shared_groups(self.kernel):
            alike = len({b.type.size for b in group}) == 1
            names |= {b.name: group[0].name if alike else b.name for b in group}
        return names

    def step(self, s: ir.Statement) -> Step | None:
        match s:
            case ir.LoadRecord() | ir.StoreRecord() | ir.Load() | ir.Store() | ir.Scatter():
                return self.move(s)
            case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
                return self._element(s)
            case ir.PrefetchElement() | ir.Prefetch():
                return self._prefetch(s)
            case ir.CopyAsync() | ir.CopyElement() | ir.CopyLanes():
                return lambda env: self._copy(s, env)
            case ir.CommitAsync():
                return lambda env: shared_of(env).commit(env["@id"])
            case ir.WaitAsync():
                return lambda env: shared_of(env).wait(env["@id"], s.pending)
            case _:
                return None

    def _element(self, s: ir.ElementAccess) -> Step:
        """What an access to elements of an array with a shape does."""
        array = self.kernel.array(s.array)
        lengths = tuple(n if isinstance(n, int) else int(self.env[n]) for n in array.shape)
        write, leaf = isinstance(s, ir.ElementWrite), array.leaves[0].name
        across = 1 if isinstance(s, ir.ScatterElement) else 1 + len(s.more)
        indices_of, move = [whole_of(i) for i in s.indices], self._moved_element(s, leaf)
        raced, leaves = array.written and array.space == "global", [leaf]

        def access(env: Environment) -> Outcome:
            first = tuple([i(env) for i in indices_of])
            if first[-1] % across or lengths[-1] % across:
                raise VerificationError(
                    f"{across} elements of {s.array} at {list(first)} in rows of {lengths[-1]}: no "
                    "multiples of their number"
                )
            env["@clock"] = env.get("@clock", 0) + 1
            for n in range(across):
                indices = (*first[:-1], first[-1] + n) if n else first
                place = element_place(s, indices, lengths)
                if raced:
                    thread = thread_of(env, shared_of(env).barriers)
                    self.races.touch(
                        (s.array, place),
                        thread,
                        f"{s.array}{list(indices)}",
                        s.location,
                        _TOUCH[type(s)],
                    )
                move(self._memory(s.array, place, leaves, env, write=write), place, n, env)

        return access

    def _moved_element(
        self, s: ir.ElementAccess, leaf: str
    ) -> Callable[[ArrayMemory, int, int, Environment], None]:
        """What moves element n of an access, which is at a place."""
        match s:
            case ir.LoadElement():
                names = s.names

                def load(memory: ArrayMemory, place: int, n: int, env: Environment) -> None:
                    env[names[n]] = memory.read(leaf, place)

                return load
            case ir.StoreElement():
                values = [meaning_of(v) for v in s.values]
                return lambda memory, place, n, env: memory.write(leaf, place, values[n](env))
            case ir.ScatterElement():
                added, operation = meaning_of(s.value), s.operation

                def scatter(memory: ArrayMemory, place: int, n: int, env: Environment) -> None:
                    value = added(env)
                    if operation == "sum":
                        exact_sums.add(
                            exact_sums.FORMATS[value.dtype.name], Words(memory, leaf), place, value
                        )
                    else:
                        memory.write(
                            leaf, place, combined(operation, memory.read(leaf, place), value)
                        )

                return scatter

    @staticmethod
    def _prefetch(s: ir.PrefetchElement | ir.Prefetch) -> Step:
        """A place that is computed, and may be anywhere."""
        indices_of = [whole_of(i) for i in expressions(s)]

        def ask(env: Environment) -> Outcome:
            for index in indices_of:
                index(env)

        return ask

    def move(self, s: ir.LoadRecord | ir.StoreRecord | ir.Load | ir.Store | ir.Scatter) -> Step:
        """What moves data between memory and variables.

        Here time is the number of accesses that a thread made.
        """
        index, move = whole_of(s.index), self._moved(s)

        def access(env: Environment) -> Outcome:
            at = index(env)
            env["@clock"] = env.get("@clock", 0) + 1
            move(at, env)

        return access

    def _moved(
        self, s: ir.LoadRecord | ir.StoreRecord | ir.Load | ir.Store | ir.Scatter
    ) -> Callable[[int, Environment], None]:
        match s:
            case ir.LoadRecord():
                return self._loaded_records(s)
            case ir.StoreRecord():
                return self._stored_records(s)
            case ir.Load():
                return self._loaded_lanes(s)
            case ir.Store():
                values = [meaning_of(v) for v in s.values]

                def store(index: int, env: Environment) -> None:
                    lanes = self._lanes(s.buffer, index, len(values), env, "writes")
                    lanes[:] = [value(env) for value in values]

                return store
            case ir.Scatter():
                added, operation = meaning_of(s.value), s.operation

                def scatter(index: int, env: Environment) -> None:
                    value = added(env)
                    if operation == "sum":
                        exact_sums.add(
                            exact_sums.FORMATS[value.dtype.name],
                            self.buffers[s.buffer],
                            index,
                            value,
                        )
                    else:
                        lanes = self._lanes(s.buffer, index, 1, env, "scatters to")
                        lanes[0] = combined(operation, lanes[0], value)

                return scatter

    def _loaded_records(self, s: ir.LoadRecord) -> Callable[[int, Environment], None]:
        parts = [s.reads[part] for part in _parts_of(s, len(s.reads))]
        several = [(n, [leaf for leaf, _ in reads], reads) for n, reads in enumerate(parts)]

        def load(index: int, env: Environment) -> None:
            _check_first(s, index)
            for n, leaves, reads in several:
                memory = self._memory(s.array, index + n, leaves, env, write=False)
                for leaf, variable in reads:
                    env[variable] = memory.read(leaf, index + n)

        return load

    def _stored_records(self, s: ir.StoreRecord) -> Callable[[int, Environment], None]:
        parts = [s.writes[part] for part in _parts_of(s, len(s.writes))]
        several = [
            (n, [leaf for leaf, _ in writes], [(leaf, meaning_of(value)) for leaf, value in writes])
            for n, writes in enumerate(parts)
        ]

        def store(index: int, env: Environment) -> None:
            _check_first(s, index)
            for n, leaves, writes in several:
                memory = self._memory(s.array, index + n, leaves, env, write=True)
                for leaf, value in writes:
                    memory.write(leaf, index + n, value(env))

        return store

    def _loaded_lanes(self, s: ir.Load) -> Callable[[int, Environment], None]:
        count, wanted = len(s.names), [(i, name) for i, name in enumerate(s.names) if name]

        def load(index: int, env: Environment) -> None:
            lanes = self._lanes(s.buffer, index, count, env, "reads")
            for i, name in wanted:
                env[name] = lanes[i]

        return load

    def _copy(self, s: ir.CopyAsync | ir.CopyElement | ir.CopyLanes, env: Environment) -> None:
        """Until its thread waits for the copy the destination holds garbage."""
        shared = shared_of(env)
        there = isinstance(s, ir.CopyAsync) or s.there is None or bool(evaluate(s.there, env))
        match s:
            case ir.CopyElement():
                to, source = shared.contents[s.array], self.arrays[s.source]
                leaf, other = (self.kernel.array(n).leaves[0].name for n in (s.array, s.source))
                first = self._place(s.array, s.indices, s.across, env)
                targets = [to.raw(leaf, first + n) for n in range(s.across)]
                values = [np.zeros_like(x) for x in targets]
                if there:
                    begin = self._place(s.source, s.source_indices, s.across, env)
                    values = [source.raw(other, begin + n).copy() for n in range(s.across)]
                places = [(s.array, f".{leaf}", first + n) for n in range(s.across)]
            case ir.CopyAsync():
                index, from_index = whole(s.index, env), whole(s.source_index, env)
                to, source = shared.contents[s.array], self.arrays[s.source]
                targets = [to.raw(leaf, index) for leaf in s.leaves]
                values = [source.raw(leaf, from_index).copy() for leaf in s.leaves]
                places = [(s.array, f".{leaf}", index) for leaf in s.leaves]
            case ir.CopyLanes():
                index, from_index = whole(s.index, env), whole(s.source_index, env)
                widths = {b.name: b.lanes for b in self.kernel.buffers}
                to, source = shared.contents[s.buffer], self.buffers[s.source]
                first = index * widths[s.buffer] + s.lane
                from_first = from_index * widths[s.source] + s.source_lane
                ends = ((s.buffer, first, to), (s.source, from_first, source))
                for name, place, buffer in ends if there else ends[:1]:
                    if not 0 <= place <= len(buffer) - s.lanes:
                        raise VerificationError(
                            f"copy at {name}[{place}], outside 0..{len(buffer) - 1}"
                        )
                targets = [to[first : first + s.lanes].view(np.uint8)]
                values = [np.zeros_like(x) for x in targets]
                if there:
                    values = [source[from_first : from_first + s.lanes].copy().view(np.uint8)]
                places = [
                    (self.views[s.buffer], "", scalar) for scalar in range(first, first + s.lanes)
                ]

        def finish() -> None:
            for target, value in zip(targets, values, strict=True):
                target[:] = value

        shared.begin(env["@id"], places, finish)
        for target in targets:
            target[:] = 0xFF

    def _place(
        self, name: str, indices: tuple[ir.Expression, ...], across: int, env: Environment
    ) -> int:
        """Where `across` neighbours of an array with a shape begin."""
        lengths = tuple(
            n if isinstance(n, int) else int(self.env[n]) for n in self.kernel.array(name).shape
        )
        places = tuple(whole(i, env) for i in indices)
        if places[-1] % across or lengths[-1] % across:
            raise VerificationError(
                f"{across} elements of {name} at {list(places)}: no multiples of their number"
            )
        total = 0
        for i, length in zip(places, lengths, strict=True):
            if not 0 <= i < length:
                raise VerificationError(f"copy at {name}{list(places)}, outside {list(lengths)}")
            total = total * length + i
        return total

    def _memory(
        self, name: str, index: int, leaves: list[str], env: Environment, *, write: bool
    ) -> ArrayMemory:
        shared = shared_of(env)
        memory: ArrayMemory = (
            self.arrays[name] if name not in shared.contents else shared.contents[name]
        )
        if name in shared.contents:
            for leaf in leaves:
                shared.touch(name, f".{leaf}", index, env["@id"], write=write)
        return memory

    def _lanes(self, name: str, index: int, count: int, env: Environment, touch: Touch) -> Any:
        """The scalars of one load or store: `count` neighbours."""
        shared = shared_of(env)
        buffer = shared.contents[name] if name in shared.contents else self.buffers[name]
        start = index * count
        if not 0 <= start <= len(buffer) - count:
            raise VerificationError(
                f"access to {name}[{start}:{start + count}], outside 0..{len(buffer) - 1}"
            )
        if name in shared.contents:
            for scalar in range(start, start + count):
                shared.touch(
                    name, "", scalar, env["@id"], write=touch == "writes", memory=self.views[name]
                )
        elif name in self.watched:
            for scalar in range(start, start + count):
                thread = thread_of(env, shared.barriers)
                self.races.touch(
                    (self.watched[name], scalar), thread, f"{name}[{scalar}]", NOWHERE, touch
                )
        return buffer[start : start + count]


def _parts_of(s: ir.LoadRecord | ir.StoreRecord, pairs: int) -> Iterator[slice]:
    """Which of a statement's pairs belong to each of the records that it touches."""
    each = pairs // s.across
    return (slice(n * each, (n + 1) * each) for n in range(s.across))


def _check_first(s: ir.LoadRecord | ir.StoreRecord, index: int) -> None:
    if index % s.across:
        raise VerificationError(
            f"{s.across} records of {s.array} from {index}, which is no multiple of their number"
        )
