"""The meaning of kernels, the oracle of every test: runs one at any stage and finds what a GPU
would not report.

The reference kernel (`parallel for`), with blocks and lanes that meet at barriers, after the map to
threads (all threads of a block in turn, from barrier to barrier), and after layout lowering (loads
and stores of buffers). Accesses outside an array, threads that part at a barrier, two threads that
touch one place of shared memory between two barriers, and any touch of a place that an asynchronous
copy is still on its way to are errors. So is an element of an array with a shape that two threads
touch, one of them to write it, with no barrier in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import (
    MEMORY,
    BlockExit,
    Environment,
    Outcome,
    Reader,
    Step,
    block_step,
    evaluate,
    loop_range,
    meaning_of,
    whole,
    whole_of,
)
from lanewise.ir.races import Races, Touch, element_place, thread_of
from lanewise.ir.shared import group_bytes, shared_groups
from lanewise.ir.traverse import expressions, statements
from lanewise.language import exact_sums
from lanewise.language.scatter import combined
from lanewise.layouts.base import Arrangement
from lanewise.support.errors import NOWHERE, VerificationError


@dataclass
class ArrayMemory:
    """The bytes of one array of records, addressed through its arrangement."""

    data: np.ndarray[Any, Any]
    arrangement: Arrangement
    count: int
    # of leaves that were touched
    _views: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any])

    def read(self, leaf: str, index: int) -> Any:
        return self._view(leaf, index)[0]

    def write(self, leaf: str, index: int, value: Any) -> None:
        self._view(leaf, index)[0] = value

    def _view(self, leaf: str, index: int) -> Any:
        view = self._views.get((leaf, index))
        if view is None:
            self._views[leaf, index] = view = self.raw(leaf, index).view(
                self.arrangement.slot(leaf).type.dtype
            )
        return view

    def raw(self, leaf: str, index: int) -> Any:
        """The bytes of a leaf of an element, to read or to change."""
        if not 0 <= index < self.count:
            raise VerificationError(
                f"access to {leaf} of element {index}, outside 0..{self.count - 1}"
            )
        slot = self.arrangement.slot(leaf)
        address = self.arrangement.address(leaf, index, self.count)
        return self.data[address : address + slot.type.size]


WARP = 32
SHARED = "@shared"  # among the variables of a thread: the shared memory of its block
_TOUCH: dict[type[ir.ElementAccess], Touch] = {
    ir.LoadElement: "reads", ir.StoreElement: "writes", ir.ScatterElement: "scatters to",
}  # fmt: skip
Running = Generator[bool, None, None]  # a thread: yields True at each barrier


Cooperation = (
    ir.Barrier
    | ir.Rotate
    | ir.Shuffle
    | ir.Draw
    | ir.AwaitTurn
    | ir.EndTurn
    | ir.If
    | ir.For
    | ir.While
    | ir.Parallel
)
"""A statement at which a thread may stop until others are there."""


class _Break(Exception):
    """A `break` in a kernel, on its way to the loop around it."""


class _Continue(Exception):
    """A `continue` in a kernel, on its way to the loop around it."""


@dataclass(frozen=True, slots=True)
class AsyncCopy:
    """An asynchronous copy under way: the places that it changes, and what finishes it."""

    places: tuple[tuple[str, str, int], ...]
    finish: Callable[[], None]


@dataclass
class SharedMemory:
    """The shared memory of one block of threads: its arrays or buffers, and who touched what since
    the last barrier.
    """

    contents: dict[str, Any] = field(default_factory=dict[str, Any])
    touched: dict[tuple[str, str, int], tuple[set[int], set[int]]] = field(
        default_factory=dict[tuple[str, str, int], tuple[set[int], set[int]]]
    )
    # asynchronous ones by thread, in groups: the last one is that of copies without a commit
    copies: dict[int, list[list[AsyncCopy]]] = field(
        default_factory=dict[int, "list[list[AsyncCopy]]"]
    )
    # the places that they change
    under_way: set[tuple[str, str, int]] = field(default_factory=set[tuple[str, str, int]])
    apart: bool = False  # warps never meet
    barriers: int = 0  # that its threads have met
    warps: dict[tuple[str, str, int], int] = field(default_factory=dict[tuple[str, str, int], int])
    # between threads of a warp
    exchanged: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any])

    def touch(
        self, array: str, leaf: str, index: int, thread: int, *, write: bool, memory: str = ""
    ) -> None:
        """Note an access; raises `VerificationError` when another thread's access to the same place
        may come before or after it.

        memory: what the array is a view of, where there are several.
        """
        place = (memory or array, leaf, index)
        if place in self.under_way:
            raise VerificationError(
                f"{array}[{index}]{leaf} is touched while an asynchronous copy to it is under way"
            )
        if self.warps.setdefault(place, thread // WARP) != thread // WARP and self.apart:
            raise VerificationError(
                f"a race: two warps touch {array}[{index}]{leaf}, and nothing orders them"
            )
        if (touched := self.touched.get(place)) is None:
            touched = self.touched[place] = (set[int](), set[int]())
        readers, writers = touched
        if len(writers) > (thread in writers) or (write and len(readers) > (thread in readers)):
            raise VerificationError(
                f"a race: two threads touch {array}[{index}]{leaf} between two barriers, and one "
                "writes"
            )
        (writers if write else readers).add(thread)

    def begin(
        self, thread: int, places: Iterable[tuple[str, str, int]], finish: Callable[[], None]
    ) -> None:
        """Begin an asynchronous copy, which writes at any time until its thread waits for it."""
        copy = AsyncCopy(tuple(places), finish)
        for place in copy.places:
            self.touch(*place, thread, write=True)
        self.under_way.update(copy.places)
        self.copies.setdefault(thread, [[]])[-1].append(copy)

    def commit(self, thread: int) -> None:
        """What a thread has begun since its last commit is a group."""
        self.copies.setdefault(thread, [[]]).append([])

    def wait(self, thread: int, pending: int) -> None:
        """Finish the copies of a thread, or all groups but the last `pending`, and what is in no
        group.

        For the others the places change now: they have to meet a barrier first.
        """
        groups = self.copies.get(thread, [[]])
        done = len(groups) - 1 - pending if pending else len(groups)
        self.copies[thread] = groups[max(done, 0) :] or [[]]
        for copy in [c for g in groups[: max(done, 0)] for c in g]:
            copy.finish()
            self.under_way.difference_update(copy.places)
            for place in copy.places:
                self.touch(*place, thread, write=True)


@dataclass
class Interpreter:
    """Runs a kernel. `arrays` hold the global arrays by name, `buffers` the lowered ones, `env` the
    uniforms and counts.
    """

    kernel: ir.Kernel
    env: Environment
    arrays: Mapping[str, ArrayMemory] = field(default_factory=dict[str, ArrayMemory])
    buffers: Mapping[str, np.ndarray[Any, Any]] = field(
        default_factory=dict[str, "np.ndarray[Any, Any]"]
    )
    races: Races = field(default_factory=Races)
    # of the kernel's blocks, by their identity
    _known: dict[int, tuple[Cooperation | Step, ...]] = field(
        default_factory=dict[int, "tuple[Cooperation | Step, ...]"], init=False, repr=False
    )

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

    def run(self) -> None:
        """Run every element, or every thread of every block."""
        self.races.forget()
        with np.errstate(all="ignore"):
            grid = self.kernel.grid
            env = {**self.env, **self._typed_counts(), MEMORY: self._reader()}
            if grid is None:
                _together(
                    [self._block(self.kernel.body, {**env, SHARED: SharedMemory()})], SharedMemory()
                )
                return
            blocks = -(-whole(grid.extent, env) // grid.lanes)
            for part in range(grid.parts):
                for block in range(blocks):
                    place = {**env, "@block": block, "@part": part, "@clock": 0}
                    self._threads(
                        [{**place, "@thread": thread} for thread in range(grid.threads)],
                        self.kernel.body,
                    )

    def _reader(self) -> Reader:
        """What loads do in functions, which read global memory alone."""
        # by the identity of statements, which the kernel holds
        none, known = SharedMemory(), dict[int, Step]()

        def read(s: ir.Statement, env: Environment) -> None:
            env[SHARED] = none
            step = known.get(id(s))
            if step is None:
                assert isinstance(s, ir.LoadRecord | ir.Load)
                known[id(s)] = step = self._move(s)
            step(env)

        return read

    def _typed_counts(self) -> Environment:
        """The lengths, of the kernel's types: arithmetic on them wraps as it does in a kernel."""
        return {
            p.name: p.type.dtype.type(self.env[p.name])
            for p in self.kernel.counts
            if p.name in self.env
        }

    def _threads(self, places: list[Environment], body: ir.Block) -> None:
        """Run one block of threads on fresh shared memory, which holds garbage at first."""
        shared = SharedMemory()
        for a in self.kernel.arrays:
            if a.space == "shared":
                garbage = np.full(a.arrangement.nbytes(a.length), 0xFF, np.uint8)
                shared.contents[a.name] = ArrayMemory(garbage, a.arrangement, a.length)
        for views in shared_groups(self.kernel):
            garbage = np.full(group_bytes(views), 0xFF, np.uint8)
            for b in views:
                shared.contents[b.name] = garbage[: b.length * b.type.size * b.lanes].view(
                    b.type.dtype
                )
        threads = [
            self._block(body, {**place, "@id": n, SHARED: shared}) for n, place in enumerate(places)
        ]
        # warps meet nowhere: one after the other
        if any(_is_of_a_warp(s) for s in statements(body)):
            shared.apart = True
            for first in range(0, len(threads), WARP):
                shared.touched.clear()
                _together(threads[first : first + WARP], shared)
        else:
            _together(threads, shared)
        if any(copy for groups in shared.copies.values() for copy in groups):
            raise VerificationError("threads end before an asynchronous copy that they began")

    def _block(self, block: ir.Block, env: Environment) -> Running:
        for s in self._parts(block):
            match s:
                case ir.Barrier():
                    yield True
                case ir.Rotate() | ir.Shuffle() | ir.Draw() | ir.AwaitTurn() | ir.EndTurn():
                    yield from self._cooperate(s, env)
                case ir.If():
                    yield from self._block(
                        s.then if evaluate(s.condition, env) else s.otherwise, env
                    )
                case ir.For():
                    for i in loop_range(s, env):
                        env[s.variable] = i
                        if (yield from self._leaves(s.body, env)):
                            break
                case ir.While():
                    while evaluate(s.condition, env):
                        if (yield from self._leaves(s.body, env)):
                            break
                case ir.Parallel():
                    yield from self._parallel(s, env)
                case _:
                    match s(env):
                        case None:
                            pass
                        case BlockExit.BREAK:
                            raise _Break
                        case BlockExit.CONTINUE:
                            raise _Continue
                        case _:
                            raise VerificationError("a kernel has no results to return")

    def _parts(self, block: ir.Block) -> tuple[Cooperation | Step, ...]:
        """The statements at which threads meet, and what those between them do."""
        parts = self._known.get(id(block))
        if parts is None:
            found: list[Cooperation | Step] = []
            for meets, group in groupby(block, _meets):
                if meets:
                    found.extend(s for s in group if isinstance(s, Cooperation))
                else:
                    found.append(block_step(tuple(group), self._memory_step))
            self._known[id(block)] = parts = tuple(found)
        return parts

    def _memory_step(self, s: ir.Statement) -> Step | None:
        match s:
            case ir.LoadRecord() | ir.StoreRecord() | ir.Load() | ir.Store() | ir.Scatter():
                return self._move(s)
            case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
                return self._element(s)
            case ir.PrefetchElement() | ir.Prefetch():
                return self._prefetch(s)
            case ir.CopyAsync() | ir.CopyElement() | ir.CopyLanes():
                return lambda env: self._copy(s, env)
            case ir.CommitAsync():
                return lambda env: _shared(env).commit(env["@id"])
            case ir.WaitAsync():
                return lambda env: _shared(env).wait(env["@id"], s.pending)
            case _:
                return None

    def _leaves(self, body: ir.Block, env: Environment) -> Generator[bool, None, bool]:
        """Run the body of a loop once; whether a `break` leaves the loop."""
        try:
            yield from self._block(body, env)
        except _Continue:
            return False
        except _Break:
            return True
        return False

    def _cooperate(
        self, s: ir.Rotate | ir.Shuffle | ir.Draw | ir.AwaitTurn | ir.EndTurn, env: Environment
    ) -> Running:
        """Blocks run one after the other, so a turn that has not come when a block waits for it
        never comes.
        """
        shared, me = _shared(env), env["@id"]
        match s:
            case ir.Rotate():
                for v in s.values:
                    shared.exchanged[v.name, me] = env[v.name]
                yield True
                after = me // WARP * WARP + (me + 1) % WARP
                env.update({v.name: shared.exchanged[v.name, after] for v in s.values})
                yield True
            case ir.Shuffle():
                shared.exchanged[s.name, me] = env[s.value.name]
                yield True
                within, first = me % s.group, me - me % s.group
                source = (
                    first + within + s.distance
                    if s.distance and within + s.distance < s.group
                    else me
                )
                env[s.name] = shared.exchanged[s.name, source if s.distance else first]
                yield True
            case ir.Draw():
                if me % WARP == 0:
                    number, total = self._counter(s.counter, 0), whole(s.total, env)
                    shared.exchanged[s.name, me] = s.total.type.dtype.type(number)
                    self._counter(s.counter, 0, set_to=(number + 1) % total)
                yield True
                env[s.name] = shared.exchanged[s.name, me // WARP * WARP]
            case ir.AwaitTurn():
                count, turn = self._counter(s.turns, whole(s.index, env)), whole(s.turn, env)
                if count != turn:
                    raise VerificationError(
                        f"{s.turns} waits for turn {turn} for ever: it is at {count}"
                    )
                yield True
            case ir.EndTurn():
                yield True
                if me % WARP == 0:
                    self._counter(s.turns, whole(s.index, env), set_to=whole(s.following, env))

    def _counter(self, name: str, index: int, *, set_to: int | None = None) -> int:
        """One whole number in global memory, in an array or in the buffer that it became."""
        if name in self.buffers:
            place: Any = self.buffers[name][index : index + 1]
        else:
            memory = self.arrays[name]
            place = memory.data[
                memory.arrangement.address(memory.arrangement.slots[0].leaf, index, memory.count) :
            ][:4].view(np.int32)
        if set_to is not None:
            place[0] = set_to
        return int(place[0])

    def _parallel(self, s: ir.Parallel, env: Environment) -> Running:
        """Elements one after the other; those with barriers of their own are the threads of one
        block, and run together.
        """
        kind = s.extent.type.dtype.type
        around = env.get("@indices", ())
        places = [
            {**env, s.variable: kind(i), "@indices": (*around, (s.variable, i))}
            for i in range(whole(s.extent, env))
        ]
        own = [x for x in statements(s.body) if isinstance(x, ir.Parallel)]
        if not own and any(isinstance(x, ir.Barrier | ir.Shuffle) for x in statements(s.body)):
            self._threads(places, s.body)
            return
        for place in places:
            yield from self._block(s.body, place)

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
                    thread = thread_of(env, _shared(env).barriers)
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
                            exact_sums.FORMATS[value.dtype.name], _Words(memory, leaf), place, value
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

    def _move(self, s: ir.LoadRecord | ir.StoreRecord | ir.Load | ir.Store | ir.Scatter) -> Step:
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
        shared = _shared(env)
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
                first, from_first = (
                    index * widths[s.buffer] + s.lane,
                    from_index * widths[s.source] + s.source_lane,
                )
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
        shared = _shared(env)
        memory: ArrayMemory = (
            self.arrays[name] if name not in shared.contents else shared.contents[name]
        )
        if name in shared.contents:
            for leaf in leaves:
                shared.touch(name, f".{leaf}", index, env["@id"], write=write)
        return memory

    def _lanes(self, name: str, index: int, count: int, env: Environment, touch: Touch) -> Any:
        """The scalars of one load or store: `count` neighbours."""
        shared = _shared(env)
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


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of exact sums, as the elements of an array."""

    memory: ArrayMemory
    leaf: str

    def __getitem__(self, place: int) -> Any:
        return self.memory.read(self.leaf, place)

    def __setitem__(self, place: int, word: Any) -> None:
        self.memory.write(self.leaf, place, np.int64(word))


def _parts_of(s: ir.LoadRecord | ir.StoreRecord, pairs: int) -> Iterator[slice]:
    """Which of a statement's pairs belong to each of the records that it touches."""
    each = pairs // s.across
    return (slice(n * each, (n + 1) * each) for n in range(s.across))


def _check_first(s: ir.LoadRecord | ir.StoreRecord, index: int) -> None:
    if index % s.across:
        raise VerificationError(
            f"{s.across} records of {s.array} from {index}, which is no multiple of their number"
        )


def _shared(env: Environment) -> SharedMemory:
    return env[SHARED]


def _meets(s: ir.Statement) -> bool:
    """Whether a thread may have to wait in a statement, or to be one of several."""
    return any(
        isinstance(
            x,
            ir.Barrier | ir.Rotate | ir.Shuffle | ir.Draw | ir.AwaitTurn | ir.EndTurn | ir.Parallel,
        )
        for x in statements((s,))
    )


def _is_of_a_warp(s: ir.Statement) -> bool:
    return isinstance(s, ir.Rotate | ir.Draw | ir.AwaitTurn | ir.EndTurn) or s == ir.Barrier("warp")


def _together(threads: list[Running], shared: SharedMemory) -> None:
    """Run threads from barrier to barrier until all end."""
    waiting = [next(t, None) for t in threads]
    while any(waiting):
        if not all(waiting):
            raise VerificationError(
                "some threads of a block end before a barrier that others wait at"
            )
        shared.touched.clear()
        shared.barriers += 1
        waiting = [next(t, None) for t in threads]
