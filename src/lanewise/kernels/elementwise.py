"""`@elementwise`: one record at a time, updated in place, with an optional value for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lanewise.errors import ArgumentError
from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.ir.names import COUNT, LANES, partial_of
from lanewise.kernels.arguments import (
    Arguments,
    bind_value_array,
    flatten_uniforms,
    make_output,
    make_outputs,
    name_arguments,
    sort_arguments,
)  # fmt: skip
from lanewise.kernels.compiled import Call, Compiled
from lanewise.kernels.reductions import max_, min_, sum_
from lanewise.kernels.support import bind_record, compile_kernel, describe_layouts, index_type, machine_of, value_type
from lanewise.patterns.elementwise import ElementwiseArguments, build_elementwise, result_arrays
from lanewise.patterns.reduction import Operation, build_reduction, reduced_type, reduction_lanes
from lanewise.plan import Plan
from lanewise.plans import Work, complete_plan
from lanewise.record import Record
from lanewise.runtime.executable import Bound


class Elementwise:
    """A kernel over single elements. The first record parameter is updated in place; other arrays are read.

    Parameters of record type take record arrays; scalar and vector parameters take one value for all or an array with
    one value an element.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.python = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._signature: Signature | None = None
        self._lowered: Lowered | None = None
        self._compiled: dict[Any, Compiled] = {}

    @property
    def signature(self) -> Signature:
        self._signature = self._signature or read_signature(self.python)
        return self._signature

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` for what the language does not have."""
        first = next((n for n, kind in self.signature.parameters.items() if isinstance(kind, Record)), None)
        self._lowered = self._lowered or lower_function(self.signature, mutable=first)
        return self._lowered

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Run on all elements; returns an array of results, a tuple of them, or None."""
        return self.bind(*arguments, out=out, **named)()

    def compile(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Compiled:
        """The kernel for these arguments, without running it."""
        return self._specialise(self._sorted(arguments, named), plan)

    def bind(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Call:
        """A call with its memory bound, to run many times."""
        sorted_arguments = self._sorted(arguments, named)
        compiled = self._specialise(sorted_arguments, plan)
        count = self._count(sorted_arguments)
        bound = self._bound(sorted_arguments)
        named_results = result_arrays(self.lowered)
        kinds = [kind for _, kind in named_results]
        results = make_outputs(self.__name__, kinds, count, sorted_arguments.device, out)
        bound |= {n: bind_value_array(a, kind) for (n, kind), a in zip(named_results, results, strict=True)}
        launch = compiled.executable.prepare(bound, self._environment(sorted_arguments, count))
        return Call(launch, tuple(results), compiled)

    def sum(self, *arguments: Any, **named: Any) -> Any:
        """The sum of the results over all elements, in 64 bits and a fixed order, without storing them.

        A function with several results gives a tuple.
        """
        return self._reduce("sum", arguments, named)

    def min(self, *arguments: Any, **named: Any) -> Any:
        """The smallest result over all elements (by component)."""
        return self._reduce("min", arguments, named)

    def max(self, *arguments: Any, **named: Any) -> Any:
        """The largest result over all elements (by component)."""
        return self._reduce("max", arguments, named)

    def _reduce(self, operation: Operation, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        given = self._sorted(arguments, named)
        if not self.lowered.results:
            raise ArgumentError(f"{self.__name__} returns nothing to take the {operation} of")
        count = self._count(given)
        executable = self._specialise(given, None, operation).executable
        bound, environment = self._bound(given), self._environment(given, count)
        environment[LANES] = reduction_lanes(count)
        partials: list[Any] = []
        for name, kind in result_arrays(self.lowered):
            wide = reduced_type(kind, operation)
            partials.append(make_output(self.__name__, wide, environment[LANES], given.device, None))
            bound[partial_of(name)] = bind_value_array(partials[-1], wide)
        executable.prepare(bound, environment)()
        results = tuple({"sum": sum_, "min": min_, "max": max_}[operation](p) for p in partials)
        return results[0] if len(results) == 1 else results

    def _sorted(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Arguments:
        return sort_arguments(self.signature, name_arguments(self.signature, arguments, named), arrays_allowed=True)

    def _bound(self, given: Arguments) -> dict[str, Bound]:
        bound = {n: bind_record(r) for n, r in given.records.items()}
        kinds = self.signature.parameters
        return bound | {n: bind_value_array(a, value_type(kinds[n])) for n, a in given.arrays.items()}

    def _environment(self, given: Arguments, count: int) -> dict[str, Any]:
        return {**flatten_uniforms(self.signature, given.uniforms), COUNT: count}

    def _count(self, arguments: Arguments) -> int:
        counts = {n: len(a) for n, a in (*arguments.records.items(), *arguments.arrays.items())}
        if not counts:
            raise ArgumentError(f"{self.__name__}: at least one argument must be an array")
        if len(set(counts.values())) > 1:
            lengths = ", ".join(f"{n} has {c}" for n, c in counts.items())
            raise ArgumentError(f"{self.__name__}: the arrays differ in length: {lengths}")
        return next(iter(counts.values()))

    def _specialise(self, arguments: Arguments, plan: Plan | None, operation: Operation | None = None) -> Compiled:
        machine = machine_of(arguments.device)
        complete = complete_plan(plan, machine, Work("elementwise", self._count(arguments)))
        layouts = {n: (r.record, r.layout) for n, r in arguments.records.items()}
        key = (tuple(layouts.items()), tuple(arguments.arrays), arguments.device, complete, operation)
        if key not in self._compiled:
            kinds = self.signature.parameters
            pattern = ElementwiseArguments(
                layouts,
                {n: value_type(kinds[n]) for n in arguments.arrays},
                {n: value_type(kinds[n]) for n in arguments.uniforms},
            )
            index = index_type(arguments.device)
            if operation is None:
                naive = build_elementwise(self.lowered, pattern, index)
            else:
                naive = build_reduction(self.lowered, pattern, index, operation, strided=machine.kind == "cuda")
            executable = compile_kernel(naive, complete, arguments.device, wanted=plan)
            layouts_text = describe_layouts(arguments.records)
            self._compiled[key] = Compiled(self.__name__, executable, partial(self.bind, plan=complete), layouts_text)
        return self._compiled[key]


def elementwise(function: Callable[..., Any]) -> Elementwise:
    """Make a kernel of a function of one element: `@elementwise def kick(body: Body, a: vec3, dt: f32): ...`."""
    return Elementwise(function)
