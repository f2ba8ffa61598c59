"""`--view`: a run watched in a browser while it runs. Options of every product that has a module
`live`, which gives a `Scene` of what its runs simulate.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.sims.common.options import GivenOptions, Option, flag_of, option_of, setting
from lanewise.sims.common.processes import transport
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.live.feed import Feed
    from lanewise.live.scenes import Scene
    from lanewise.profiling import Profile
    from lanewise.sims.common.run import Run

VIEW = "Live view"  # panel of the help
ALL = 1 << 62  # bytes: an infinite history is no number of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """What a view gets on the command line."""

    view: bool = setting(
        False, Option(VIEW, "", "show the run in a browser while it continues; prints the address")
    )
    view_port: int = setting(
        8700, Option(VIEW, "N", "the first of ten ports to try; 0: any (default {default})",
                     minimum=0)
    )  # fmt: skip
    view_wait: bool = setting(False, Option(VIEW, "", "begin when the first viewer connects"))
    view_rate: float = setting(
        30.0,
        Option(VIEW, "X", "at most this many frames per second (default {default})", minimum=0.1),
    )
    view_budget: float = setting(
        200.0, Option(VIEW, "X", "at most this many MB per second per viewer (default {default})",
                      minimum=0.01)
    )  # fmt: skip
    view_points: int = setting(
        1_000_000,
        Option(VIEW, "N", "at most this many elements in a frame (default 1000000)", minimum=1),
    )
    view_scale: str = setting(
        "linear", Option(VIEW, "SCALE", "scale of colours: linear, log or rank (default {default})",
                         values=("linear", "log", "rank"))
    )  # fmt: skip
    view_history: float = setting(
        512.0, Option(VIEW, "X", "MB of frames to go back in (default {default})", minimum=1)
    )
    view_history_thin: bool = setting(
        False,
        Option(
            VIEW, "", "when the history is full, drop every other frame instead of the oldest ones"
        ),
    )
    view_record: Path | None = setting(
        None, Option(VIEW, "FILE.lwv", "record the frames, for `lanewise view FILE.lwv`")
    )
    view_readonly: bool = setting(False, Option(VIEW, "", "viewers cannot pause the run"))
    view_socket: Path | None = setting(
        None, Option(VIEW, "PATH", "a Unix socket that only you can open, instead of a port")
    )
    view_host: str = setting(
        "127.0.0.1", Option(VIEW, "ADDRESS", "the address to listen at (default {default})")
    )
    view_unsafe_host: bool = setting(
        False, Option(VIEW, "", "allow an address that others can reach, without encryption")
    )


@contextmanager
def viewed(product: str, run: Run[Any], given: GivenOptions) -> Generator[None]:
    """Within the block the run is served, if that was requested."""
    if not given["view"]:
        yield
        return
    live: Any = import_module(f"lanewise.sims.{product}.live")
    with (
        served(live.scene_of(run.state), given, run.state.profile) as feed,
        live.steps_of(run.state).watched(feed),
    ):
        yield


@contextmanager
def served(
    scene: Scene, given: GivenOptions, profile: Profile | None, *, readonly: bool = False
) -> Generator[Feed]:
    """Within the block a scene is served, as it was requested. readonly: pauses would stop
    nothing.
    """
    settings = given.make(ViewSettings)
    from lanewise.live.feed import Feed
    from lanewise.live.recording import Recorder
    from lanewise.live.server import Server, Serving

    serving = Serving(
        port=settings.view_port, host=settings.view_host, unsafe=settings.view_unsafe_host,
        path=settings.view_socket, readonly=settings.view_readonly or readonly,
        budget=settings.view_budget * 1e6,
    )  # fmt: skip
    recorder, path = None, settings.view_record
    if path is not None:
        recorder = Recorder(path, scene.about, overwrite=bool(given["overwrite"]))
    feed = Feed(
        scene, rate=settings.view_rate, points=settings.view_points,
        scale=settings.view_scale,
        history=int(min(settings.view_history * 1e6, ALL)), thin=settings.view_history_thin,
        record=recorder and recorder.add, profile=profile,
    )  # fmt: skip
    server = Server(feed, serving)
    try:
        server.start()
        print(server.lines, file=sys.stderr, flush=True)
        feed.make()  # compiles, and a viewer who opens the address sees something at once
        feed.flush()
        if settings.view_wait:
            feed.wait_for_viewer()
        yield feed
        feed.end()
    finally:
        feed.ended = True
        server.stop()
        if recorder is not None:
            feed.flush()  # frames may be on their way still
            recorder.close()


def check_view(given: GivenOptions) -> None:
    """Refuse what says something about a view where there is none, and views that cannot be, before
    anything is computed.
    """
    if given["view"]:
        if transport().size > 1:
            raise InputError(
                "--view shows a run of one process, and this one has "
                f"{transport().size}; leave it out, or leave mpirun out"
            )
        from lanewise.live.scales import check_scale
        from lanewise.live.scenes import Asked

        check_scale(Asked(field="", scale=given.make(ViewSettings).view_scale))
        return
    for f in fields(ViewSettings):
        option = option_of(f)
        if option is not None and given[f.name] not in (None, False):
            raise InputError(f"{flag_of(f, option)} says how a view is, and needs --view")
