"""Campaign "threads": calls from many threads and from forked children give the bits of one call alone, or lanewise's
own error.

It runs in a guarded process: what goes wrong with threads is a crash or a hang as often as a wrong number.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.support.errors import LanewiseError
from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.texts import executed

WAIT = 60.0  # seconds for a child
Results = tuple[np.ndarray[Any, Any], ...]
Call = Callable[[], Results]


@lw.record
class Point:
    position: lw.vec3
    mass: lw.f32
    rank: lw.i32


@lw.elementwise
def collatz(p: Point) -> tuple[lw.i32, lw.f32]:
    """A local array and a loop of data-dependent length."""
    counts = lw.zeros(lw.i32, 4)
    value = lw.i64(lw.abs(p.rank)) + 1
    steps = 0
    while value > 1 and steps < 60:
        value = value // 2 if value % 2 == 0 else 3 * value + 1
        counts[steps & 3] += 1
        steps += 1
    return steps, lw.sqrt(p.mass) + lw.f32(counts[1])


@lw.elementwise
def drift(p: Point, dt: lw.f32):
    p.position += dt * p.mass * p.position
    p.rank = p.rank * 1664525 + 1013904223


@lw.pairwise
def pull(target: Point, source: Point, softening2: lw.f32) -> tuple[lw.vec3, lw.i32]:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d, lw.i32(source.rank < target.rank)


@lw.pairwise(search=lw.AllPairs(radius=0.2))
def near(target: Point, source: Point) -> tuple[lw.f32, lw.i32]:
    d = source.position - target.position
    return source.mass * (1 - lw.dot(d, d)), 1


@dataclass
class Work:
    """Something to call: `bind` makes a call of its own memory, `serial` is what one call alone gives."""

    name: str
    bind: Callable[[], Call]
    shareable: bool = True  # several threads may call what was bound once, and get the same
    serial: Results = field(init=False)

    def __post_init__(self) -> None:
        self.serial = self.bind()()


def _points(rng: Random, count: int) -> dict[str, Any]:
    values = np.random.default_rng(rng.getrandbits(63))
    return {
        "position": values.random((count, 3)).astype("f4"), "mass": values.random(count).astype("f4"),
        "rank": values.integers(-(2**31), 2**31, count).astype("i4"),
    }  # fmt: skip


def _copied(results: Any) -> Results:
    return tuple(np.array(r) for r in (results if isinstance(results, tuple) else (results,)))


def _bound(kernel: Any, *arguments: Any) -> Callable[[], Call]:
    def bind() -> Call:
        call = kernel.bind(*arguments)
        return lambda: _copied(call())

    return bind


SEARCHES = (
    lw.AllPairs(radius=0.2), lw.Neighbors(radius=0.1), lw.StaticGrid(radius=0.1), lw.DynamicGrid(radius=0.1), lw.Nearest(k=3),
    lw.StaticGrid(radius=0.2, k=4), lw.DynamicGrid(k=2), lw.AllPairs(k=3, radius=0.3),
)  # fmt: skip


KINDS = ("elementwise", "update", "reduction", "pairwise", "search", "search", "search", "query", "unbound", "sum")
QUICK = ("elementwise", "pairwise", "search")


def draw_work(rng: Random, quick: bool = False) -> Work:
    layout = lw.SoA() if quick else rng.choice((lw.AoS(), lw.SoA()))
    kind = rng.choice(QUICK if quick else KINDS)
    count = rng.choice((50, 700, 3000)) if kind not in ("elementwise", "update") else rng.choice((50, 3000, 40_000))
    fields = _points(rng, count)
    points = Point.array(**fields, layout=layout)
    match kind:
        case "elementwise":
            return Work(kind, _bound(collatz, points))
        case "update":

            def bind() -> Call:
                own = Point.array(**fields, layout=layout)

                def call() -> Results:
                    own.position, own.rank = fields["position"], fields["rank"]
                    drift(own, 0.5)
                    return tuple(own.numpy().values())

                return call

            return Work(kind, bind, shareable=False)
        case "reduction":
            return Work(kind, lambda: lambda: _copied(tuple(np.asarray(x) for x in collatz.sum(points))))
        case "sum":
            return Work(
                kind, lambda: lambda: _copied((np.asarray(lw.sum(points.mass)), np.asarray(lw.max(points.rank))))
            )
        case "pairwise":
            return Work(kind, _bound(pull, points, points, 0.1))
        case "unbound":
            return Work(kind, lambda: lambda: _copied(pull(points, points, 0.1)))
        case "search":
            kernel = near.using(search=lw.StaticGrid(radius=0.1) if quick else rng.choice(SEARCHES))
            others = points if quick or rng.random() < 0.6 else Point.array(**_points(rng, rng.choice((40, 500))))
            if rng.random() < 0.5:
                return Work(kind, lambda: lambda: _copied(kernel(points, others)))
            return Work(kind, _bound(kernel, points, others))
        case _:
            return Work(kind, lambda: lambda: _found(lw.neighbors(fields["position"], radius=0.1)))


def _found(found: Any) -> Results:
    return tuple(np.array(getattr(found, n)) for n in ("starts", "indices") if hasattr(found, n)) or _copied(found)


# ---------------------------------------------------------------- ways to call


class Wrong(AssertionError):
    """Results that are not those of one call alone."""


def _checked(work: Work, found: Results, where: str) -> None:
    if len(found) != len(work.serial):
        raise Wrong(f"{where}: {len(found)} results instead of {len(work.serial)}")
    for n, (f, w) in enumerate(zip(found, work.serial, strict=True)):
        if f.tobytes() != w.tobytes():
            raise Wrong(
                f"{where}: result {n} of {work.name} differs in {int((f != w).sum()) if f.shape == w.shape else f.shape} places"
            )


def in_threads(rng: Random, work: Work, threads: int, turns: int, shared: bool) -> None:
    """All threads begin at once; each calls some times."""
    start, problems = threading.Barrier(threads), list[BaseException]()
    one = work.bind() if shared else None

    def run() -> None:
        try:
            call = one or work.bind()
            start.wait(WAIT)
            for _ in range(turns):
                found = call()
                if not shared:
                    _checked(work, found, "in a thread")
        except BaseException as error:
            problems.append(error)

    running = [threading.Thread(target=run, daemon=True) for _ in range(threads)]
    for t in running:
        t.start()
    for t in running:
        t.join(WAIT)
        if t.is_alive():
            raise AssertionError(f"a thread with {work.name} hangs")
    if problems:
        raise problems[0]
    if one is not None:
        _checked(work, one(), "after threads shared a call")


def in_a_child(rng: Random, work: Work, how: str, threads: int, *, bound: Call | None = None) -> str:
    """In a forked (or spawned) child: the outcome. `bound` was bound in the parent."""
    context = multiprocessing.get_context(how)
    receive, send = context.Pipe(duplex=False)
    with tempfile.TemporaryFile("w+") as stacks:
        child = context.Process(target=_child, args=(send, work, threads, bound, stacks), daemon=True)
        child.start()
        send.close()
        try:
            if not receive.poll(WAIT):
                stacks.seek(0)
                raise AssertionError(f"a {how}ed child with {work.name} hangs\n{stacks.read()}")
            answer = receive.recv()
        except EOFError:
            child.join(5)
            raise AssertionError(f"a {how}ed child with {work.name} died: {child.exitcode}") from None
        finally:
            if child.is_alive():
                child.join(5)
            if child.is_alive():
                child.kill()
    if answer.startswith("!"):
        raise AssertionError(f"in a {how}ed child: {answer[1:]}")
    return answer


def _child(send: Any, work: Work, threads: int, bound: Call | None, stacks: Any) -> None:
    faulthandler.dump_traceback_later(0.7 * WAIT, file=stacks)
    try:
        if bound is not None:
            for _ in range(2):
                _checked(work, bound(), "in the child, bound before")
        if threads > 1:
            in_threads(Random(0), work, threads, 2, shared=work.shareable)
        else:
            _checked(work, work.bind()(), "in the child")
        send.send("equal")
    except LanewiseError as error:
        send.send(f"lanewise's own error: {type(error).__name__}")
    except BaseException as error:
        send.send(f"!{type(error).__name__}: {error}")
    send.close()


def spawned(send: Any, seed: int) -> None:
    """A child that shares nothing with its parent but the cache."""
    try:
        work = draw_work(Random(seed))
        send.send([r.tobytes() for r in work.serial])
    except BaseException as error:
        send.send(f"!{type(error).__name__}: {error}")


FRESH = """
@lw.elementwise
def kernel(x: lw.f32, n: lw.i32) -> tuple[lw.f32, lw.i32]:
    return x * {number} + 1, n * {number} ^ 77
