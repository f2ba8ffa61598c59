"""`lanewise lbm run CASE`: watch a fluid flow."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.profiling import Profile
from lanewise.sims.common.commands import product_app, run_command
from lanewise.sims.common.frame import Product, carry_out
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.common.viewing import ViewSettings
from lanewise.sims.lbm.options import ORDER, Asked, End, Method, Output, Resumed
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

if TYPE_CHECKING:
    from lanewise.sims.lbm.cases.bodies import Obstacle
    from lanewise.sims.lbm.run import FlowRun

app = product_app("lbm")


def check(given: GivenOptions) -> None:
    """Raise `InputError` for settings that `run` would refuse, as far as that can be told without
    a flow.
    """
    from lanewise.sims.lbm.asked import check_asked
    from lanewise.sims.lbm.cases import find_case

    _obstacle(given["mask"], given["stl"], quiet=True)
    case = find_case(_required(given["case"]))
    request = case.request(**_wishes(given))
    check_asked(case, request, given.make(Method), given.make(End))


@run_command(app, Asked, End, Method, Output, Resumed, ViewSettings, after=ORDER)
def run(matched: GivenOptions) -> None:
    """Run a case and report its results."""
    from lanewise.sims.lbm import runner

    output = matched.make(Output)
    method = matched.make(Method)
    end = matched.make(End)
    resumed = matched["resume"]
    if resumed is not None:
        matched.refuse_with_resume(Asked, Method, but=("streaming", "layout", "device"))

    def prepare(profile: Profile | None) -> FlowRun:
        if resumed is not None:
            return runner.resume(resumed, method, end, output, profile)
        return _started(matched, method, end, output, profile)

    product = Product("lbm", lambda now: now.state.case.name, _rate, _say)
    carry_out(
        product, matched, prepare, output.out, output.vti, output.plot, output.movie, output.forces
    )


def _started(
    matched: GivenOptions, method: Method, end: End, output: Output, profile: Profile | None
) -> FlowRun:
    """The run of a case with what the user chose of it; says its warnings on standard error, each
    once.
    """
    from lanewise.sims.lbm import runner
    from lanewise.sims.lbm.cases import find_case
    from lanewise.sims.lbm.checks import FlowWarning

    obstacle = _obstacle(matched["mask"], matched["stl"], quiet=matched["quiet"])
    case = find_case(_required(matched["case"]))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", FlowWarning)
        prepared = runner.start(
            case, case.request(**_wishes(matched), obstacle=obstacle), method, end, output, profile
        )
    for text in dict.fromkeys(str(w.message) for w in warned):
        print(f"warning: {text}", file=sys.stderr)
    return prepared


def _wishes(given: GivenOptions) -> dict[str, Any]:
    """What was given of a `Request`, without the obstacle."""
    return {name: given[name] for name in ("re", "size", "speed", "lattice", "drive")}


def _rate(now: FlowRun) -> str:
    change = f", change {now.state.steadiness.change:.1e}" if now.state.steadiness else ""
    return f"{now.state.mlups(now):,.1f} MLUPS{change}"


def _required(case: str | None) -> str:
    from lanewise.sims.lbm.cases import CASES

    if case is None:
        raise InputError(f"no case is named; wanted one of {', '.join(CASES)}, or --resume FILE")
    return case


def _obstacle(mask: Path | None, stl: Path | None, *, quiet: bool) -> Obstacle | None:
    """What reads the obstacle once its box is known; says on standard error how it was fitted
    in.
    """
    if mask is not None and stl is not None:
        raise InputError("--mask and --stl both name an obstacle; wanted one of them")
    path = mask or stl
    if path is None:
        return None

    def place(shape: Sequence[int], centre: Sequence[float], width: float) -> Any:
        said: list[str] = []
        solid = (
            _mask_sites(path, shape, said)
            if stl is None
            else _mesh_sites(path, shape, centre, width, said)
        )
        if not quiet:
            print(*said, sep="\n", file=sys.stderr)
        return solid

    return place


def _mask_sites(path: Path, shape: Sequence[int], said: list[str]) -> Any:
    """The solid sites of a picture or an array that covers the box."""
    from lanewise.io.source import reading
    from lanewise.sims.lbm.obstacles import as_solid, read_mask

    mask = read_mask(path, shape, report=said.append)
    with reading(path, "mask", ()):
        return as_solid(mask, shape)


def _mesh_sites(
    path: Path, shape: Sequence[int], centre: Sequence[float], width: float, said: list[str]
) -> Any:
    """The body of a mesh, `width` sites long about `centre`."""
    from lanewise.sims.lbm.obstacles import Placement, stl_solid

    if len(shape) == 2:
        raise InputError(
            f"--stl {path}: a mesh has three dimensions, and this case two; wanted the case "
            "sphere, or --mask with a picture "
            "of the body's section"
        )
    return stl_solid(
        path, shape, placement=Placement(length=width, centre=centre), report=said.append
    )


def _share(fraction: float) -> str:
    """Of the bandwidth that a copy of arrays has that no cache holds."""
    caches = "; the populations stay in caches, which are faster" if fraction > 1 else ""
    return f", {100 * fraction:.1f} % of the bandwidth of a copy{caches}"


def _say(done: FlowRun, s: dict[str, Any]) -> None:
    if (stagger := done.state.stagger()).warned:
        print(f"warning: {stagger.warning}", file=sys.stderr)
    sizes = " x ".join(f"{n:,}" for n in reversed(s["shape"]))
    method = f"{s['lattice']}, {s['collision']}, {s['storage']}, {s['streaming']}, {s['layout']}"
    print(
        f"{s['case']} at Re {s['re']:g}: {sizes} sites, "
        f"{counted(s['steps'], 'step', 'steps')} to step {s['step']:,} on {s['device']} ({method})"
    )
    share = "" if (fraction := s["bandwidth_fraction"]) is None else _share(fraction)
    print(f"{s['seconds']:.3f} s, {s['mlups']:,.1f} MLUPS{share}")
    if s["interpolated_links"]:
        print(f"walls interpolated on {s['interpolated_links']:,} links")
    steady = {None: "", True: "; steady", False: "; not steady yet"}[s["steady"]]
    print(f"tau {s['tau']:.4f}, mass drift {s['mass_drift']:+.3e}{steady}")
    if unsettled := done.state.unsettled:
        print(unsettled)
    for name, value in s["results"].items():
        print(f"  {name.replace('_', ' ')}: {value:.6g}")
