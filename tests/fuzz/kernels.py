"""Campaign "kernels": random typed programs on values near the limits; interpreter, CPU, CUDA IR and ordinary Python must agree."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import expressions, statements, subexpressions
from lanewise.language import types as t
from lanewise.language.values import to_python_value
from lanewise.layouts import Layout
from lanewise.planning.plan import Plan
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import CompileError, PlanError
from tests import corpus, harness
from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.exact import library_of_the_cpu, strict_cpu, strict_gpu
from tests.fuzz.plans import draw_plan
from tests.fuzz.programs import Program, Traits, write_program
from tests.fuzz.shrink import shrunk
from tests.fuzz.texts import executed
from tests.fuzz.values import Array, eighths, scalars, values

COMPILED_IN_QUICK = 8  # one of 8 quick cases is compiled for the CPU, which takes longer than all else
SEARCHED, REDUCED = 0.25, 0.04  # shares of the programs that can be
CALLED_AGAIN = 0.15
SHRINKING = 40.0  # seconds to look for a smaller program that fails in the same way
COMPILED_FOR_A_GPU = 0.1  # share of the programs that NVRTC compiles: each takes some 0.3 s
CLOSE = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12}
ZEROS = {np.dtype(np.float32): 0.0, np.dtype(np.float64): 0.0}  # to the bit, but for the signs of zeros
LOOSE = {
    np.dtype(np.float16): 2e-2,
    np.dtype(np.float32): 2e-3,
    np.dtype(np.float64): 1e-6,
}  # library functions, and sums in another order


def body(case: Case) -> str:
    """Interpreter, CPU, IR for a GPU and ordinary Python."""
    return _tried_and_shrunk(case, draw_traits(case.random), "cpu")


def _tried_and_shrunk(case: Case, traits: Traits, device: str) -> str:
    rng = case.random
    program = write_program(rng, traits)
    case.shown = program.text
    state = rng.getstate()
    try:
        return tried(case, program, device)
    except Exception as failure:
        wanted = _kind(failure)

        def fails(text: str) -> bool:
            again = Case(case.campaign, case.seed, case.number)
            again.random.setstate(state)
            try:
                tried(again, replace(program, text=text), device)
            except Exception as other:
                return _kind(other) == wanted
            return False

        case.shown = shrunk(program.text, fails, SHRINKING)
        raise


def _kind(error: Exception) -> tuple[type, str]:
    """What makes two failures the same one."""
    return type(error), str(error)[:30]


def tried(case: Case, program: Program, device: str = "cpu") -> str:
    """One program on values that the case draws, in every way that it can be run: the outcome."""
    with executed(program.text, f"fuzz_kernels_{case.number}.py") as names:
        try:
            lowered = names.kernel.lowered
        except CompileError as error:
            if "does not fit" in error.message:  # a literal that meets a literal becomes one that no type holds
                return "literal refused"
            raise
        case.counts.update(f"node {name}" for name in contents(lowered.function))
        trial = Trial(case, program, names)
        return trial.run() if device == "cpu" else trial.run_on_a_gpu()


def draw_traits(rng: Random) -> Traits:
    pattern = rng.choice(("elementwise", "elementwise", "pairwise"))
    return Traits(
        pattern, plain=rng.random() < 0.6, library=rng.random() < 0.2, vectors=rng.random() < 0.7,
        quantised=rng.random() < 0.7, central=pattern == "pairwise" and rng.random() < 0.25,
    )  # fmt: skip


def body_on_a_gpu(case: Case) -> str:
    """The same on a GPU, where there is one."""
    pattern = case.random.choice(("elementwise", "elementwise", "pairwise"))
    return _tried_and_shrunk(
        case, replace(draw_traits(case.random), pattern=pattern, strict=True, central=False), "cuda"
    )


def draw_layout(rng: Random, fields: Iterable[str]) -> Layout:
    width = rng.choice((2, 4, 8, 16))
    names = list(fields)
    rng.shuffle(names)
    cut = rng.randint(1, len(names))
    groups = [g for g in (names[:cut], names[cut:]) if g]
    return rng.choice((lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS(), lw.SoAoAS(groups), lw.AoSoA(width), lw.AoSoA(width)))


class Trial:
    """One program on one set of values."""

    def __init__(self, case: Case, program: Program, names: Any) -> None:
        self.case, self.program, self.names = case, program, names
        self.rng = case.random
        share = self.rng.choice((0.0, 0.1, 0.3, 0.6))
        # The same arrays for every way: drawn once.
        self.count = self.rng.choice((1, 5, 12, 19)) if not self.pairwise else self.rng.choice((1, 4, 9))
        self.sources = None if not self.pairwise or self.rng.random() < 0.5 else self.rng.choice((1, 6, 11))
        self._drawn = [self._records(n, share) for n in (self.count, self.sources or 1)]
        self.arrays = {n: values(self.rng, k, self.count, share) for n, k in program.arrays.items()}
        self.values = {n: self._uniform(k, share) for n, k in program.values.items()}

    @property
    def pairwise(self) -> bool:
        return self.program.traits.pairwise

    def _records(self, count: int, share: float) -> dict[str, Array]:
        if self.program.traits.central:
            return {n: eighths(self.rng, k, count) for n, k in self.program.fields.items()}
        return {n: values(self.rng, k, count, share) for n, k in self.program.fields.items()}

    def _uniform(self, kind: t.ValueType, share: float) -> Any:
        if self.program.traits.central:
            return eighths(self.rng, kind, 1)[0]
        drawn = (
            values(self.rng, kind, 1, share)[0] if isinstance(kind, t.Vector) else scalars(self.rng, kind, 1, share)[0]
        )
        return drawn if isinstance(kind, t.Vector) else drawn.item()

    def given(self, kernel: Any = None) -> harness.Input:
        drawn = iter(self._drawn)
        record = self.names.R
        case = corpus.Case(
            "fuzz", kernel or self.names.kernel, (record, record) if self.pairwise else (record,),
            lambda rng, n: next(drawn), lambda *a, **k: (), self.values, lambda rng, n: self.arrays,
        )  # fmt: skip
        return harness.Input(case, self.count, self.sources)

    def run(self) -> str:
        layout = draw_layout(self.rng, self.program.fields)
        reference = harness.run_public(self.given(), layout, "python")
        if self.program.traits.plain and not self.pairwise:
            self._python(reference)
        self._cuda(reference, draw_layout(self.rng, self.program.fields))
        if self.case.quick and self.case.number % COMPILED_IN_QUICK:
            return "equal, not compiled"
        self.outcome = outcome = self._cpu(reference, layout)
        if self.program.traits.central and self.rng.random() < SEARCHED:
            self._searched(layout)
        if not self.pairwise and self.program.results and self.rng.random() < REDUCED:
            self._reduced(layout)
        if self.rng.random() < CALLED_AGAIN:
            self._again(layout)
        self.case.counts[f"layout {layout.__class__.__name__}"] += 1
        self.case.counts[f"pattern {self.program.traits.pattern}"] += 1
        return outcome

    # ------------------------------------------------------------ searches and reductions

    def _searched(self, layout: Layout) -> None:
        """Through any structure the sources that are met are those of a search without one. The sums are exact in every order."""
        radius, k = self.rng.choice((0.5, 1.0, 2.5)), self.rng.choice((None, None, 1, 3))
        options = {"radius": radius, "position": "f0"} | ({} if k is None else {"k": k})
        given = self.given()
        records = given.records(layout)
        if k is not None and len(records[1]) <= k:
            return
        structure = self.rng.choice((lw.StaticGrid, lw.DynamicGrid))
        wanted, found = (
            self.names.kernel.using(search=search(**options))(*records, **self.values)
            for search in (lw.AllPairs, structure)
        )
        as_tuple = [tuple(np.asarray(x) for x in (r if isinstance(r, tuple) else (r,))) for r in (found, wanted)]
        if wrong := differences(*as_tuple, ZEROS):
            raise AssertionError(f"{structure.__name__} and all pairs differ: {wrong}\n{layout}, {options}")
        self.case.counts[f"way {structure.__name__}"] += 1

    def _again(self, layout: Layout) -> None:
        """A call that goes by an earlier one, with other arrays and the same values, has the bits of a bound one."""
        wanted = harness.run_public(self.given(), layout, "cpu")
        for number in range(3):
            found = harness.run_public(self.given(), layout, "cpu", bound=False)
            if wrong := differences(found, wanted):
                raise AssertionError(f"call {number} and the bound one differ: {wrong}\n{layout}")
        self.case.counts["way again"] += 1

    def _reduced(self, layout: Layout) -> None:
        """Sums of integers over all elements; those of floats depend on their order."""
        given = {device: self.given() for device in ("python", "cpu")}
        found: dict[str, list[Array]] = {}
        for device, g in given.items():
            sums = self.names.kernel.sum(*g.records(layout, device), **g.arrays, **self.values)
            found[device] = [np.asarray(x) for x in (sums if isinstance(sums, tuple) else (sums,))]
        for n, (kind, f, w) in enumerate(zip(self.program.results, found["cpu"], found["python"], strict=True)):
            if not t.scalar_of(kind).is_float and not np.array_equal(f, w) and self.outcome == "equal":
                raise AssertionError(f"sums over all elements differ: result {n}: {f!r} instead of {w!r}\n{layout}")
        self.case.counts["way sum"] += 1

    # ------------------------------------------------------------ a GPU

    def run_on_a_gpu(self) -> str:
        """A random layout and plan on the GPU itself against the interpreter."""
        layout, given, same = draw_layout(self.rng, self.program.fields), self.given(), self.sources is None
        reference = harness.run_public(self.given(), layout, "python")
        plan, _, refused = draw_plan(
            self.rng, "cuda", self.program.traits.pattern,
            lambda plan: harness.program(given.case, layout, plan, "cuda", same=same),
        )  # fmt: skip
        plan = self._exact_plan(plan)
        self._note("cuda", plan, refused)
        try:
            found = harness.run_public(given, layout, "cuda", plan)
        except PlanError as error:
            self.case.counts[f"refused when bound: {str(error).split(': ')[-1][:60]}"] += 1
            plan = Plan()
            found = harness.run_public(self.given(), layout, "cuda", plan)
        if not differences(found, reference):
            return "equal"
        loose = self.program.traits.library or self.pairwise
        if not differences(found, reference, LOOSE if loose else CLOSE):
            return "close"
        with executed(self.program.text, f"fuzz_kernels_{self.case.number}.py") as names, strict_gpu():
            found = harness.run_public(self.given(names.kernel), layout, "cuda", plan)
        if not (wrong := differences(found, reference, self._tolerance(plan) or ZEROS)):
            return "equal without contraction"
        if self.program.traits.library:  # the device's own sine decides about a branch, or cancels
            return "differs by library functions"
        raise AssertionError(f"GPU and interpreter differ, also without contraction: {wrong}\n{layout}, {plan}")

    # ------------------------------------------------------------ ordinary Python

    def _python(self, reference: Sequence[Array]) -> None:
        """Plain programs mean the same in ordinary Python, to the bit."""
        found = run_python(self.given())
        if wrong := differences(found, reference):
            raise AssertionError(f"ordinary Python and the interpreter differ: {wrong}")
        self.case.counts["way python"] += 1

    # ------------------------------------------------------------ CUDA

    def _cuda(self, reference: Sequence[Array], layout: Layout) -> None:
        """The IR for a GPU with a random plan, interpreted; some of them through the compiler."""
        given, same = self.given(), self.sources is None
        plan, program, refused = draw_plan(
            self.rng, "cuda", self.program.traits.pattern,
            lambda plan: harness.program(given.case, layout, plan, "cuda", same=same),
        )  # fmt: skip
        self._note("cuda", plan, refused)
        found = harness.run_kernels(program.kernels, given, layout)
        if differences(found, reference, self._tolerance(plan)):
            if (exact := self._exact_plan(plan)) != plan:
                plan = exact
                program = harness.program(given.case, layout, plan, "cuda", same=same)
                found = harness.run_kernels(program.kernels, self.given(), layout)
            if wrong := differences(found, reference, self._tolerance(plan)):
                raise AssertionError(f"interpreted for CUDA and reference differ: {wrong}\n{layout}, {plan}")
        self.case.counts["way cuda IR"] += 1
        if self.rng.random() < COMPILED_FOR_A_GPU and not self.case.quick:
            for kernel in program.kernels:
                compile_cubin(emit_cuda(kernel, "fuzz"), kernel.name, "sm_90")
                self.case.counts["way NVRTC"] += 1

    def _exact_plan(self, plan: Plan) -> Plan:
        """Without what may change a result: sums rearranged, approximate roots, a term that is zero for ordinary numbers alone."""
        plan = replace(plan, fma=None if plan.fma is None else False, rsqrt=None if plan.rsqrt is None else "written")
        return replace(plan, self_term="test") if plan.self_term == "drop" and not self.program.traits.central else plan

    def _tolerance(self, plan: Plan) -> dict[Any, float] | None:
        """None where results have to be equal to the bit."""
        if self.pairwise and not (self.program.traits.quantised or self.program.traits.central):
            return LOOSE
        return CLOSE if plan.fma or plan.rsqrt not in (None, "written") else None

    # ------------------------------------------------------------ CPU

    def _cpu(self, reference: Sequence[Array], layout: Layout) -> str:
        given, same = self.given(), self.sources is None
        plan, refused = Plan(), list[str]()
        if self.rng.random() < 0.6:
            plan, _, refused = draw_plan(
                self.rng, "cpu", self.program.traits.pattern,
                lambda plan: harness.program(given.case, layout, plan, "cpu", same=same), 4,
            )  # fmt: skip
        try:
            found = harness.run_public(given, layout, "cpu", plan)
        except PlanError as error:
            self.case.counts[f"refused when bound: {str(error).split(': ')[-1][:60]}"] += 1
            plan = Plan()
            found = harness.run_public(self.given(), layout, "cpu", plan)
        self._note("cpu", plan, refused)
        self.case.counts["way CPU"] += 1
        if not differences(found, reference):
            return "equal"
        library = self.program.traits.library or self.pairwise
        if not differences(found, reference, LOOSE if library else CLOSE):
            return "close"
        return self._exactly(layout, plan)

    def _exactly(self, layout: Layout, plan: Plan) -> str:
        """What rounding, fused operations and library functions explain is gone: now it must be equal to the bit."""
        plan = self._exact_plan(plan)
        with (
            executed(self.program.text, f"fuzz_kernels_{self.case.number}.py") as names,
            library_of_the_cpu(),
            strict_cpu(),
        ):
            reference = harness.run_public(self.given(names.kernel), layout, "python")
            found = harness.run_public(self.given(names.kernel), layout, "cpu", plan)
        tolerance = (
            LOOSE if self.pairwise and not (self.program.traits.quantised or self.program.traits.central) else None
        )
        if wrong := differences(found, reference, tolerance):
            raise AssertionError(f"CPU and interpreter differ, also without contraction: {wrong}\n{layout}, {plan}")
        return "equal without contraction"

    def _note(self, kind: str, plan: Plan, refused: list[str]) -> None:
        decided = {n: v for n, v in plan.as_dict().items() if v is not None}
        self.case.counts.update(f"plan {kind} {n}={v}" for n, v in decided.items())
        self.case.counts.update(f"refused {kind} {r}" for r in refused)


def run_python(given: harness.Input) -> tuple[Array, ...]:
    """The results of `kernel.python` for one element after the other, then the fields of the record."""
    kernel, record = given.case.kernel, given.records(lw.SoA())[0]
    kinds = kernel.signature.parameters
    rows: list[list[Any]] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of wrapped integers
        for n in range(given.targets):
            element, *_ = elements = [record[n]]
            for name in list(kinds)[1:]:
                value = given.arrays[name][n] if name in given.arrays else given.case.values[name]
                elements.append(to_python_value(value, kinds[name]))
            result = kernel.python(*elements)
            row = [] if result is None else list(result) if isinstance(result, tuple) else [result]
            row = [to_python_value(x, k) for x, k in zip(row, kernel.signature.results or [], strict=True)]
            rows.append(row + [getattr(element, f.name) for f in kinds[next(iter(kinds))]])
    return tuple(np.array([np.array(x) for x in column]) for column in zip(*rows, strict=True))


def differences(found: Sequence[Array], wanted: Sequence[Array], close: dict[Any, float] | None = None) -> str:
    """Where results differ, as text: to the bit (all NaNs are one, and zeros have signs), or floats by more than `close`."""
    assert len(found) == len(wanted), f"{len(found)} results instead of {len(wanted)}"
    for n, (f, w) in enumerate(zip(found, wanted, strict=True)):
        if f.dtype != w.dtype or f.shape != w.shape:
            return f"result {n} is {f.dtype} {f.shape} instead of {w.dtype} {w.shape}"
        same = f == w
        if f.dtype.kind == "f":
            same |= np.isnan(f) & np.isnan(w)
            if close is None:
                same &= (np.signbit(f) == np.signbit(w)) | np.isnan(w)
            else:
                with np.errstate(all="ignore"):
                    near = np.abs(f.astype("f8") - w.astype("f8")) <= close[f.dtype] * np.maximum(
                        np.abs(w.astype("f8")), 1e-30
                    )
                same |= near
        if not same.all():
            place = tuple(int(x[0]) for x in np.nonzero(~same))
            return f"result {n} at {place}: {f[place]!r} instead of {w[place]!r} ({int((~same).sum())} of {same.size})"
    return ""


def contents(function: ir.Function) -> set[str]:
    """The kinds of statements, operators and functions with their types that a function and its helpers hold."""
    found: set[str] = set()
    for f in (function, *functions(function.body)):
        for s in statements(f.body):
            found.add(type(s).__name__)
            for e in (x for top in expressions(s) for x in subexpressions(top)):
                match e:
                    case ir.Unary() | ir.Binary() | ir.Logical():
                        found.add(f"{e.operator} {e.type}")
                    case ir.Compare():
                        found.add(f"{e.operator} {e.left.type}")
                    case ir.Call():
                        found.add(f"{e.intrinsic} {e.arguments[0].type}")
                    case ir.Cast():
                        found.add(f"{e.operand.type} to {e.type}")
                    case _:
                        found.add(f"{type(e).__name__} {e.type}")
    return found


KERNELS = Campaign("kernels", body, limit=240.0, renew=250)
ON_A_GPU = Campaign("kernels-cuda", body_on_a_gpu, limit=240.0, renew=400)
