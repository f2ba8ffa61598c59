"""The steps of a loop on a mesh: what its calls copy and launch, averaged over a cycle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd

from lanewise.explanation.mesh_scaling import Cost, DividedStep, PartWork, RowsDivided
from lanewise.explanation.mesh_sites import SitesDivided, cut_anew, works_of_sites
from lanewise.explanation.mesh_steps import MOST_STEPS, MeshStep, explain_mesh
from lanewise.explanation.meshes import works_of
from lanewise.language.target import target_of
from lanewise.launch.divided import Divided
from lanewise.launch.sent import Law, Sent, even
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.task import States
from lanewise.patterns.sitewise.blocks import Cut, ghost_depth
from lanewise.patterns.sitewise.halo import GhostLaw
from lanewise.patterns.sitewise.split_calls import SplitCall, exchanges_made
from lanewise.patterns.sitewise.split_ghosts import is_cut_in_two


@dataclass(frozen=True, slots=True)
class OwnRows:
    """How many rows the parts of an array have, by those of the array that the step is about."""

    now: tuple[int, ...]
    of: tuple[int, ...]

    def __call__(self, rows: Sequence[int]) -> tuple[int, ...]:
        if tuple(rows) == self.of or not sum(self.of):
            return self.now
        if self.now == self.of:
            return tuple(rows)
        return even(round(sum(self.now) * sum(rows) / sum(self.of)), len(rows))


@dataclass(frozen=True, slots=True)
class OwnWork:
    """What parts launch for an array of another length."""

    work: PartWork
    own: OwnRows

    @property
    def name(self) -> str:
        """See `PartWork`."""
        return self.work.name

    @property
    def nbytes(self) -> int | None:
        """See `PartWork`."""
        return self.work.nbytes

    @property
    def times(self) -> float:
        """See `PartWork`."""
        return self.work.times

    @property
    def unknown(self) -> tuple[str, ...]:
        """See `PartWork`."""
        return self.work.unknown

    def cost(self, step: DividedStep, part: int) -> Cost | None:
        """See `PartWork`."""
        rows = self.own(step.rows)
        return self.work.cost(DividedStep(rows, rows, ()), part)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Something of the steps of a cycle, and how often it is there."""

    what: Divided | SplitCall
    times: int


def mesh_of_loop(rhythm: Rhythm) -> MeshStep | None:
    """A step of a loop whose arrays lie on a mesh; None of any other."""
    length = min(rhythm.period, MOST_STEPS)
    found = list(_cycle(rhythm, length))
    calls = [c for c in found if isinstance(c.what, Divided)]
    over_sites = [c.what for c in found if isinstance(c.what, SplitCall) for _ in range(c.times)]
    if over_sites:
        return _of_sites(over_sites, length)
    if not calls:
        return None
    divides = [(c.what, c.times) for c in calls if isinstance(c.what, Divided)]
    return step_of_calls(divides, length)


def _cycle(rhythm: Rhythm, length: int) -> Iterator[_Counted]:
    """The calls of so many steps, in which no values were set just before, each once."""
    stand: States = {id(s): (False, s.step + s.fresh) for s in rhythm.stepped}
    times: dict[int, int] = {}
    calls: dict[int, Divided | SplitCall] = {}
    for n in range(length):
        for task in rhythm.tasks_of(rhythm.kinds[n % rhythm.steps]):
            some = [*task.split(stand)] if task.divided is None else [task.divided]
            for call in some:
                calls[id(call)] = call
                times[id(call)] = times.get(id(call), 0) + 1
            stand = {**stand, **{id(s): (False, stand[id(s)][1] + 1) for s in task.stepped}}
    return (_Counted(call, times[of]) for of, call in calls.items())


def step_of_calls(calls: Sequence[tuple[Divided, int]], length: int) -> MeshStep:
    """Calls that are made so often in so many steps."""
    first = calls[0][0]
    laws: dict[str, tuple[Law, OwnRows, int]] = {}
    works: dict[str, PartWork] = {}
    order: list[str] = []
    for divided, times in calls:
        own = OwnRows(divided.lengths, first.lengths)
        for r, work in zip(divided.rounds, works_of(divided, times / length), strict=True):
            for law in () if r.exchange is None else r.exchange.laws:
                key = f"{law} {own}"
                before = laws[key][2] if key in laws else 0
                laws[key] = law, own, before + times
                order.append(f"bring {law(divided.lengths).name}")
            _add(works, f"{work.name} {own} {work.nbytes}", OwnWork(work, own))
            order.append(work.name)

    def sent(rows: tuple[int, ...]) -> tuple[Sent, ...]:
        return tuple(often(law(own(rows)), times, length) for law, own, times in laws.values())

    divides = RowsDivided(first.lengths, sent)
    return explain_mesh(
        first.mesh, first.devices, "rows", divides.divide, list(works.values()), divides.grow,
        list(dict.fromkeys(order)),
    )  # fmt: skip


def _add(works: dict[str, PartWork], key: str, work: OwnWork) -> None:
    """A work, or the same once more."""
    if (before := works.get(key)) is None:
        works[key] = work
        return
    assert isinstance(before, OwnWork)
    inner = before.work
    works[key] = OwnWork(_more(inner, work.times), before.own)


def _more(work: PartWork, times: float) -> PartWork:
    changed: PartWork = replace(work, times=work.times + times)  # pyright: ignore[reportArgumentType, reportAssignmentType]
    return changed


def often(s: Sent, times: int, length: int) -> Sent:
    """The same, so often in so many steps."""
    common = gcd(times, length)
    return replace(s, times=times // common, every=length // common)


def _of_sites(calls: Sequence[SplitCall], length: int) -> MeshStep:
    sites = calls[0].sites
    laws: dict[str, tuple[GhostLaw, bool, int]] = {}
    order: list[str] = []
    made = exchanges_made(calls)
    for call in calls:
        for exchange, of_step in ((e, of) for there, e, of in made if there is call):
            key = f"{exchange.law} {of_step}"
            before = laws.get(key, (exchange.law, of_step, 0))
            laws[key] = exchange.law, of_step, before[2] + 1
            order.append(f"bring {exchange.law.name}")
        order.append(call.name)
    held = sites.parts[0].current.record.leaves
    in_two = target_of(sites.device).has_blocks and not sites.corrected
    in_two = in_two and sites.mesh.transport.size == 1

    def sent(cut: Cut) -> tuple[Sent, ...]:
        hides = in_two and is_cut_in_two(cut, len(held) * sites.storage.size)
        return tuple(
            replace(often(law(cut), times, length), hidden=hides and of_step)
            for law, of_step, times in laws.values()
        )

    box = sites.box_cut
    divides = SitesDivided(box.cut, ghost_depth(sites.form), box.periodic, sent)
    if sites.mesh.parts == 1 and len(held) == sites.lattice.size:
        of = sites.lattice, sites.form, sites.storage.size
        divides = cut_anew(box.cut, *of, box.periodic, in_two=in_two)
    works = works_of_sites(calls, length, divides.divide(box.cut.parts))
    return explain_mesh(
        str(sites.mesh), sites.mesh.places, "sites", divides.divide, works, divides.grow,
        list(dict.fromkeys(order)),
    )  # fmt: skip
