"""One kernel of the zoo: which plans are worth a look, whether they are right, how long they take."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.compiler.pipeline import Program, build_program
from lanewise.explanation.calls import call_subject
from lanewise.explanation.compiled import compiled, find_model
from lanewise.explanation.subject import Subject
from lanewise.models.least import least_time
from lanewise.models.predict import predict
from lanewise.patterns.threadwise import plans
from tests.fuzz.texts import executed
from tests.zoo.every import generate
from tests.zoo.generate import FULL, Case
from tests.zoo.truth import check

ROUNDS, LEAST = 7, 2e-3  # seconds of a round at least
FAR = 10  # times the best one: timed once
STEPS = 50  # of a small kernel that are timed at least
CLOSE = 1e-3  # of values that two plans compute
PLAIN = lw.Plan(block=256)
NARROW = lw.Plan(block=256, across=32, rows=2, targets=4, adjacent=1)
CUBES = lw.Plan(block=128, across=16, layers=2, rows=2, targets=4)
LOOSE = replace(plans.CHANNELS[0], min_blocks=1)
SHARED = tuple(lw.Plan(block=256, slices=s, unroll=4) for s in (32, 256))
OTHERS = (
    plans.PRODUCTS[0], plans.PRODUCTS[6], *plans.BATCHES[:2], plans.CHANNELS[0], LOOSE, plans.WINDOWS[1], plans.TURNED[0],
    *plans.APART[:2], *plans.NEAR[:2], plans.LAYERS[0], *plans.STREAMS[1:], plans.STRIDED[0], NARROW, CUBES, *SHARED, PLAIN,
)  # fmt: skip


class Looked:
    """A kernel with its default plan, and the plans that are worth a measurement, best first by the model.

    most: how many beside the default one. until: no further plan is looked at after this time.
    cold: whether the bound counts every byte that is read or written, as where arrays are larger
    than the caches: launches that follow each other find nothing of use there. A copy of 64 MB
    takes 35 us on an NVIDIA H200 in a row of copies, and 38 us alone after other data.
    """

    def __init__(
        self,
        kernel: Any,
        given: dict[str, Any],
        grid: tuple[int, ...],
        most: int,
        until: float,
        *,
        cold: bool,
    ) -> None:
        self.cold = cold
        model = find_model("cuda", None)
        named = {**given, "grid": grid}
        self.subject, _, _ = call_subject(kernel, (), named, "cuda", model)
        self.default = self.program(lw.Plan())
        assert self.default is not None, "the default plan is refused"
        self.predicted = self.seconds(self.default)
        self.bound = self.bound_of(self.default)
        self.chosen = self._chosen(most, until)

    def program(self, plan: lw.Plan) -> Program | None:
        s = self.subject
        try:
            return build_program(s.reference, s.default(plan), "cuda", between=False)
        except lw.PlanError:
            return None

    def seconds(self, program: Program) -> float:
        assert self.subject.model is not None
        return predict(program, self.subject.environment, self.subject.model, in_graph=True).seconds

    def bound_of(self, program: Program) -> float:
        assert self.subject.model is not None
        environment, model = self.subject.environment, self.subject.model
        return least_time(program, environment, model, cold=self.cold).seconds

    def _chosen(self, most: int, until: float) -> list[tuple[float, lw.Plan]]:
        found: list[tuple[float, int]] = []
        seen = [self.default.kernels]
        for n, plan in enumerate(OTHERS):
            if time.time() > until:
                break
            program = self.program(plan)
            if program is None or program.kernels in seen:
                continue
            seen.append(program.kernels)
            found.append((self.seconds(program), n))
            self.bound = min(self.bound, self.bound_of(program))
        found.sort()
        # the model may be wrong about all of them alike: a thread for each point is always among them
        kept = found[:most] + [f for f in found[most:] if OTHERS[f[1]] is PLAIN]
        return [(seconds, OTHERS[n]) for seconds, n in kept]


@contextlib.contextmanager
def kernel_of(case: Case) -> Iterator[Any]:
    with executed(case.text, f"zoo_{case.seed}.py") as names:
        yield names.kernel


def compile_case(seed: int, size: str, most: int, until: float) -> dict[str, Any]:
    """What a kernel costs before it runs; nothing is measured, and no GPU is needed."""
    case, begun = generate(seed), time.time()
    given, grid = case.arguments(size)
    with kernel_of(case) as kernel:
        looked = Looked(kernel, given, grid, most, until, cold=case.is_beyond_caches(size))
        built, subject = time.time(), looked.subject
        for plan in (lw.Plan(), *(p for _, p in looked.chosen)):
            if time.time() < until:
                compiled(_with(subject, plan))
        return _facts(case, looked) | {
            "plans": len(looked.chosen) + 1,
            "build_s": built - begun,
            "compile_s": time.time() - built,
        }


def _with(subject: Subject, plan: lw.Plan) -> Subject:
    return replace(subject, plan=subject.default(plan), requested=plan)


def measure_case(
    seed: int, size: str, most: int, until: float, alone: AbstractContextManager[Any]
) -> dict[str, Any]:
    """The times of a kernel's plans, the default one first. alone: held while the GPU works."""
    import cupy

    case, begun = generate(seed), time.time()
    host, grid = case.arguments(size)
    with kernel_of(case) as kernel:
        looked = Looked(kernel, host, grid, most, until, cold=case.is_beyond_caches(size))
        with alone:
            given = {n: cupy.asarray(a) for n, a in host.items()}
        row = _facts(case, looked)
        calls: dict[str, Callable[[], Any]] = {"default": kernel.bind(**given, grid=grid)}
        predictions = {"default": looked.predicted}
        for seconds, plan in looked.chosen:
            if time.time() < until:
                calls[short(plan)] = kernel.bind(**given, grid=grid, plan=plan)
                predictions[short(plan)] = seconds
        row["before_s"] = time.time() - begun
        written = given[case.written]
        with alone:
            wrong = differing(cupy, calls, written, case.unwritten)
            host[case.written] = cupy.asnumpy(written)
            times = _times(cupy, calls) if size == FULL else _times_of_steps(calls)
        row |= {"wrong": wrong} if wrong else {}
        try:
            row["error"] = check(case, kernel.python, host, host[case.written], grid, points=3)
        except AssertionError as error:
            row["wrong"] = str(error)[:500]
    best = min(times, key=lambda n: times[n])
    return row | {
        "ms": times["default"] * 1e3,
        "best": best,
        "best_ms": times[best] * 1e3,
        "each": {n: [predictions[n] * 1e3, t * 1e3] for n, t in times.items()},
    }


