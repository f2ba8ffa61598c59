"""Observers: functions that look at what arrives at the sites, and return values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.launch.executable import Launch
from lanewise.launch.programs import Programs
from lanewise.launch.repeatable import views_of
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.builder import agreed
from lanewise.patterns.sitewise.calls import (
    SiteCall,
    bind_phase,
    compile_phase,
    result_names,
    run_calls,
)
from lanewise.patterns.sitewise.function import SiteFunction
from lanewise.patterns.sitewise.index_tests import prove_all
from lanewise.patterns.sitewise.kernels import SiteKernels
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_calls import (
    SplitCall,
    SplitRoom,
    SplitValues,
    check_functions,
    part_arguments,
)
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites
from lanewise.patterns.sitewise.split_steps import look_now, no_tests, split_look, split_observed
from lanewise.patterns.sitewise.values import (
    Observed,
    SiteValues,
    classify_values,
    in_order,
    is_unchanging,
    same_values,
)
from lanewise.patterns.tables.ranges import refuse_checks
from lanewise.planning.plan import Plan, check_plan
from lanewise.runtime.memory import array_module, module_of
from lanewise.runtime.prepared import Flat, Prepared
from lanewise.support.errors import ArgumentError, brief
from lanewise.support.uncopied import uncopied

# Bytes of results that a look keeps whose launches are bound to them; with more, binding is the
# smaller part.
MOST_KEPT = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A look that is bound to the memory of some sites, and waits for arrays to fill. checks: that
    the memory lies where it did.
    """

    template: Flat
    checks: tuple[Callable[[], None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Filling:
    """The same of launches that always fill the same arrays: a caller gets copies."""

    launch: Launch
    results: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Looks:
    """What an observer has bound to the memory of some sites, by where they stand in a cycle.

    It holds neither, as the sites hold it.
    """

    made_of: tuple[Any, ...]
    values: dict[str, Any]
    by_place: dict[tuple[int, bool], _Waiting | _Filling]


@dataclass(eq=False)
class Observer:
    """A function that reads the populations that arrive, and returns one or more values for each
    site.
    """

    kernels: SiteKernels
    function: SiteFunction
    programs: Programs = field(default_factory=Programs)

    def __reduce__(self) -> NoReturn:
        uncopied("an observer of sites", "make another one of the same function")

    @brief
    def __call__(
        self, sites: AnySites, *, plan: Plan | None = None, checks: bool = False, **values: Any
    ) -> Any:
        """Arrays of shape (count,) or (count, components) on the sites' device: one, or a tuple of
        them; zeros at walls.

        checks: test every index into a table before; raises `VerificationError` with the first site
        that is outside.
        """
        check_plan(self.function.name, plan)
        if isinstance(sites, SplitSites):
            return self._on_mesh(sites, plan, checks, values)
        if checks is False and (again := self._again(sites, plan, values)) is not None:
            return again[0] if len(again) == 1 else again
        self.kernels.kinds.check_sites(sites)
        sites.whole.check()
        classified = self._values(sites, values)
        if refuse_checks(
            self.function.name, {"checks": checks}, (n for x in self._functions for n in x.tables)
        ):
            run_calls(sites, self.kernels.step_tests(sites, classified, (self.function,)))
        look, arrays, needs = self._bound(sites, sites.step, sites.fresh, plan, classified)
        for o in in_order(needs):
            o.sites.whole.check()
            o.look(o.sites.step, o.sites.fresh)()
        look()
        if not needs and not checks:
            arrays = self._keep(sites, plan, values, look, arrays)
        return arrays[0] if len(arrays) == 1 else arrays

    def _on_mesh(
        self, sites: SplitSites, plan: Plan | None, checks: bool, values: dict[str, Any]
    ) -> Any:
        """A look at sites on a mesh: arrays on the mesh, one or a tuple of them."""
        sites.whole.check()
        classified = self._split_values(sites, values)
        refuse_checks(self.function.name, {"checks": checks}, ())
        rooms = [self._room(part) for part in sites.parts]
        look_now(split_observed(self.kernels, sites, classified))
        bind = partial(self._part_call, sites.step, sites.fresh, plan)
        name, stands = self.function.name, (sites.step, sites.fresh)
        split_look(name, sites, *stands, classified, rooms, bind)()
        arrays = tuple(sites.gathered(each) for each in zip(*rooms, strict=True))
        return arrays[0] if len(arrays) == 1 else arrays

    def _part_call(
        self,
        step: int,
        fresh: bool,
        plan: Plan | None,
        sites: Sites,
        values: SiteValues,
        arrays: tuple[Any, ...],
    ) -> SiteCall:
        return self._call(sites, step, fresh, plan, values, arrays)

    def _split_values(self, sites: SplitSites, values: dict[str, Any]) -> SplitValues:
        """`_values` of sites on a mesh."""
        self.kernels.kinds.check_sites(sites)
        check_functions(self.function.name, sites, self._functions)
        varying = {
            **agreed((x.name, x.parameters) for x in self._functions),
            **self.function.fields,
        }
        parts, observed, copied = part_arguments(self.function.name, sites, values, varying)
        bound = tuple(self._values(p, own) for p, own in zip(sites.parts, parts, strict=True))
        return SplitValues(bound, observed, copied)

    def _of_mesh(self, sites: SplitSites, values: dict[str, Any]) -> Observed:
        classified = self._split_values(sites, values)
        kind = self._one_result()
        room = SplitRoom.of(sites, kind)
        rooms = [(view,) for view in room.views(sites)]
        ghosts = room.works()

        def look(step: int, fresh: bool) -> SplitCall:
            bind = partial(self._part_call, step, fresh, None)
            name = self.function.name
            return split_look(name, sites, step, fresh, classified, rooms, bind, ghosts)

        needs = split_observed(self.kernels, sites, classified)
        return Observed(self.function.name, sites, kind, room, look, no_tests, needs)

    def _one_result(self) -> t.ValueType:
        """The type of what is observed. Raises `ArgumentError` where that are several values."""
        results = self.function.update.lowered.results
        if len(results) != 1:
            raise ArgumentError(
                f"{self.function.name} returns {len(results)} values; observed is one: wanted an "
                "observer for each"
            )
        return results[0]

    def _again(
        self, sites: Sites, plan: Plan | None, values: dict[str, Any]
    ) -> tuple[Any, ...] | None:
        """The results of a call like an earlier one on these sites; None where there was none."""
        self.function.notice()
        looks = sites.kept.get(self) if isinstance(sites, Sites) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if (
            looks is None
            or looks.made_of != self._made_of(sites, plan)
            or not same_values(looks.values, values)
        ):
            return None
        if (look := looks.by_place.get(sites.place)) is None:
            return None
        sites.whole.check()
        if isinstance(look, _Filling):
            look.launch()
            return _copies(look.results)
        for check in look.checks:
            check()
        arrays = self._room(sites)
        look.template.launch(
            views_of(dict(zip(result_names(len(arrays)), arrays, strict=True)), sites.device), {}
        )
        return arrays

    def _keep(
        self,
        sites: Sites,
        plan: Plan | None,
        values: dict[str, Any],
        call: SiteCall,
        results: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        """Let the sites keep a look for calls like it, where its values stay the same; what its
        caller gets.
        """
        if not all(map(is_unchanging, values.values())):
            return results
        names, launch = frozenset(result_names(len(results))), call.launch
        given = results
        if (
            isinstance(launch, Prepared)
            and (template := launch.opened(names, frozenset())) is not None
        ):
            look = _Waiting(template, launch.checks)
        elif sum(a.nbytes for a in results) <= MOST_KEPT:
            look, given = _Filling(launch, results), _copies(results)
        else:
            return results
        made_of, looks = self._made_of(sites, plan), sites.kept.get(self)
        if looks is None or looks.made_of != made_of or not same_values(looks.values, values):
            looks = sites.kept[self] = _Looks(made_of, values, {})
        looks.by_place[sites.place] = look
        return given

    def _made_of(self, sites: Sites, plan: Plan | None) -> tuple[Any, ...]:
        """What decides about a look besides its values."""
        kinds = self.kernels.kinds
        return (
            plan,
            self.function.version,
            kinds.versions,
            tuple(kinds.functions),
            tuple(kinds.fields),
            kinds.walls,
            sites.interpolation,
        )

    @brief
    def of(self, sites: AnySites, **values: Any) -> Observed:
        """Its result for these sites at the beginning of every step, as a value of another call:
        see `lw.couple`.

        Raises `ArgumentError` unless it returns one value.
        """
        if isinstance(sites, SplitSites):
            return self._of_mesh(sites, values)
        self.kernels.kinds.check_sites(sites)
        classified = self._values(sites, values)
        kind = self._one_result()
        (array,) = self._room(sites)

        def look(step: int, fresh: bool) -> SiteCall:
            return self._call(sites, step, fresh, None, classified, (array,))

        needs = self.kernels.observed(sites, classified)
        tests = partial(self.kernels.tests, sites, classified, (self.function,))
        return Observed(self.function.name, sites, kind, array, look, tests, needs)

    @brief
    def prepare(self, sites: AnySites, step: int, **values: Any) -> None:
        """Compile the kernel that reads the sites after `step` steps, at least one."""
        if isinstance(sites, SplitSites):
            split = self._split_values(sites, values)
            for part, own in zip(sites.parts, split.parts, strict=True):
                self._call(part, step, False, None, own, self._room(part))
            return
        self._bound(sites, step, False, None, self._values(sites, values))

    def _bound(
        self, sites: Sites, step: int, fresh: bool, plan: Plan | None, classified: SiteValues
    ) -> tuple[SiteCall, tuple[Any, ...], tuple[Observed, ...]]:
        """What looks, the arrays that it fills, and what is observed before it."""
        arrays = self._room(sites)
        call = self._call(sites, step, fresh, plan, classified, arrays)
        return call, arrays, self.kernels.observed(sites, classified)

    @property
    def _functions(self) -> tuple[SiteFunction, ...]:
        """Its own, and what writes the fields that it reads."""
        return (self.function, *self.kernels.kinds.writers(self.function.fields))

    def _values(self, sites: Sites, values: dict[str, Any]) -> SiteValues:
        """What a call gives, for the function itself and for what writes the fields that it reads.

        No index surely leads out of a table.
        """
        kinds, f = self.kernels.kinds, self.function
        f.notice()
        if f.real != kinds.real:
            raise ArgumentError(f"{f.name} computes in {f.real}, and {kinds.name} in {kinds.real}")
        parameters = agreed((x.name, x.parameters) for x in self._functions)
        tables = agreed((x.name, x.tables) for x in self._functions)
        read = {n: k for n, k in f.fields.items() if n not in kinds.state}
        needed = {
            value for w in kinds.walls_of(sites) for field, value in w.fields if field in f.fields
        }
        of_walls = {
            n: k
            for n, k in kinds.wall_velocities(sites).items()
            if isinstance(k, t.Vector) or n in needed
        }
        classified = classify_values(
            f.name,
            sites,
            values,
            parameters,
            kinds.known_values(),
            of_walls,
            read,
            frozenset(kinds.fields),
            tables,
        )
        prove_all(self.kernels.kinds, sites, classified, (f,))
        if not f.update.lowered.results:
            raise ArgumentError(f"{f.name} returns nothing to observe")
        return classified

    def _room(self, sites: Sites) -> tuple[Any, ...]:
        """An array for each result, on the sites' device."""
        module = array_module(sites.device)
        return tuple(
            module.zeros((sites.count, *t.shape_of(k)), t.scalar_of(k).dtype)
            for k in self.function.update.lowered.results
        )

    def _call(
        self,
        sites: Sites,
        step: int,
        fresh: bool,
        plan: Plan | None,
        values: SiteValues,
        arrays: tuple[Any, ...],
    ) -> SiteCall:
        """The look itself, which fills the arrays."""
        kernels, f = self.kernels, self.function
        key = (
            f.version,
            sites.form.phase(step, fresh=fresh).name,
            *kernels.specialisation(sites, values),
        )

        def build(index: t.Scalar) -> ir.Kernel:
            arguments = kernels.arguments(sites, step, fresh, values, (f.update,))
            return build_sitewise(arguments, index)

        return bind_phase(
            compile_phase(self.programs, key, build, sites, plan),
            sites,
            step,
            values,
            tuple(zip(arrays, f.update.lowered.results, strict=True)),
            stage="observe",
        )


def _copies(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(module_of(array).copy(array) for array in arrays)
