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

import sys
from collections.abc import Generator, Mapping
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
    whole,
)
from lanewise.ir.interpreted_accesses import Accesses
from lanewise.ir.interpreted_memory import SHARED, ArrayMemory, SharedMemory, shared_of
from lanewise.ir.races import Races
from lanewise.ir.shared import group_bytes, shared_groups
from lanewise.ir.traverse import statements
from lanewise.language.target import WARP
from lanewise.support.errors import VerificationError

Running = Generator[bool, None, None]  # a thread: yields True at each barrier


Meeting = ir.Barrier | ir.Cooperation | ir.If | ir.For | ir.While | ir.Parallel
"""A statement at which a thread may stop until others are there."""


class _Break(Exception):
    """A `break` in a kernel, on its way to the loop around it."""


class _Continue(Exception):
    """A `continue` in a kernel, on its way to the loop around it."""


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
    _known: dict[int, tuple[Meeting | Step, ...]] = field(
        default_factory=dict[int, "tuple[Meeting | Step, ...]"], init=False, repr=False
    )

    @cached_property
    def accesses(self) -> Accesses:
        """What it does with its memory."""
        return Accesses(self.kernel, self.env, self.arrays, self.buffers, self.races)

    @cached_property
    def _asked(self) -> int:
        """How many threads ask each other: a warp, or all lanes of a kernel without blocks."""
        return sys.maxsize if self.kernel.grid is None else WARP

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
                known[id(s)] = step = self.accesses.move(s)
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
            for first in range(0, len(threads), self._asked):
                shared.touched.clear()
                _together(threads[first : first + self._asked], shared)
        else:
            _together(threads, shared)
        if any(copy for groups in shared.copies.values() for copy in groups):
            raise VerificationError("threads end before an asynchronous copy that they began")

    def _block(self, block: ir.Block, env: Environment) -> Running:
        for s in self._parts(block):
            match s:
                case ir.Barrier():
                    yield True
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
                    if isinstance(s, ir.Cooperation):
                        yield from self._cooperate(s, env)
                    else:
                        self._go_on(s(env))

    def _go_on(self, outcome: Outcome) -> None:
        """After the statements between two meetings."""
        match outcome:
            case None:
                pass
            case BlockExit.BREAK:
                raise _Break
            case BlockExit.CONTINUE:
                raise _Continue
            case _:
                raise VerificationError("a kernel has no results to return")

    def _parts(self, block: ir.Block) -> tuple[Meeting | Step, ...]:
        """The statements at which threads meet, and what those between them do."""
        parts = self._known.get(id(block))
        if parts is None:
            found: list[Meeting | Step] = []
            for meets, group in groupby(block, _meets):
                if meets:
                    found.extend(s for s in group if isinstance(s, Meeting))
                else:
                    found.append(block_step(tuple(group), self.accesses.step))
            self._known[id(block)] = parts = tuple(found)
        return parts

    def _leaves(self, body: ir.Block, env: Environment) -> Generator[bool, None, bool]:
        """Run the body of a loop once; whether a `break` leaves the loop."""
        try:
            yield from self._block(body, env)
        except _Continue:
            return False
        except _Break:
            return True
        return False

    def _cooperate(self, s: ir.Cooperation, env: Environment) -> Running:
        """Blocks run one after the other, so a turn that has not come when a block waits for it
        never comes.
        """
        shared, me = shared_of(env), env["@id"]
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
                first = me - me % s.group
                if s.distance in (0, -s.group):
                    source = first + (s.group - 1 if s.distance else 0)
                else:
                    source = me + s.distance if 0 <= me + s.distance - first < s.group else me
                env[s.name] = shared.exchanged[s.name, source]
                yield True
            case ir.Least():
                values = [env[x.name] for x in (s.value, *s.others)]
                shared.exchanged[s.name, me] = np.fmin.reduce(np.array(values, s.value.type.dtype))
                yield True
                others = [
                    x
                    for (name, of), x in shared.exchanged.items()
                    if name == s.name and of // self._asked == me // self._asked
                ]
                env[s.name] = np.fmin.reduce(np.array(others, s.value.type.dtype))
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
        """One integer in global memory, in an array or in the buffer that it became."""
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
        """Elements one after the other; those with their own barriers are the threads of one
        block, and run together.
        """
        kind = s.extent.type.dtype.type
        around = env.get("@indices", ())
        places = [
            {**env, s.variable: kind(i), "@indices": (*around, (s.variable, i))}
            for i in range(whole(s.extent, env))
        ]
        own = [x for x in statements(s.body) if isinstance(x, ir.Parallel)]
        if not own and any(isinstance(x, ir.Barrier | ir.OfLanes) for x in statements(s.body)):
            self._threads(places, s.body)
            return
        for place in places:
            yield from self._block(s.body, place)


def _meets(s: ir.Statement) -> bool:
    """Whether a thread may have to wait in a statement, or to be one of several."""
    return any(isinstance(x, ir.Barrier | ir.Cooperation | ir.Parallel) for x in statements((s,)))


def _is_of_a_warp(s: ir.Statement) -> bool:
    """A shuffle is one of threads that may meet others at barriers."""
    own = isinstance(s, ir.Cooperation) and not isinstance(s, ir.Shuffle)
    return own or s == ir.Barrier("warp")


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