"""


def first_compile(case: Case, threads: int) -> None:
    """Threads call a kernel that nobody has compiled, all at once. Its floats are integers: nothing is rounded."""
    rng = case.random
    with executed(FRESH.format(number=rng.randrange(3, 10**4)), f"fuzz_threads_{case.number}.py") as names:
        x, n = np.arange(100, dtype="f4"), np.arange(100, dtype="i4")
        with lw.device("python"):
            serial = names.kernel(x, n)
        work = Work.__new__(Work)
        work.name, work.shareable = "first compile", False
        work.bind = lambda: lambda: _copied(names.kernel(x, n))
        work.serial = _copied(serial)
        in_threads(rng, work, threads, 1, shared=False)


def body(case: Case) -> str:
    # Python 3.12 warns of what is tried here.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    rng = case.random
    threads = rng.randint(2, 16)
    way = rng.choices(("threads", "fork", "fork while others call", "first compile", "spawn"), (56, 24, 16, 2.5, 1.5))[
        0
    ]
    case.shown = f"{way}, {threads} threads"
    if way == "first compile":
        first_compile(case, threads)
        return f"{way}: equal"
    if way == "spawn":
        return f"{way}: {_spawn(rng)}"
    work = draw_work(rng, case.quick)
    case.shown += f", {work.name}, {[r.shape for r in work.serial]}"
    case.counts[f"{way}, {work.name}"] += 1
    if way == "threads":
        in_threads(rng, work, threads, rng.randint(1, 4), shared=work.shareable and rng.random() < 0.5)
        return f"{way}: equal"
    bound = work.bind() if work.shareable and rng.random() < 0.5 else None
    inside = rng.choice((1, 1, 4))
    case.shown += f", {inside} threads in the child, bound before: {bound is not None}"
    if way == "fork":
        return f"{way}: {in_a_child(rng, work, 'fork', inside, bound=bound)}"
    return f"{way}: {_while_others_call(rng, work, inside, bound, min(threads, 4))}"


def _while_others_call(rng: Random, work: Work, inside: int, bound: Call | None, threads: int) -> str:
    """Fork while other threads of the parent are in the middle of calls, also of the very call that the child uses."""
    over = threading.Event()
    problems: list[BaseException] = []

    def run() -> None:
        try:
            call = bound or work.bind()
            while not over.is_set():
                call()
        except BaseException as error:
            problems.append(error)

    running = [threading.Thread(target=run, daemon=True) for _ in range(threads)]
    for t in running:
        t.start()
    try:
        outcome = in_a_child(rng, work, "fork", inside, bound=bound)
    finally:
        over.set()
        for t in running:
            t.join(WAIT)
    if problems:
        raise problems[0]
    if any(t.is_alive() for t in running):
        raise AssertionError("a thread of the parent hangs")
    return outcome


def _spawn(rng: Random) -> str:
    seed = rng.getrandbits(60)
    wanted = [r.tobytes() for r in draw_work(Random(seed)).serial]
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=spawned, args=(send, seed), daemon=True)
    child.start()
    send.close()
    if not receive.poll(2 * WAIT):
        child.kill()
        raise AssertionError("a spawned child hangs")
    answer = receive.recv()
    child.join(5)
    if answer != wanted:
        raise AssertionError(
            f"a spawned child gives something else: {answer if isinstance(answer, str) else 'other bits'}"
        )
    return "equal"


THREADS = Campaign("threads", body, limit=500.0, renew=400, alone=True)
