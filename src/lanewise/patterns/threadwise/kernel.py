"""`@threadwise`: a thread for each index, which reads and writes whole arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from lanewise.analysis.affine import nest_of
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.types import Scalar
from lanewise.launch.arguments import Arguments
from lanewise.patterns.kernels import AbstractKernel
from lanewise.patterns.skeleton import CHECKS, Skeleton
from lanewise.patterns.tables.races import refuse_races
from lanewise.patterns.threadwise.arguments import call_arguments, counts, elsewhere, written_arrays
from lanewise.patterns.threadwise.build import build_kernel
from lanewise.patterns.threadwise.pattern import THREADWISE
from lanewise.patterns.threadwise.ranges import kernel_of_tests, prove, repeats
from lanewise.planning.plan import Plan
from lanewise.support.attributes import sealed
from lanewise.support.checks import plain_function
from lanewise.support.errors import CompileError, brief
from lanewise.support.naming import by_name

MOST = 3  # indices


def build(
    lowered: Lowered, signature: Signature, classified: Arguments, index: Scalar
) -> ir.Kernel:
    """The reference kernel; its indices are as wide as the call needs, whatever the device counts
    in.
    """
    if lowered.uses_same:
        raise CompileError(
            "lw.same asks about the pairs of a pairwise function", lowered.function.location,
            found="a threadwise function", wanted="a comparison of indices",
        )  # fmt: skip
    kernel = build_kernel(lowered, signature, classified)
    refuse_races(*nest_of(kernel))  # before tests of indices, which depend on threads
    guards: Any = classified.variant[-1] if classified.options.get(CHECKS) else ()
    return build_kernel(lowered, signature, classified, guards=guards) if guards else kernel


def checked(signature: Signature) -> Signature:
    """One to three indices first, arrays, values; something is written, and nothing returned."""
    source, arguments = signature.source, signature.source.tree.args.args
    first = tuple(a.arg for a in arguments[: len(signature.indices)])
    if not 1 <= len(signature.indices) <= MOST or first != signature.indices:
        raise source.error(
            "a threadwise function starts with the indices of its thread",
            source.tree,
            found=", ".join(ast.unparse(a) for a in arguments) or "no parameters",
            wanted="one to three, the slowest first: y: lw.index, x: lw.index; then arrays and "
            "values",
        )
    for a in arguments:
        if isinstance(signature.parameters.get(a.arg), Record):
            raise source.error(
                "a threadwise function has no records", a, found=ast.unparse(a),
                wanted="an array for each field: mass: lw.Array1[lw.f32]",
            )  # fmt: skip
    returned = next(
        (n for n in ast.walk(source.tree) if isinstance(n, ast.Return) and n.value is not None),
        None,
    )
    if signature.results:
        return _summed(signature)
    if returned is not None:
        raise _returned(signature, returned)
    if not written_arrays(signature):
        raise source.error(
            "this function changes nothing",
            source.tree,
            found="no assignment to an element of an array",
            wanted="c[y, x] = ..., with c: lw.Array2[lw.f32] among the parameters",
        )
    return signature


def _returned(signature: Signature, returned: ast.Return) -> CompileError:
    """Of a value that is returned by a function without a declared result."""
    kinds = [a.element for a in signature.arrays.values() if a.element != t.BOOL]
    summed = f"-> lw.{max(kinds, key=lambda kind: (kind.is_float, kind.size), default=t.I32)}"
    writes = bool(written_arrays(signature))
    return signature.source.error(
        "a threadwise function that returns a value declares it",
        returned,
        found=ast.unparse(returned),
        wanted="an assignment to an element, and no result"
        if writes
        else f"{summed} after the parameters, for the sum over all indices; or an assignment to "
        "an element",
        hint="a sum over all indices is a separate function: without assignments, and with "
        f"{summed}"
        if writes
        else "",
    )


def _summed(signature: Signature) -> Signature:
    """A function with a result is summed over its indices: one number, and nothing is written."""
    source, results = signature.source, signature.results or []
    declared = source.tree.returns or source.tree
    if len(results) != 1 or not isinstance(results[0], Scalar):
        raise source.error(
            "a threadwise function with a result is summed over its indices",
            declared,
            found=f"-> {ast.unparse(declared)}",
            wanted="one number: -> lw.f32",
        )
    if written := written_arrays(signature):
        raise source.error(
            "a threadwise function writes arrays or has a result, and not both",
            declared,
            found=f"-> {ast.unparse(declared)}, and assignments to {' and '.join(written)}",
            wanted="two functions",
        )
    if not signature.arrays:
        raise source.error(
            "a threadwise function reads or writes arrays",
            source.tree,
            found="no array among the parameters",
            wanted="an array, which also says where it runs: a: lw.Array2[lw.f32]",
        )
    return signature


SKELETON = Skeleton(
    THREADWISE,
    build,
    counts,
    check=checked,
    arguments=call_arguments,
    threads=True,
    repeats=repeats,
    total=True,
    options=(CHECKS,),
    prove=prove,
    elsewhere=elsewhere,
    tested=kernel_of_tests,
)


@sealed()
class Threadwise(AbstractKernel):
    """A kernel with a thread for each index.

    Its function takes one to three indices, then arrays and values that all threads share. A call
    passes the arrays and values, and with `grid=` the number of values of each index: `matmul(a, b,
    c, grid=c.shape)`. The kernel runs on the CPU for arrays of NumPy, and on their GPU for those of
    CuPy. It changes arrays in place, and the call returns None.

    A function with a result (`-> lw.f32`) is summed over its indices, in 64 bits and in an order
    that the plan determines. A call returns the sum as a number. With `out=`, an array of one
    float64 (int64 for integers) on the device, it writes the sum there and returns `out` without
    waiting.

    A call raises `ArgumentError`, with the line, if an index is certain to be outside of its array.
    With `checks=True` every other index that is not proved to be inside is tested while the kernel
    runs: an element outside reads as 0 and is not written. The call then waits for the kernel and
    raises `VerificationError` with the first thread, its line and its index.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(SKELETON, function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return by_name(self, (Threadwise, (self.python,)))

    @brief
    def __call__(
        self,
        *arguments: Any,
        out: Any = None,
        plan: Plan | None = None,
        checks: bool = False,
        **named: Any,
    ) -> Any:
        """Run for all indices: None, or the sum of the results.

        `grid=` is the number of values of each index. out: an array of one float64 (int64
        for integers) that takes the sum. plan: an `lw.Plan` for this call, instead of the tuned or
        the default one.

        checks: test while the kernel runs that every index into an array is inside, as far as
        nothing proves it; raises `VerificationError` for the first thread with one that is not.
        The call waits for the kernel.
        """
        result = self._run(arguments, named, out, plan, checks)
        return result if result is None or out is not None else result.item()


@brief
def threadwise(function: Callable[..., Any]) -> Threadwise:
    """Make a kernel of a function of one thread: one to three indices, then arrays and uniform
    arguments. In a call `grid=` is the number of values of each index.

        @lw.threadwise
        def twice(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], result: lw.Array2[lw.f32]):
            result[y, x] = 2 * a[y, x]

        a, result = np.ones((4, 5), np.float32), np.empty((4, 5), np.float32)
        twice(a, result, grid=a.shape)

    Arrays are contiguous, of NumPy or CuPy, and have exactly the declared type. A function that
    returns a number is summed over its indices.

    Raises `CompileError` at the first call for what the language does not have, `ArgumentError`
    for arguments that do not fit and for an index that is certain to be outside of its array.
    """
    return Threadwise(plain_function("threadwise", function))
