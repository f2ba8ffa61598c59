"""`@elementwise`: one record at a time, updated in place, with an optional value for each, and
totals over these values.

Sums run in 64 bits and in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, LANES, WORK, partial_of
from lanewise.ir.traverse import scatters
from lanewise.language.target import target_of
from lanewise.language.types import Scalar
from lanewise.launch.arguments import Arguments, bind_value_array, make_output
from lanewise.launch.executable import Executable
from lanewise.launch.result_memory import value_elsewhere
from lanewise.launch.sized import Result, require_for_call
from lanewise.launch.support import index_type, machine_of, value_type
from lanewise.patterns.calls import Remembered
from lanewise.patterns.elementwise.build import (
    ELEMENTWISE,
    ElementwiseArguments,
    Operation,
    build_elementwise,
    build_reduction,
    reduced_type,
    reduction_lanes,
    reduction_work,
)
from lanewise.patterns.elementwise.scattered import (
    call_arguments,
    elements_of,
    is_wide,
    prove,
    repeats,
    scattered_arrays_of,
    scattered_lengths,
    wide_lengths,
)
from lanewise.patterns.elementwise.scattering import build_scattering
from lanewise.patterns.elementwise.totals import NO_EXTREME, max_, min_, sum_
from lanewise.patterns.kernels import AbstractKernel
from lanewise.patterns.results import result_arrays
from lanewise.patterns.sizing import Program
from lanewise.patterns.skeleton import (
    CHECKS,
    Derived,
    Division,
    KernelFunction,
    Skeleton,
    advise_layout,
)
from lanewise.patterns.tables.names import POINTS
from lanewise.patterns.tables.ranges import kernel_of_tests
from lanewise.planning.plan import Plan
from lanewise.records.same_elements import are_same, overlapping
from lanewise.support.attributes import sealed
from lanewise.support.checks import plain_function
from lanewise.support.errors import ArgumentError, LanewiseError, brief, shortened
from lanewise.support.naming import by_name

if TYPE_CHECKING:
    from lanewise.facade import ElementwiseGradient


def _specialised(signature: Signature, arguments: Arguments) -> ElementwiseArguments:
    kinds = signature.parameters
    return ElementwiseArguments(
        {n: (r.record, r.layout) for n, r in arguments.records.items()},
        {n: value_type(kinds[n]) for n in arguments.arrays},
        {n: value_type(kinds[n]) for n in arguments.uniforms}
        | scattered_lengths(signature, arguments),
        signature.tables,
    )


def _build(
    lowered: Lowered, signature: Signature, arguments: Arguments, index: Scalar
) -> ir.Kernel:
    # the function that tests the indices of one that scatters does not
    if not scatters(lowered.function.body):
        return build_elementwise(lowered, _specialised(signature, arguments), index)
    uniforms = {n: value_type(signature.parameters[n]) for n in arguments.uniforms}
    plain = replace(_specialised(signature, arguments), uniforms=uniforms, tables={})
    function = wide_lengths(signature) if is_wide(arguments) else lowered
    return build_scattering(function, plain, scattered_arrays_of(signature, arguments), index)


def _counts(name: str, arguments: Arguments) -> Mapping[str, int]:
    counts = {n: len(a) for n, a in (*arguments.records.items(), *arguments.arrays.items())}
    if not counts:
        single = ", ".join(arguments.uniforms)
        found = f", found single values ({single})" if single else ""
        raise ArgumentError(
            f"{name}: at least one argument must be an array{found}; one element is an array as "
            "well, np.array([3.0])"
        )
    if len(set(counts.values())) > 1:
        lengths = ", ".join(f"{n} has {c}" for n, c in counts.items())
        raise ArgumentError(f"{name}: the arrays differ in length: {lengths}")
    count = next(iter(counts.values()))
    return (
        {COUNT: count, **arguments.lengths, WORK: 1, POINTS: count}
        if arguments.variant
        else {COUNT: count}
    )


def _check_parts(function: KernelFunction, arguments: Arguments) -> None:
    """Refuse to update records while others of them are read, as records or as values: which of
    them were updated before would be chance.
    """
    if len(arguments.records) + len(arguments.arrays) < 2:
        return
    changed = {p.name.split(".")[0] for p in function.lowered.function.parameters if p.mutable}
    updated = {n: array for n, array in arguments.records.items() if n in changed}
    if found := value_elsewhere(updated, function.all_uses(arguments), arguments.arrays):
        name, field, value = found
        raise ArgumentError(
            f"{function.name}: {name!r} is updated, and {value!r} shares memory with "
            f"{name}.{field} of other elements; pass a .copy() of it"
        )
    for name in updated:
        for other, read in arguments.records.items():
            same = other == name or are_same(updated[name], read)
            if not same and overlapping(updated[name], read):
                raise ArgumentError(
                    f"{function.name}: {name!r} is updated, and {other!r} has some of the same "
                    "records, at other places; pass a .copy() of one"
                )


def _prove(function: KernelFunction, arguments: Arguments) -> None:
    _check_parts(function, arguments)
    prove(function, arguments)


SKELETON = Skeleton(
    ELEMENTWISE,
    _build,
    _counts,
    in_place=True,
    advise=advise_layout,
    arguments=call_arguments,
    elements=elements_of,
    prove=_prove,
    options=(CHECKS,),
    repeats=repeats,
    tested=kernel_of_tests,
    division=Division.ROWS,
    scatters=True,
)


@sealed()
class Elementwise(AbstractKernel):
    """A kernel over single elements. The first record parameter is updated in place; other arrays
    are read.

    Parameters of record type take record arrays; scalar and vector parameters take a uniform
    argument or an array with one value per element: next to records of shape (n,) or (n,
    components); without records of any shape, which is the same for all arrays and for the results
    (vectors have one more axis for their components). An array parameter (`density:
    lw.Array1[lw.f32]`) takes one contiguous array of NumPy or CuPy for all elements, unchanged: a
    table, whose elements are read by index, or an array that is scattered to (`lw.scatter_add`).
    """

    def __init__(self, function: Callable[..., Any], derived: Derived | None = None) -> None:
        super().__init__(SKELETON, function, derived=derived)

    @brief
    def gradient(self, wrt: str | Iterable[str]) -> ElementwiseGradient:
        """The derivative of the sum of all results with respect to fields or values: an elementwise
        kernel again.

        wrt: "position" (a field), "body.position", "dt" (a parameter), or several of them. See
        `ElementwiseGradient` for calls and results. Raises `ArgumentError` for names that the
        function does not read, `CompileError` (with the line) for integers and for anything without
        a derivative.
        """
        from lanewise.facade import elementwise_gradient

        return elementwise_gradient(self, wrt)

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._calls.subject.derived is not None:
            raise TypeError(f"{self.__name__} is a part of a gradient, which is pickled as a whole")
        return by_name(self, (Elementwise, (self.python,)))

    def __call__(
        self,
        *arguments: Any,
        out: Any = None,
        plan: Plan | None = None,
        checks: bool = False,
        **named: Any,
    ) -> Any:
        """Run on all elements: an array of results, of shape (n,) or (n, components), a tuple of
        them, or None.

        Without records the elements have the shape of the arrays instead of (n,).

        out: an array, or a tuple of them, that takes the results. plan: an `lw.Plan` for this call,
        instead of the tuned or the default one.

        checks: test before the run that every index into a table or of a scatter is inside, as far
        as nothing proves it; raises `VerificationError` with the first element that is not, and
        changes nothing. The call waits for the tests.
        """
        try:
            return self._run(arguments, named, out, plan, checks)
        except LanewiseError as error:
            raise shortened(error)  # noqa: B904  (its own cause stays)

    @brief
    def sum(self, *arguments: Any, **named: Any) -> Any:
        """The sum of the results over all elements, in 64 bits and a fixed order, without storing
        them.

        A function with several results gives a tuple.
        """
        return self._reduce("sum", arguments, named)

    @brief
    def min(self, *arguments: Any, **named: Any) -> Any:
        """The smallest result over all elements (by component); NaN where there is one.

        Raises `ArgumentError` for no elements.
        """
        return self._reduce("min", arguments, named)

    @brief
    def max(self, *arguments: Any, **named: Any) -> Any:
        """The largest result over all elements (by component); NaN where there is one.

        Raises `ArgumentError` for no elements.
        """
        return self._reduce("max", arguments, named)

    def _reduce(
        self, operation: Operation, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        calls = self._calls
        calls.made += 1
        calls.notice()
        repeated, checked = calls.repeated[operation], CHECKS in named
        if not checked and (match := repeated.find(arguments, named, calls.settles)):
            return _reduced(operation, match[0].run(match[1], None))
        classified = calls.given(arguments, named)
        if scattered := calls.signature.scattered:
            raise ArgumentError(
                f"{self.__name__} scatters to {', '.join(sorted(scattered))}, and has no "
                f"{operation}; lw.{operation} takes it of the results of a call"
            )
        if not calls.lowered.results:
            raise ArgumentError(
                f"{self.__name__} has no return value, so .{operation}() is undefined: return the "
                "value of one element"
            )
        if operation != "sum" and not calls.subject.count(classified):
            raise ArgumentError(f"{self.__name__}.{operation}: {NO_EXTREME}")
        made = self._partials(operation, calls.subject.count(classified))
        bound, environment = calls.subject.bound(classified), self._environment(classified)
        kernel = self._reduction(classified, operation)
        tasks = calls.tasks(classified, kernel)
        require_for_call(self.__name__, classified.device, made, tasks.needs(environment))
        partials = [
            make_output(self.__name__, r.kind, r.count, classified.device, None) for r in made
        ]
        bound |= {r.name: bind_value_array(p, r.kind) for r, p in zip(made, partials, strict=True)}
        if not checked:
            self._remember(repeated, operation, arguments, named, classified)
        tasks.bound(bound, environment)()
        return _reduced(operation, partials)

    def _partials(self, operation: Operation, count: int) -> list[Result]:
        """The partial results that a kernel leaves."""
        return [
            Result(partial_of(name), reduced_type(kind, operation), reduction_lanes(count))
            for name, kind in result_arrays(self._calls.lowered)
        ]

    def _environment(self, classified: Arguments) -> dict[str, Any]:
        return _with_lanes(self._calls.subject.environment(classified))

    def _remember(
        self,
        repeated: Remembered,
        operation: Operation,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        classified: Arguments,
    ) -> None:
        """Keep a reduction for those like it."""
        calls = self._calls

        def program(classified: Arguments) -> Program:
            kernel = self._reduction(classified, operation)
            results = self._partials(operation, calls.subject.count(classified))
            return Program(kernel.tasks, self._environment(classified), results)

        if self._reduction(classified, operation).resizable:
            kinds = [
                (partial_of(n), reduced_type(kind, operation))
                for n, kind in result_arrays(calls.lowered)
            ]

            def partials(count: int, axes: tuple[int, ...]) -> list[Result]:
                del axes  # all elements give one number
                return [Result(n, kind, reduction_lanes(count)) for n, kind in kinds]

            calls.remember_as(
                repeated, arguments, named, classified, program, partials, _with_lanes
            )

    def _reduction(self, classified: Arguments, operation: Operation) -> Executable:
        """The kernel that leaves partial results, by the default plan."""
        calls, device = self._calls, classified.device
        layouts = tuple((n, r.record, r.layout) for n, r in classified.records.items())
        work = reduction_work(calls.subject.work(classified))
        complete = complete_plan(None, machine_of(device), work)

        def reference() -> ir.Kernel:
            arguments = _specialised(calls.signature, classified)
            index, strided = index_type(device), target_of(device).has_blocks
            return build_reduction(calls.lowered, arguments, index, operation, strided=strided)

        key = (operation, layouts, tuple(classified.arrays))
        return calls.programs.get(key, reference, complete, device)


def _with_lanes(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Values and counts of a reduction."""
    return {**environment, LANES: reduction_lanes(environment[COUNT])}


def _reduced(operation: Operation, partials: Sequence[Any]) -> Any:
    results = tuple({"sum": sum_, "min": min_, "max": max_}[operation](p) for p in partials)
    return results[0] if len(results) == 1 else results


@brief
def elementwise(function: Callable[..., Any]) -> Elementwise:
    """Make a kernel of a function of one element: `@elementwise def kick(body: Body, a: vec3, dt:
    f32): ...`.

    The first record is updated in place. Other parameters are numbers, or arrays with one value
    for each element: (n,), of vectors (n, components); without records of any shape. They are
    rounded to the declared type, as float64 to `lw.f32`. Arrays declared as `lw.Array1` to
    `lw.Array3` are passed unchanged and have exactly that type.

        @lw.elementwise
        def kinetic(body: Body) -> lw.f32:
            return 0.5 * body.mass * lw.dot(body.velocity, body.velocity)

        energy = kinetic(bodies)  # (n,) float32
        total = kinetic.sum(bodies)  # the same values, added without being stored

    Raises `CompileError` at the first call if the function contains something that the language
    does not have, `ArgumentError` for arguments that do not fit.
    """
    return Elementwise(plain_function("elementwise", function))
