"""What is measured for a call of a function, and by what a tuned plan is found again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from lanewise.ir import nodes as ir
from lanewise.ir.names import turns_of
from lanewise.language.types import I64
from lanewise.launch.arguments import Arguments
from lanewise.launch.compiled import Tunable
from lanewise.launch.support import layouts_of, machine_of, value_type
from lanewise.launch.tuned_plans import Key, make_key, size_class
from lanewise.passes.index_tests import OUTSIDE
from lanewise.patterns.counted_turns import counted_turns
from lanewise.patterns.skeleton import KernelFunction, pair_of
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.primitives.exact_sums import words_for
from lanewise.runtime.memory import array_module
from lanewise.support.errors import ArgumentError

if TYPE_CHECKING:
    from lanewise.facade import Job


def tuning_job(
    function: KernelFunction,
    kernel: Tunable,
    arguments: Arguments,
    plan: Plan | None,
    adopt: Callable[[Plan, Hashable, CompletePlan], None],
) -> Job:
    """What tuning measures for a call. adopt: called with the fastest plan."""
    from lanewise.facade import Contents, Job, check_tunable

    if arguments.buckets is not None and plan is None:
        raise ArgumentError(
            f"{function.name}: calls like this one do not run the kernel but go to buckets (see "
            "explain()), which have no plan; "
            "with a plan, such as plan=lw.Plan(block=256), the kernel is tuned, for calls with "
            "that plan"
        )
    requested = plan or Plan()
    lengths = {n: len(a) for n, a in (arguments.records | arguments.arrays).items()}
    count, kinds = function.count(arguments), function.signature.parameters
    check_tunable(
        function.name, arguments.device, {"grid": count} if function.skeleton.threads else lengths
    )
    reference, environment = function.reference(arguments), function.environment(arguments)
    arrays = {n: (a, value_type(kinds[n])) for n, a in arguments.arrays.items()} | arguments.added
    device = arguments.device
    arrays |= {n: (words_for(row, device), I64) for n, (row, _) in arguments.summed.items()}
    if arguments.tests is not None and arguments.tests.within:
        arrays[OUTSIDE] = array_module(device).empty(count, I64.dtype), I64

    apart = not function.skeleton.pattern.over_pairs

    def contents(*, fresh: bool = apart) -> Contents:
        made = function.results(arguments)
        results, length = [(r.name, r.kind) for r in made], made[0].count if made else count
        return Contents(reference, arguments.records, arrays, results, length, device, fresh)

    specialisation = specialisation_of(function, arguments)
    turns = {turns_of(n): often for n, often in counted_turns(function, arguments).items()}
    return Job(
        function.name,
        reference,
        arguments.device,
        machine_of(arguments.device),
        function.work(arguments),
        lengths if function.skeleton.pattern.over_pairs else {"elements": count},
        {**environment, **turns},
        requested,
        key_of(function, arguments, reference, requested),
        lambda: contents().workload(environment),
        lambda: contents(fresh=True).workload(environment),
        lambda best: adopt(requested, specialisation, best),
        lambda: function.skeleton.advise(arguments, kernel),
        lambda: contents().nbytes,
    )


def specialisation_of(function: KernelFunction, arguments: Arguments) -> Hashable:
    """What of a call decides which tuned plan it gets, in a form that is quickly made."""
    layouts = tuple((n, r.layout) for n, r in arguments.records.items())
    sizes = tuple(map(size_class, function.skeleton.counts(function.name, arguments).values()))
    return (
        layouts,
        tuple(arguments.arrays),
        pair_of(arguments),
        arguments.variant,
        arguments.device,
        sizes,
    )


def key_of(
    function: KernelFunction, arguments: Arguments, reference: ir.Kernel, requested: Plan
) -> Key:
    """By what the tuned plan of calls like this one is kept."""
    *_, last = function.skeleton.counts(function.name, arguments).values()
    return make_key(
        reference,
        layouts_of(arguments.records),
        arguments.device,
        function.work(arguments),
        last,
        requested,
        reference.identical,
    )
