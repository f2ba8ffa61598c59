"""How a rung of the ladder `boids` is checked and timed, and what its search can gain.

The gain is mostly an upper bound. Of a sphere that is evenly full of agents the density is known,
and with it how many sources and boxes a target looks at. A step is then predicted to take agents x
(sources + boxes) x the time of one pair, measured with all pairs, plus its bytes over the memory's
bandwidth. Nothing in it knows of latency, of threads that wait for others, or of the work of
sorting.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import lanewise as lw
from lanewise.ladders.boids_fused import search_alone
from lanewise.ladders.boids_meetings import met, predicted_seconds
from lanewise.ladders.boids_truth import TOLERANCE, Truth, make_truth, make_truth_in_turn
from lanewise.ladders.boids_versions import (
    ALL,
    BOUNDARY,
    IN_TURN,
    SIGHT,
    Version,
    as_extra,
    is_host_built,
    paper_of,
    sight_of,
    versions,
)
from lanewise.ladders.run import clock, duration, skipped
from lanewise.ladders.rung import Options, Rung, compared, number
from lanewise.models import device_model
from lanewise.profiling.profile import Profile
from lanewise.sims.boids import Flock, State, make_state
from lanewise.sims.boids.parameters import THESIS, THESIS_K, make_parameters
from lanewise.support.errors import DeviceError, LanewiseError
from lanewise.support.whole_steps import LONG_GRAPH

RUNS = 3
ENOUGH = 1.0  # seconds of a step from which on one is measured once
LEAST, QUICK_LEAST = 0.03, 0.01  # seconds of one timed run
LIMIT, GPU_LIMIT, QUICK_LIMIT = 30.0, 2.0, 3.0  # seconds that a step may be expected to take
PILOT, GPU_PILOT, TURN_PILOT = 4096, 65_536, 2048  # agents of the runs that tell what a pair costs
PILOT_WORLD = 200.0
HOST_MOST = 2**18  # agents whose structure the host of a GPU builds
STAGES = ("build", "search", "update")
REST = "rest"  # of a step, beyond its stages
FUSED = ("search_alone", "steering")  # parts of "search", which is one kernel


@dataclass
class FlockRunner:
    """Measures versions of one flock. `pairs`: seconds of a pair on this device, by whether agents
    move in turn.
    """

    options: Options
    agents: int
    world: float
    pairs: dict[bool, float]
    seen: dict[lw.Search, str] = field(default_factory=dict[lw.Search, str])
    # the rungs that are another one's search on this device, and whose
    same: dict[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def state(self) -> State:
        """Agents evenly in the whole sphere, as the thesis finds them after a while; in the bits
        that all rungs start from.
        """
        return make_start(self.agents, self.world, self.options.seed)

    @cached_property
    def truth(self) -> Truth:
        return make_truth(self.state, THESIS, THESIS_K, self.options.seed)

    @cached_property
    def truth_ahead(self) -> Truth:
        return make_truth(self.state, THESIS, THESIS_K, self.options.seed, SIGHT)

    @cached_property
    def truth_in_turn(self) -> Truth:
        return make_truth_in_turn(self.state, make_parameters("seq"), self.world)

    def measure(self, version: Version, rungs: dict[str, Rung]) -> Rung:
        """The rung of a version, compared with one of those that are known; skipped with the reason
        instead of an error.
        """
        extra = {
            "world": self.world,
            **as_extra(version.name, self.agents, self.world),
            **self._met(version),
        }
        blank = Rung(
            name=version.name,
            bodies=self.agents,
            device=self.options.device,
            skipped="not run",
            extra=extra,
            paper=paper_of(version.name, self.agents, self.world),
        )
        try:
            if (early := self._refused(version, blank)) is not None:
                return early
            return self._compared(self._checked(version, blank), version, rungs)
        except DeviceError as refusal:
            return skipped(blank, "device", str(refusal))
        except LanewiseError as refusal:
            return skipped(blank, "illegal", str(refusal))
        except Exception as error:  # of one rung: the others are still worth measuring
            failed = replace(blank, skipped=f"failed: {type(error).__name__}: {error}")
            return replace(failed, extra={**failed.extra, "skip": "failed"})

    # ------------------------------------------------------------ before anything runs

    def _refused(self, version: Version, blank: Rung) -> Rung | None:
        """The rung without a time, where that is known before it runs."""
        search = version.search
        if (
            isinstance(search, lw.StaticGrid)
            and search.index == "constant"
            and not self.options.on_gpu
        ):
            return skipped(
                blank,
                "device",
                f"only a GPU has constant memory, and this is {self.options.device!r}",
            )
        if (
            search is not None
            and is_host_built(search)
            and self.options.on_gpu
            and self.agents > HOST_MOST
        ):
            reason = (
                "the host builds it and copies go both ways in every step: measured up to "
                f"{HOST_MOST:,} agents"
            )
            return skipped(blank, "too long", reason)
        limit = QUICK_LIMIT if self.options.quick else GPU_LIMIT if self.options.on_gpu else LIMIT
        expected = self._expected(version)
        if expected > limit:
            pair = self._pair_seconds(in_turn=version.search is None)
            reason = (
                f"a step would take about {duration(expected)}, and a rung gets {duration(limit)} "
                f"(a pair takes {pair * 1e9:.2g} ns)"
            )
            return skipped(blank, "too long", reason)
        return None

    def _expected(self, version: Version) -> float:
        """The time of a step by the sources and boxes that its targets look at; 0 for searches that
        choose themselves.
        """
        if version.search is None:
            return self.agents**2 * self._pair_seconds(in_turn=True)
        looked = met(version.search, self.agents, self.world)
        return (
            0.0
            if looked is None
            else self.agents * looked.total * self._pair_seconds(in_turn=False)
        )

    def _pair_seconds(self, *, in_turn: bool) -> float:
        """Measured once for a device: all pairs of a smaller flock."""
        if in_turn not in self.pairs:
            agents = TURN_PILOT if in_turn else GPU_PILOT if self.options.on_gpu else PILOT
            name = IN_TURN if in_turn else ALL
            (version,) = (v for v in versions(PILOT_WORLD, self.options.device) if v.name == name)
            flock = self._flock(version, make_start(agents, PILOT_WORLD, 0), PILOT_WORLD)
            flock.run(1)
            flock.run(1)
            self.pairs[in_turn] = clock(lambda: flock.run(1)) / agents**2
        return self.pairs[in_turn]

    def _met(self, version: Version) -> dict[str, float | int | str | None]:
        looked = None if version.search is None else met(version.search, self.agents, self.world)
        counts = (None, None) if looked is None else (looked.sources, looked.boxes)
        return {"sources_met": counts[0], "boxes_met": counts[1]}

    # ------------------------------------------------------------ running

    def _flock(
        self, version: Version, state: State, world: float, profile: Profile | None = None
    ) -> Flock:
        common: dict[str, Any] = {
            "state": state,
            "world": world,
            "boundary": BOUNDARY,
            "device": self.options.device,
            "profile": profile,
        }
        if version.search is None:
            return Flock(semantics="seq", **common)
        return Flock(semantics="thesis", k=THESIS_K, search=version.search, **common)

    def _checked(self, version: Version, blank: Rung) -> Rung:
        """The rung with its time, if its first step is right and it is not another rung's
        search.
        """
        flock = self._flock(version, self.state, self.world)
        if version.search is not None:
            same = _built_alike(flock.search, flock.describe_search(), self.options.on_gpu)
            if (first := self.seen.setdefault(same, version.name)) != version.name:
                self.same[version.name] = first
                return skipped(blank, "same code", f"on this device it is {first!r}")
        first_seconds = clock(lambda: flock.run(1))
        truth = self._truth_of(version)
        if not len(truth.rows):
            return skipped(
                blank, "wrong", "nothing can be checked: rounding decides what every agent does"
            )
        error = truth.error(flock)
        blank = replace(blank, relative_error=error)
        if not error <= TOLERANCE:
            wrong = (
                f"wrong: the change of velocities differs from float64 by {error:.1e}, and "
                f"{TOLERANCE:.0e} is allowed"
            )
            return skipped(blank, "wrong", wrong)
        seconds, runs = self._seconds(flock, first_seconds)
        rung = replace(
            blank,
            skipped=None,
            seconds=seconds,
            layout=flock.settings.layout,
            plan=flock.describe_search(),
        )
        parts = self._parts(version, seconds)
        extra = {
            **rung.extra,
            **parts,
            "runs": runs,
            "checked": len(truth.rows),
            "neighbors_checked": truth.neighbours,
            "steps_per_second": 1 / seconds,
            "agent_steps_per_second": self.agents / seconds,
            **_idle(flock),
        }
        rest = (parts_of(replace(rung, extra=extra)) or {}).get(REST)
        return replace(rung, extra={**extra, f"{REST}_seconds": rest})

    def _truth_of(self, version: Version) -> Truth:
        if version.search is None:
            return self.truth_in_turn
        return self.truth if sight_of(version.search) is None else self.truth_ahead

    def _seconds(self, flock: Flock, first: float) -> tuple[float, int]:
        """The median time of a step, and of how many runs.

        Runs are whole graphs, from a step on that begins one.
        """
        if first >= ENOUGH:
            second = clock(lambda: flock.run(1))  # the first one may have compiled
            if second >= ENOUGH:
                return second, 1
        warm = clock(lambda: flock.run(2)) / 2
        least = QUICK_LEAST if self.options.quick else LEAST
        unit = LONG_GRAPH if warm * LONG_GRAPH <= 10 * least else 1
        if unit > 1:
            flock.run(2 * unit - flock.step % unit)
            warm = clock(lambda: flock.run(unit)) / unit
        steps = unit * max(1, round(least / (warm * unit)))
        return statistics.median(clock(lambda: flock.run(steps)) / steps for _ in range(RUNS)), RUNS

    def _parts(self, version: Version, seconds: float) -> dict[str, float | int | str | None]:
        """Seconds of a step by stage, from the profile of another flock."""
        if version.search is None:
            return dict.fromkeys((f"{s}_seconds" for s in (*STAGES, *FUSED)), None)
        profile = Profile(most_events=0)
        flock = self._flock(version, self.state, self.world, profile)
        least = QUICK_LEAST if self.options.quick else LEAST
        graphs = LONG_GRAPH * seconds <= 10 * least
        flock.run(
            LONG_GRAPH * max(1, round(least / (seconds * LONG_GRAPH)))
            if graphs
            else max(1, round(least / seconds))
        )
        summary = profile.summary()
        count = summary["steps"]["count"]
        found = {
            f"{s}_seconds": summary["stages"].get(s, {"seconds": 0.0})["seconds"] / count
            for s in STAGES
        }
        alone = search_alone(flock, max(1, min(count, LONG_GRAPH)))
        steering = found["search_seconds"] - alone
        # where the flock moved in between, or a second program took the cores, it is no part
        whole = steering > 0
        fused = (alone, steering) if whole else (None, None)
        return {**found, **{f"{s}_seconds": v for s, v in zip(FUSED, fused, strict=True)}}

    def _compared(self, rung: Rung, version: Version, rungs: dict[str, Rung]) -> Rung:
        """The rung with its factors: over the one that it names, and over all pairs."""
        seconds = rung.seconds
        if seconds is None or version.search is None:
            return rung
        over = version.over or ""
        every, base = rungs.get(ALL), rungs.get(self.same.get(over, over))
        over_all = None if every is None or every.seconds is None else every.seconds / seconds
        expected = self._predicted(version.search)
        rung = replace(
            rung, predicted_seconds=expected, extra={**rung.extra, "over_all_pairs": over_all}
        )
        return compared(rung, base)

    def _predicted(self, search: lw.Search) -> float | None:
        """None for what the host of a GPU builds: nothing is known of its time."""
        if self.options.on_gpu and is_host_built(search):
            return None
        pair = self._pair_seconds(in_turn=False)
        return predicted_seconds(
            search, self.agents, self.world, pair, device_model(self.options.device)
        )


def make_start(agents: int, world: float, seed: int) -> State:
    """Agents evenly in the whole sphere, in float32."""
    state = make_state(agents, start="world", world=world, seed=seed)
    fields = ("position", "forward", "up", "speed", "acceleration")
    return State(**{n: getattr(state, n).astype("float32") for n in fields}, ids=state.ids)


def parts_of(rung: Rung) -> dict[str, float] | None:
    """Seconds of a step by stage, and the rest of it; None where the stages are longer.

    They are those of another flock under a profile, which waits for each stage where the host
    builds: then they are no parts.
    """
    seconds = {stage: number(rung, f"{stage}_seconds") for stage in STAGES}
    found = {stage: s for stage, s in seconds.items() if s is not None}
    if len(found) < len(seconds) or rung.seconds is None or sum(found.values()) > rung.seconds:
        return None
    return {**found, REST: rung.seconds - sum(found.values())}


def _built_alike(search: lw.Search, built: str, on_gpu: bool) -> Any:
    """Equal for searches that build and walk alike: on a CPU the host is the device, and cells may
    be chosen or given.
    """
    if isinstance(search, lw.StaticGrid):
        return ("grid", built, search.index, search.build if on_gpu else "host")
    return search


def _idle(flock: Flock) -> dict[str, float | int | str | None]:
    """Threads without an agent where a leaf is a block of threads, and their share of all threads;
    and how many of them are in warps that have agents.
    """
    structure = flock.structure
    if structure is None or not isinstance(flock.search, lw.DynamicGrid):
        return dict.fromkeys(("idle_threads", "idle_share", "active_idle_threads"))
    found = structure.statistics()
    idle = found.idle_threads
    return {
        "idle_threads": idle,
        "idle_share": idle / (idle + len(flock)),
        "active_idle_threads": found.active_idle_threads,
    }
