"""`lanewise view FILE`: a recording of a run, or what a file holds, in the browser."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.support.errors import InputError
from lanewise.support.interrupts import interrupts_wait

if TYPE_CHECKING:
    from lanewise.live.feed import Feed
    from lanewise.live.recording import Recording
    from lanewise.live.replay import RecordedFeed, Replayed
    from lanewise.live.scenes import ChangingScene, Scene

RECORDING = ".lwv"
NAMED = 5  # places of damage
REREAD = 1.0  # seconds between two looks at files that are being written


def view(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="a recording (.lwv), a checkpoint, bodies, agents, or candidates",
        ),
    ],
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="the first of ten ports to try; 0: any free port"),
    ] = 8700,
    rate: Annotated[
        float, typer.Option(metavar="X", min=0.1, help="frames per second of a recording")
    ] = 30.0,
    socket: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", show_default=False, help="a Unix socket that only you can open"
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="SCALE",
            show_default=False,
            help="scale of colours: linear, log or rank (default the recording's)",
        ),
    ] = None,
    shot: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, show_default=False, help="write a picture of frame N, and end"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="name of that picture", show_default="FILE-N.png"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a picture")] = False,
) -> None:
    """Show a recording of a run, or the state in a file; Ctrl-C ends it."""
    from lanewise.live.recording import Recording
    from lanewise.live.replay import RecordedFeed
    from lanewise.live.scenes import ChangingScene
    from lanewise.live.server import Server, Serving

    shown = feed_of(file, rate)
    if scale is not None:
        _rescale(file, shown, scale)
    if shot is not None:
        _write_shot(shown, shot, out or Path(f"{file.stem}-{shot}.png"), overwrite=overwrite)
        return
    if out is not None or overwrite:
        raise InputError("--out and --overwrite are of a picture: they need --shot N")
    still = not isinstance(shown, RecordedFeed)  # there is nothing to pause
    server = Server(shown, Serving(port=port, path=socket, readonly=still))
    server.start()
    over = threading.Event()
    try:
        print(server.lines, flush=True)
        if isinstance(shown, RecordedFeed):
            if shown.note:
                print(f"note: {file}: {shown.note}", flush=True)
            if isinstance(recording := shown.recording, Recording):
                threading.Thread(target=_say_damage, args=(recording,), daemon=True).start()
            shown.play()
        else:
            shown.pause()
            if isinstance(scene := shown.scene, ChangingScene):
                follow = threading.Thread(target=_follow, args=(shown, scene, over), daemon=True)
                follow.start()
            while not over.is_set():
                shown.look(0)
                over.wait(0.05)
    finally:
        over.set()
        server.stop()


def _write_shot(shown: Feed | RecordedFeed, number: int, path: Path, *, overwrite: bool) -> None:
    from lanewise.io.atomic import atomic_path, writable_target
    from lanewise.live.shot import picture_of

    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: wanted a picture's name to end in .png")
    writable_target(path, overwrite)
    picture = picture_of(shown, number)
    with atomic_path(path, overwrite) as target:
        target.write_bytes(picture)
    print(f"wrote {path}", flush=True)


def _rescale(file: Path, shown: Feed | RecordedFeed, scale: str) -> None:
    from lanewise.live.recording import Recording
    from lanewise.live.replay import RecordedFeed

    if isinstance(shown, RecordedFeed) and isinstance(shown.recording, Recording):
        raise InputError(
            f"{file}: the frames of a recording have the scale that they were made with; leave "
            "--scale out, or record with --view-scale"
        )
    shown.ask(scale=scale)


def _say_damage(recording: Recording) -> None:
    """Read all of a recording while it plays: say which frames are left out."""
    found = list(recording.damaged())
    for text in found[:NAMED]:
        print(f"note: {text}", flush=True)
    if found:
        total = len(recording.looks) + len(recording.lost)
        print(f"note: {len(found)} of {total:,} moments are damaged, and left out", flush=True)


def _follow(shown: Feed, scene: ChangingScene, over: threading.Event) -> None:
    """Make other frames when what is shown has changed."""
    while not over.wait(REREAD):
        if scene.changed:
            shown.ask()


def feed_of(file: Path, rate: float) -> Feed | RecordedFeed:
    """What a file shows. Raises `InputError` for one that shows nothing."""
    from lanewise.live.feed import Feed
    from lanewise.live.recording import read_recording
    from lanewise.live.replay import RecordedFeed, Replayed

    if not file.exists():
        raise InputError(
            f"{file}: no such file; wanted a recording, a checkpoint, bodies, agents or candidates"
        )
    if file.suffix.lower() == RECORDING:
        return RecordedFeed(read_recording(file), rate)
    shown = _scene_of(file)
    return RecordedFeed(shown, rate) if isinstance(shown, Replayed) else Feed(shown)


def _scene_of(file: Path) -> Scene | Replayed:
    """A trajectory, which plays, the state in a checkpoint, the candidates of a search, the agents
    of a table, or the bodies of any file that has some.
    """
    from lanewise.io import read_particles
    from lanewise.sims import boids, lbm
    from lanewise.sims.boids import live as flocks
    from lanewise.sims.gravity import live as bodies
    from lanewise.sims.gravity import make_bodies
    from lanewise.sims.lbm import live as flows
    from lanewise.sims.waves import live as searches

    if file.is_dir():
        return searches.UnitsScene(file)
    match _groups(file):
        case groups if "state" in groups:
            flock = boids.Flock.resume(file)
            return flocks.flight_of(file, flock) or flocks.scene(flock)
        case groups if "lanewise" in groups and "PartType1" not in groups:
            return flows.scene(lbm.Simulation.resume(file))
        case _ if searches.is_table(file):
            return searches.scene_of_table(file)
        case _ if flocks.is_table(file):
            return flocks.scene_of_table(file)
        case _:
            particles = read_particles(file)
            return bodies.scene_of_bodies(make_bodies(particles), particles.time)


@interrupts_wait()
def _groups(file: Path) -> frozenset[str]:
    """The names at the top of an HDF5 file; none of any other."""
    import h5py

    if not h5py.is_hdf5(file):
        return frozenset()
    with h5py.File(file, "r") as opened:
        return frozenset(opened)
