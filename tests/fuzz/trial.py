"""One random program of any pattern, in every way that it can be run: the same bits from all of them.

The programs are exact (see `programs`), so neither plans nor devices have anything to round: but for the signs of zeros
every bit is compared. What a program expects of itself (`expected()`) comes from ordinary Python or NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.optimisations import LAYOUT, OPTIMISATIONS
from lanewise.compiler.pipeline import Program, build_program
from lanewise.compiler.work import describe_work
from lanewise.emit.cuda import emit_cuda
from lanewise.explanation.report import Explanation
from lanewise.frontend.scattered import adds_in_order
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Pattern as IrPattern
from lanewise.language import types as t
from lanewise.language.target import Machine, target_of
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.task_list import BoundArray
from lanewise.patterns.words import moved
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import CompileError, PlanError
from tests.fuzz.campaign import Case
from tests.fuzz.elsewhere import ARCHITECTURE, explained_for_a_gpu, pattern_of
from tests.fuzz.literals import refused_for_literals
from tests.fuzz.patterns.written import Pattern, whole
from tests.fuzz.plans import SMALL
from tests.fuzz.shrink import shrunk
from tests.fuzz.texts import executed
from tests.harness import run_kernel

Array = np.ndarray[Any, Any]
SHRINKING = 25.0  # seconds to look for a smaller program that fails in the same way
INEXACT = ("fast_math", "rsqrt")  # decisions that change what exact programs compute
COMPILED_FOR_A_GPU, INTERPRETED, SECOND_PLAN, LARGE = 0.06, 0.5, 0.3, 0.3  # shares of long runs
PLAN_EXPLAINED = 0.1  # the share whose random plan is explained, too: every default plan is
GROWTHS = (1_000, 1_000_000)  # how many times larger the arrays are that a default plan is chosen for
INTERPRETED_QUICKLY, EXPLAINED_QUICKLY = 0.2, 0.12  # shares of quick runs
KNOWN: tuple[str, ...] = ()  # parts of messages of mistakes that are being mended
POINTS = {
    "across": (0, 4, 8, 16), "targets": (1, 2, 3, 4), "rows": (1, 2, 4), "layers": (1, 2), "tile": (0, 8, 16, 128), "slices": (1, 4, 8, 32), "parts": (1, 2, 4),
    "block": (32, 64, 128), "unroll": (0, 1, 2, 4, 8), "panel": (0, 128), "down": (0, 4), "adjacent": (0, 1, 2),
}  # fmt: skip


def tried(case: Case, pattern: Pattern, device: str = "cpu") -> str:
    """Write a program, run it everywhere, and make it smaller where it fails: the outcome."""
    rng = case.random
    text = pattern.write(rng)
    case.shown = whole(text)
    state = rng.getstate()
    try:
        return Trial(case, text, device).run()
    except Exception as failure:
        if known := next((k for k in KNOWN if k in f"{type(failure).__name__}: {failure}"), None):
            return f"known: {known}"
        wanted = _kind(failure)

        def fails(smaller: str) -> bool:
            again = Case(case.campaign, case.seed, case.number, case.quick)
            again.random.setstate(state)
            try:
                Trial(again, smaller, device).run()
            except Exception as other:
                return _kind(other) == wanted
            return False

        case.shown = whole(shrunk(text, fails, SHRINKING))
        raise


def _kind(error: Exception) -> tuple[type, str]:
    """What makes two failures the same one."""
    return type(error), str(error)[:30]


@dataclass
class Trial:
    """One program on one device beside the interpreter."""

    case: Case
    text: str
    device: str = "cpu"
    near: Callable[[Array, Array], Array] | None = None  # what counts as equal where results are rounded

    def run(self) -> str:
        file = f"fuzz_{self.case.campaign.replace('-', '_')}_{self.case.number}.py"
        with executed(whole(self.text), file) as names:
            try:
                wanted = self._quietly(lambda: names.run("python"))
            except CompileError as error:
                if refused_for_literals(self.text, error, f"typed_{file}"):
                    return "literal refused"
                raise
            if hasattr(names, "expected"):
                self._expected(names, wanted)
            if hasattr(names, "expected_near"):
                for n, (f, w) in enumerate(zip(wanted, self._quietly(names.expected_near), strict=True)):
                    if not names.near(f, w).all():
                        raise AssertionError(f"interpreter: result {n} is far from differences: {f} instead of {w}")
                self.case.counts["way expected"] += 1
                self.near = names.near
            if self.device != "cpu":
                return self._on_a_gpu(names, wanted)
            return self._here(names, wanted)

    def _expected(self, names: Any, wanted: list[Array]) -> None:
        try:
            expected = self._quietly(names.expected)
        except OverflowError as error:
            # A variable that only literals set is as wide as they are; NumPy gives it the type of what it meets, or
            # refuses.
            if "Python integer" not in str(error):
                raise
            self.case.counts["way expected, refused by NumPy"] += 1
            return
        self._compare("interpreter", wanted, expected)
        self.case.counts["way expected"] += 1

    # ------------------------------------------------------------ a CPU, and what needs no GPU of one

    def _here(self, names: Any, wanted: list[Array]) -> str:
        rng, quick = self.case.random, self.case.quick
        # Drawn before anything is done with them: which of them a smaller program takes does not hang on what it holds.
        shares = [rng.random() for _ in range(6)]
        seeds = [Random(rng.getrandbits(32)) for _ in range(2)]
        subject = Subjects.of(names)
        if subject is not None and shares[0] < (INTERPRETED_QUICKLY if quick else INTERPRETED):
            self._interpreted(seeds[0], subject, wanted, cubin=shares[1] < COMPILED_FOR_A_GPU and not quick)
        if subject is not None and shares[5] < LARGE:
            self._compiled(
                subject.large(Random(seeds[0].random())), shares[1] < COMPILED_FOR_A_GPU / LARGE and not quick
            )
            self.case.counts["way large default"] += 1
        if not quick or shares[3] < EXPLAINED_QUICKLY:
            self._explained("CUDA", explained_for_a_gpu(names))
        if not quick and shares[3] < PLAN_EXPLAINED:
            self._plan_explained(names, seeds[0])
        if quick and self.case.number % 3:
            return "equal, not compiled"
        self._compare("CPU", names.run("cpu"), wanted)
        self.case.counts["way CPU"] += 1
        if "exact=False" in self.text:  # sums in order: those of parts are the same where nothing rounds
            self._compare("CPU, parts", names.run("cpu", Plan(parts=2 + int(6 * shares[3]))), wanted)
            self.case.counts["way CPU parts"] += 1
        if not quick or shares[2] < EXPLAINED_QUICKLY:
            self._explained("CPU", names.compiled("cpu").explain())
        if shares[4] < SECOND_PLAN and not quick:
            self._with_plans(names, wanted, "cpu", seeds[1])
        return "equal"

    def _explained(self, kind: str, explanation: Explanation) -> None:
        assert str(explanation)
        assert explanation.json()
        self.case.counts[f"way explained for {kind}"] += 1

    def _plan_explained(self, names: Any, rng: Random) -> None:
        """A random plan that the kernel does not refuse, for a GPU."""
        for plan in fewer(rng, draw_wish(rng, "cuda", pattern_of(names))):
            try:
                self._explained("CUDA, plan", explained_for_a_gpu(names, plan))
            except PlanError:
                continue
            return

    def _with_plans(self, names: Any, wanted: list[Array], device: str, rng: Random) -> None:
        """A random plan that the kernel does not refuse."""
        kind = "cpu" if device == "cpu" else "cuda"
        for plan in fewer(rng, draw_wish(rng, kind, pattern_of(names))):
            try:
                found = names.run(device, plan)
            except PlanError:
                self.case.counts[f"plan refused {kind}"] += 1
                continue
            self._compare(f"{device}, {plan}", found, wanted)
            self.case.counts[f"way {kind} plan"] += 1
            self.case.counts.update(f"decided {kind} {n}={v}" for n, v in plan.as_dict().items() if v is not None)
            return

    def _interpreted(self, rng: Random, subject: Subjects, wanted: list[Array], *, cubin: bool) -> None:
        """The kernels for a GPU with a random plan, thread by thread."""
        program, plan = subject.program(rng)
        if subject.runs:
            found = subject.interpreted(program)
            flat = [f.reshape(w.shape) if f.size == w.size else f for f, w in zip(found, wanted, strict=True)]
            self._compare(f"interpreted for CUDA, {plan}", flat, wanted)
            self.case.counts["way cuda IR"] += 1
        self._compiled(program, cubin)

    def _compiled(self, program: Program, cubin: bool) -> None:
        for kernel in program.kernels if cubin else ():
            log = compile_cubin(emit_cuda(kernel, "fuzz"), kernel.name, ARCHITECTURE).log
            assert "before its value is set" not in log, log
            self.case.counts["way NVRTC"] += 1

    # ------------------------------------------------------------ a GPU

    def _on_a_gpu(self, names: Any, wanted: list[Array]) -> str:
        self._compare(self.device, names.run(self.device), wanted)
        self.case.counts["way GPU"] += 1
        rng = Random(self.case.random.getrandbits(32))
        with_registers = self.case.random.random() < COMPILED_FOR_A_GPU
        self._explained("this GPU", names.compiled(self.device).explain(measure_resources=with_registers))
        self._with_plans(names, wanted, self.device, rng)
        subject = Subjects.of(names)
        if subject is not None and rng.random() < LARGE:
            plan = Plan(**subject.large(rng).plan.as_dict())
            try:
                found = names.run(self.device, plan)
            except PlanError:
                self.case.counts["large default refused"] += 1
                return "equal"
            self._compare(f"{self.device}, {plan}", found, wanted)
            self.case.counts["way large default"] += 1
        return "equal"

    # ------------------------------------------------------------ comparisons

    @staticmethod
    def _quietly(work: Callable[[], list[Array]]) -> list[Array]:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return work()

    def _compare(self, what: str, found: list[Array], wanted: list[Array]) -> None:
        if self.near is not None:
            found = [w if self.near(f, w).all() else f for f, w in zip(found, wanted, strict=True)]
        if wrong := different(found, wanted):
            raise AssertionError(f"{what}: {wrong}")


def different(found: list[Array], wanted: list[Array]) -> str:
    """Where results differ, as text: to the bit, but for the signs of zeros."""
    if len(found) != len(wanted):
        return f"{len(found)} results instead of {len(wanted)}"
    for n, (f, w) in enumerate(zip(found, wanted, strict=True)):
        if f.dtype != w.dtype or f.shape != w.shape:
            return f"result {n} is {f.dtype} {f.shape} instead of {w.dtype} {w.shape}"
        same = f == w
        if f.dtype.kind == "f":
            same |= np.isnan(f) & np.isnan(w)
        if not same.all():
            place = tuple(int(x[0]) for x in np.nonzero(~np.asarray(same).reshape(w.shape)))
            return f"result {n} at {place}: {f[place]!r} instead of {w[place]!r} ({int((~same).sum())} of {f.size})"
    return ""


# ------------------------------------------------------------ plans


def draw_wish(rng: Random, kind: str, pattern: IrPattern) -> Plan:
    """What a user may ask for: one to four decisions, each with a value of the catalogue or a small one."""
    choices = [o for o in OPTIMISATIONS if o.field not in (LAYOUT, *INEXACT) and len(o.values(kind, pattern)) > 1]
    changes: dict[str, Any] = {}
    for o in rng.sample(choices, min(len(choices), rng.randint(1, 4))):
        small = POINTS if pattern.over_points else SMALL
        possible = small.get(o.field, o.values(kind, pattern))
        changes[o.field] = rng.choice(possible)
    return Plan(**changes)


def fewer(rng: Random, plan: Plan) -> Iterator[Plan]:
    """A plan, then the same with one decision less, until none is left: what a kernel refuses is one of them,
    mostly.
    """
    changes = {n: v for n, v in plan.as_dict().items() if v is not None}
    while changes:
        yield Plan(**changes)
        del changes[rng.choice(list(changes))]


# ------------------------------------------------------------ kernels for a GPU, without one


@dataclass
class Subjects:
    """The kernel of a program as a GPU would get it: its reference kernel with indices of 32 bits, and the memory of a
    call.
    """

    names: Any
    reference: ir.Kernel
    environment: dict[str, Any]
    bound: dict[str, BoundArray]
    given: tuple[list[Any], dict[str, Any]]
    results: list[Any]
    calls: Any
    runs: bool

    @classmethod
    def of(cls, names: Any) -> Subjects | None:
        """None for programs that are more than one call of one function over arrays: sites, searches, gradients."""
        if not names.of_one_call:
            return None
        calls = names.kernel._calls
        with lw.device("cpu"):
            positional, named = names.arguments("cpu")
            given = calls.given(tuple(positional), named)
        if adds_in_order(calls.signature.source, calls.signature.arrays):
            given = moved(calls.signature, given, "cuda")  # whose threads add exactly
        reference = calls.skeleton.build(calls.lowered, calls.signature, given, t.I32)
        bound = dict(calls.subject.bound(given))
        made: list[Any] = []
        for r in calls.skeleton.results(calls.lowered, calls.subject.count(given), given.axes):
            scalar = t.scalar_of(r.kind)
            shape = (r.count, r.kind.length) if isinstance(r.kind, t.Vector) else (r.count,)
            made.append(np.full(shape, 77).astype(scalar.dtype))
            bound[r.name] = bind_value_array(made[-1], r.kind)
        runs = given.buckets is None and not given.summed and not (calls.skeleton.total and made)
        return cls(names, reference, calls.subject.environment(given), bound, (positional, named), made, calls, runs)

    def _default(self, wish: Plan, times: int = 1) -> CompletePlan:
        """The default plan of arrays that are so many times larger."""
        count = times * max(1, self.calls.subject.count(self.calls.given(tuple(self.given[0]), self.given[1])))
        counts = {c.name for c in self.reference.counts}
        sizes = {n: times * int(v) if n in counts else v for n, v in self.environment.items()}
        work = describe_work(self.reference, count, target_of("cuda")).at(sizes, count)
        return complete_plan(wish, Machine("cuda", 132), work)

    def large(self, rng: Random) -> Program:
        """As of a call with many more elements: small calls never get such plans."""
        return build_program(self.reference, self._default(Plan(), rng.choice(GROWTHS)), "cuda")

    def program(self, rng: Random) -> tuple[Program, Plan]:
        """With a random legal plan, or the default one."""
        for wish in fewer(rng, draw_wish(rng, "cuda", self.reference.pattern)):
            try:
                return build_program(self.reference, self._default(wish), "cuda"), wish
            except PlanError:
                continue
        return build_program(self.reference, self._default(Plan()), "cuda"), Plan()

    def interpreted(self, program: Program) -> list[Array]:
        for kernel in program.kernels:
            run_kernel(kernel, self.bound, self.environment)
        return self.names.off([self.results, self.given[0], [v for n, v in self.given[1].items() if n != "grid"]])
