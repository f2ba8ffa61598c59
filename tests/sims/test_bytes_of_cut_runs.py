"""A run that was cut anywhere, however often it was saved, leaves every byte that one which was not leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lanewise.sims.boids import Sphere
from lanewise.sims.boids import options as boids_options
from lanewise.sims.boids import run as boids
from lanewise.sims.common import run as common
from lanewise.sims.common.run import Run
from lanewise.sims.gravity import options as gravity_options
from lanewise.sims.gravity import runner as gravity
from lanewise.sims.lbm import options as lbm_options
from lanewise.sims.lbm import runner as lbm
from lanewise.sims.lbm.cases import find_case
from lanewise.sims.units.products import results_of

STEPS = 40
OUTPUTS: dict[str, Any] = {
    "gravity": gravity_options.Output, "lbm": lbm_options.Output, "boids": boids_options.Output,
}  # fmt: skip
ENDINGS = {"out": "h5", "forces": "csv", "vti": "vti", "final": "csv"}


@dataclass(frozen=True)
class Kind:
    """A run: its product, what was chosen of it, and when its outputs are due."""

    product: str
    chosen: dict[str, Any]
    due: dict[str, Any]
    files: tuple[str, ...] = ("out",)

    def output(self, folder: Path, *, resumed: bool = False) -> Any:
        """Of a resumed run without what its checkpoint knows; what it has written since may be there."""
        names = [n for n in self.files if not (resumed and n == "out")]
        files = {name: folder / f"{name}.{ENDINGS[name]}" for name in names}
        return OUTPUTS[self.product](**files, overwrite=resumed, **({} if resumed else self.due))

    def start(self, folder: Path) -> Run[Any]:
        output = self.output(folder)
        match self.product:
            case "gravity":
                return gravity.start(steps=STEPS, output=output, **self.chosen)
            case "boids":
                return boids.start(self.chosen, steps=STEPS, dt=0.1, output=output)
            case _:
                asked = dict(self.chosen)
                case, method = find_case(asked.pop("case")), lbm_options.Method(**asked.pop("method", {}))
                ends = lbm_options.End(STEPS, until_steady=asked.pop("until_steady", False))
                return lbm.start(case, case.request(**asked), method, ends, output)

    def resume(self, folder: Path) -> Run[Any]:
        path, output = folder / "out.h5", self.output(folder, resumed=True)
        match self.product:
            case "gravity":
                return gravity.resume(path, steps=None, device=None, output=output)
            case "boids":
                return boids.resume(path, steps=None, dt=None, device=None, output=output)
            case _:
                return lbm.resume(path, lbm_options.Method(), lbm_options.End(), output)


BODIES: dict[str, Any] = {"bodies": 50, "seed": 3, "dt": 0.01}
FLOCK: dict[str, Any] = {"agents": 200, "world": 20.0, "seed": 2}
CAVITY: dict[str, Any] = {"case": "cavity", "size": 16, "re": 30}
CYLINDER: dict[str, Any] = {"case": "cylinder", "size": 6}
QUICK = {
    "gravity": Kind("gravity", BODIES, {"diagnostics_every": 7}),
    "lbm": Kind("lbm", CAVITY, {}),
    "boids": Kind("boids", FLOCK, {}),
    "boids frames": Kind("boids", FLOCK, {"every": 3}, ("out", "final")),
}
SLOW = {
    "gravity f64": Kind("gravity", {**BODIES, "precision": "f64", "integrator": "yoshida4"}, {}),
    "gravity tree": Kind("gravity", {**BODIES, "bodies": 500, "method": "tree"}, {"snapshot_every": 10}),
    "lbm series": Kind("lbm", CYLINDER, {}, ("out", "forces", "vti")),
    "lbm steady": Kind("lbm", {**CAVITY, "until_steady": True}, {}),
    "lbm in place": Kind("lbm", {**CAVITY, "method": {"streaming": "in-place", "precision": "f64"}}, {}),
    "boids checkpoints": Kind("boids", FLOCK, {"checkpoint_every": 4, "every": 5}),
    "boids thinkers": Kind("boids", {**FLOCK, "think_every": 3, "precision": "f64", "k": 5}, {"every": 1}),
    "boids sequence": Kind("boids", {**FLOCK, "semantics": "seq", "agents": 60}, {"every": 2}),
    "boids open": Kind("boids", {**FLOCK, "boundary": "open", "search": "dynamic-grid"}, {"every": 11}),
    "boids obstacles": Kind("boids", {**FLOCK, "obstacles": (Sphere((3.0, 0.0, 1.0), 4.0),), "collide": True}, {}),
}  # fmt: skip


class Killed(BaseException):
    """Nothing catches it, as nothing catches `kill -9`."""


def go(run: Run[Any], after: int | None = None, *, saves: Iterable[int] = ()) -> dict[str, Any] | None:
    """Follow a run to its end, or until it is killed after a step; saved behind the steps `saves`, too."""

    def look(run: Run[Any]) -> None:
        if run.step in saves:
            run.save()
        if run.step == after:
            raise Killed

    try:
        run.execute(look)
    except Killed:
        return None
    return run.finish()


def cut(kind: Kind, folder: Path, random: Random) -> dict[str, Any]:
    """What a run finds that is killed three times at most, and saved at any time."""
    folder.mkdir()
    begin: Callable[[Path], Run[Any]] = kind.start
    for _ in range(3):
        saves = random.sample(range(STEPS), random.randrange(8))
        found = go(begin(folder), random.randrange(STEPS), saves=saves)
        if found is not None:
            return found
        begin = kind.resume if (folder / "out.h5").exists() else kind.start
        if begin == kind.start:
            for left in folder.iterdir():
                left.unlink()
    found = go(begin(folder))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(kind, id=name) for name, kind in QUICK.items()),
        *(pytest.param(kind, id=name, marks=pytest.mark.slow) for name, kind in SLOW.items()),
    ],
)
def test_cut_runs_leave_the_bytes_of_whole_ones(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "whole").mkdir()
    whole = go(kind.start(tmp_path / "whole"))
    assert whole is not None
    wanted = {p.name: p.read_bytes() for p in (tmp_path / "whole").iterdir()}
    assert wanted
    monkeypatch.setattr(common, "PIECE_SECONDS", 0.0)  # a look behind every step
    for seed in range(4):
        found = cut(kind, tmp_path / str(seed), Random(seed))
        left = {p.name: p.read_bytes() for p in (tmp_path / str(seed)).iterdir()}
        assert sorted(left) == sorted(wanted)
        assert [n for n in wanted if left[n] != wanted[n]] == []
        assert repr(results_of(kind.product, found)) == repr(results_of(kind.product, whole))  # NaN is NaN here