def predicted_again(row: dict[str, Any], size: str) -> dict[str, Any]:
    """A measured kernel with what today's models predict for the plans that ran, where today's
    passes know them; no GPU is needed.
    """
    if "each" not in row:
        return row
    # of all plans looked at then, not only of those measured
    bounds = [row["bound_ms"] * 1e-3]
    case, named = generate(row["seed"]), {short(p): p for p in OTHERS}
    given, grid = case.arguments(size)
    with kernel_of(case) as kernel:
        looked = Looked(kernel, given, grid, 0, 0.0, cold=case.is_beyond_caches(size))
    each = dict(row["each"])
    for name, (_, measured) in each.items():
        program = looked.default if name == "default" else looked.program(named[name])
        if program is not None:
            each[name] = [looked.seconds(program) * 1e3, measured]
            bounds.append(looked.bound_of(program))
    bound = min(bounds) * 1e3
    return row | {"each": each, "predicted_ms": each["default"][0], "bound_ms": bound}


def _facts(case: Case, looked: Looked) -> dict[str, Any]:
    return {
        "seed": case.seed,
        "family": case.family,
        "plan": short(looked.default.plan),
        "predicted_ms": looked.predicted * 1e3,
        "bound_ms": looked.bound * 1e3,
    }


def differing(
    cupy: Any, calls: dict[str, Callable[[], Any]], written: Any, unwritten: float
) -> str:
    """Which plan computes something else than the default one, whose results are left; or ""."""
    written[...] = unwritten
    calls["default"]()
    wanted, wrong = written.copy(), ""
    for name, call in calls.items():
        written[...] = unwritten
        call()
        if not bool(cupy.all(_close(cupy, written, wanted))):
            wrong = f"{name} differs from the default plan"
    written[...] = wanted
    return wrong


def _close(cupy: Any, written: Any, wanted: Any) -> Any:
    """Where results are the same but for roundings; integers and booleans have none."""
    if wanted.dtype.kind != "f":
        return written == wanted
    nan = cupy.isnan(wanted)
    far = CLOSE * (1 + cupy.abs(wanted))  # endless numbers are near to themselves alone
    close = (written == wanted) | cupy.isfinite(wanted) & (cupy.abs(written - wanted) <= far)
    return (close & ~nan) | (nan & cupy.isnan(written))


def _times(cupy: Any, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Medians in seconds on a GPU, the default always among those that are timed in turns."""
    return in_turns(calls, lambda call, repeat: on_gpu(cupy, call, repeat), far=FAR)


def _times_of_steps(calls: dict[str, Any]) -> dict[str, float]:
    """The same as steps of a loop: a launch from Python takes longer than a small kernel."""

    def once(run: Callable[[int], Any], repeat: int) -> float:
        begun = time.perf_counter()
        run(STEPS * repeat)
        return (time.perf_counter() - begun) / (STEPS * repeat)

    loops: dict[str, Any] = {n: lw.steps([call]).run for n, call in calls.items()}
    for run in loops.values():
        run(STEPS)  # which makes its graphs
    return in_turns(loops, once, far=FAR)


def on_gpu(cupy: Any, call: Callable[[], Any], repeat: int) -> float:
    """Seconds of one of so many calls, by events."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(repeat):
        call()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) * 1e-3 / repeat


def in_turns(
    calls: dict[str, Callable[..., Any]],
    once: Callable[[Callable[..., Any], int], float],
    *,
    far: float,
) -> dict[str, float]:
    """Medians in seconds; calls in turns. What takes far more than the best one is timed once."""
    first = {n: once(c, 1) for n, c in calls.items()}
    near = [n for n in calls if n == "default" or first[n] <= far * min(first.values())]
    repeats = {n: max(1, min(100, int(LEAST / max(first[n], 1e-6)))) for n in near}
    rounds: dict[str, list[float]] = {n: [] for n in near}
    for _ in range(ROUNDS):
        for n in near:
            rounds[n].append(once(calls[n], repeats[n]))
    return first | {n: statistics.median(r) for n, r in rounds.items()}


SHAPING = (
    "block", "across", "down", "rows", "layers", "targets", "adjacent", "tile", "slices", "parts", "prefetch",
    "neighbours", "unroll", "min_blocks",
)  # fmt: skip


def short(plan: Any) -> str:
    """The fields of a plan that shape its threads: no two plans of them have one text."""
    shown = {n: v for n, v in plan.as_dict().items() if n in SHAPING}
    return ", ".join(
        f"{n}={v}"
        for n, v in shown.items()
        if v not in (None, 0, "none", "last") and (v != 1 or n == "adjacent")
    )


def shares(values: Any, low: float, high: float) -> float:
    """The share of values within two limits."""
    values = np.asarray(values)
    return float(np.mean((values >= low) & (values <= high))) if values.size else float("nan")
