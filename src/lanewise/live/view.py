"""`lw.view`: what a program computes, in a browser while it computes."""

from __future__ import annotations

import atexit
import math
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import numpy as np

from lanewise.frontend.helpers import HelperFunction, function
from lanewise.live.clouds import CloudScene, Shown, shown_by_default
from lanewise.live.feed import Feed
from lanewise.live.fields import FieldScene, is_array_of_reals
from lanewise.live.protocol import SCALES
from lanewise.live.recording import Recorder
from lanewise.live.scenes import Asked, Scene, finished
from lanewise.live.server import Server, Serving
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.sitewise.sites import Sites
from lanewise.records.arrays import RecordArray
from lanewise.runtime.memory import device_of
from lanewise.support.attributes import unknown
from lanewise.support.checks import checked, shown
from lanewise.support.errors import InputError
from lanewise.support.uncopied import uncopied
from lanewise.support.whole_steps import WholeSteps

Fields: TypeAlias = Mapping[str, Callable[[], Any]]
DIMENSIONS = (2, 3)  # of arrays
SLOWEST = 0.001  # frames per second
STEPS = range(2**53)  # which the page can tell from each other


@runtime_checkable
class Viewable(Protocol):
    """A simulation that says itself what a view shows of it, and takes whole steps."""

    @property
    def scene(self) -> Scene:
        """What is shown."""
        ...

    @property
    def whole(self) -> WholeSteps:
        """Between which it is looked at."""
        ...


class LiveView:
    """A live view and its server, until `close` or the end of a `with` block."""

    def __init__(
        self,
        what: Any,
        shown: Mapping[str, Any],
        fields: Fields | None,
        serving: Serving,
        rate: float,
        record: Path | None,
        overwrite: bool,
        scale: str = "linear",
    ) -> None:
        """shown, fields: what `view` was told of records, arrays and sites."""
        self._step, self._time = 0, 0.0
        self._stack, self._process = ExitStack(), os.getpid()
        scene = self._scene_of(what, shown, fields)
        recorder = None if record is None else Recorder(record, scene.about, overwrite=overwrite)
        self._feed = Feed(scene, rate=rate, scale=scale, record=recorder and recorder.add)
        self._server = Server(self._feed, serving)
        with ExitStack() as refused:
            refused.push(self)
            atexit.register(self._leave)
            self._stack.callback(atexit.unregister, self._leave)
            if recorder is not None:
                self._stack.callback(recorder.close)
                self._stack.callback(self._feed.flush)  # before: frames may be on their way still
            self._server.start()
            self._stack.callback(self._server.stop)
            self._feed.make()  # compiles, and a viewer who opens the address sees something at once
            self._feed.flush()
            if isinstance(what, Viewable | Sites):
                self._stack.enter_context(what.whole.watched(self._feed))
            refused.pop_all()

    def __reduce__(self) -> NoReturn:
        uncopied("a view", "show the same again with another lw.view(...)")

    def _scene_of(self, what: Any, shown: Mapping[str, Any], read: Fields | None) -> Scene:
        about: dict[str, Any] = {
            "title": shown["title"] or "lanewise",
            "product": "lanewise",
            "up": [0, 0, 1],
        }
        if read is not None and not isinstance(what, Sites):
            raise InputError(f"fields= are of sites, found {type(what).__name__}; leave it out")
        match what:
            case Sites():
                _refuse(shown, "a field has one value at each site")
                if not read:
                    raise InputError(
                        "sites say nothing of what is seen of them: give fields=, as "
                        '{"t": lambda: heat.field(plate, "t")}'
                    )
                where = lambda: (what.step, float(what.step))  # noqa: E731
                return FieldScene(tuple(what.shape), what.device, read, about, where)
            case RecordArray():
                how = _records(what, shown)
                scene = CloudScene(what, how, {"flat": False, **about}, self._moment)
                return _coloured(scene, shown["colour"])
            case _ if isinstance(what, Viewable):
                scene = what.scene
                if not isinstance(scene, CloudScene):
                    _refuse(shown, "a simulation says itself what is seen of it")
                    return scene
                _refuse({**shown, "colour": None}, "a simulation says itself what is seen of it")
                return _coloured(scene, shown["colour"])
            case _ if _dimensions(what) in DIMENSIONS:
                _refuse(shown, "an array has one value at each place")
                fields: Fields = {"value": lambda: what}
                if len(what.shape) == 2:  # row 0 is at the top, as in print and pictures
                    rows, columns = what.shape
                    fields = {"value": lambda: what[::-1]}
                    across = {"name": "column", "low": 0, "high": columns}
                    about["axes"] = [across, {"name": "row", "low": rows, "high": 0}, None]
                return FieldScene(what.shape, device_of(what), fields, about, self._moment)
            case _:
                of = f" of shape {what.shape} and {what.dtype}" if hasattr(what, "dtype") else ""
                raise InputError(
                    f"found {type(what).__name__}{of}; a view shows a simulation of a product, "
                    "sites, an array of records with positions, or an array of real numbers of "
                    "NumPy or CuPy with 2 or 3 dimensions"
                )

    def _moment(self) -> tuple[int, float]:
        return self._step, self._time

    @property
    def url(self) -> str:
        """The address, with the token."""
        return self._server.url

    @property
    def viewers(self) -> int:
        """The number of viewers."""
        return self._feed.watched

    def update(self, step: int | None = None, time: float = 0.0) -> None:
        """Report that a step is done; call it after each step of your loop. It makes a frame if one
        is due, and waits only while a viewer has paused the run.

        step: the number of the step; None: the next one.

        Raises `InputError` after `close`, and for a step that is not an integer from 0 on.
        """
        self._check_open()
        given: Any = step
        if given is not None and not (
            isinstance(given, Integral) and given is not True and int(given) in STEPS
        ):
            raise InputError(
                f"the step is {shown(step)}; wanted an integer from 0 to {STEPS[-1]:,}"
            )
        if not math.isfinite(time):
            raise InputError(f"the time is {shown(time)}; wanted a finite number")
        self._step = self._step + 1 if step is None else int(step)
        self._time = time
        self._feed.look(self._step)

    def widget(self, height: int = 480) -> Any:
        """The page as a widget in a notebook, which needs no port. Raises `InputError` if anywidget
        is not installed, and for an invalid height.

        height: in pixels. While a cell runs, input from the page takes effect only when the cell
        ends.
        """
        from lanewise.live.widget import make_widget

        self._check_open()
        pixels: Any = height
        if not isinstance(pixels, Integral) or pixels is True or pixels < 1:
            raise InputError(f"the height is {shown(height)}; wanted pixels, an integer from 1 on")
        return make_widget(self._server, int(height))

    def close(self) -> None:
        """Stop the server. Viewers keep the last frame. An open view ends with its program; a fork
        of the program has no view to close.
        """
        if os.getpid() != self._process:
            return
        if not self._feed.ended:
            self._feed.end()
        self._stack.close()

    def _check_open(self) -> None:
        if self._feed.ended:
            raise InputError("this view is closed; lw.view(...) makes another one")

    def __enter__(self) -> LiveView:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
            return
        self._leave()

    def _leave(self) -> None:
        """Close without another frame: what it would show may be of no step, and threads that make
        frames have ended where the program has.
        """
        if os.getpid() != self._process:
            return
        self._feed.ended = True
        self._stack.close()

    def __repr__(self) -> str:
        if self._feed.ended:
            return "<view, closed>"
        return f"<view at {self.url}, {self.viewers} watching>"


def _dimensions(what: Any) -> int:
    """Of an array of real numbers; 0 for all else."""
    return int(np.ndim(what)) if is_array_of_reals(what) and np.size(what) else 0


def _refuse(shown: Mapping[str, Any], why: str) -> None:
    for name in ("colour", "heading"):
        if shown[name] is not None:
            raise InputError(f"{name}={shown[name]!r} is of records: {why}; leave it out")


def _records(array: RecordArray, shown: Mapping[str, Any]) -> Shown:
    """How records are shown, as requested."""
    default = shown_by_default(array.record)
    values, vectors = (
        dict(default.values),
        [f.name for f in array.record if f"|{f.name}|" in default.values],
    )
    heading = shown["heading"]
    if heading is not None and heading not in vectors:
        raise InputError(unknown("heading", heading, vectors))
    return Shown(
        position=default.position,
        values=values,
        heading=f"e.{heading}" if heading else "",
    )


def _coloured(scene: CloudScene, colour: Any) -> CloudScene:
    """The scene, which begins with what was requested."""
    if colour is None:
        return scene
    if isinstance(colour, Elementwise):
        colour = function(colour.python)
    made = scene.coloured(colour)
    if not isinstance(colour, str):  # its errors are the caller's
        finished(made.frames(Asked(field=made.about["fields"][0])))
    return made


def _checked_fields(fields: Any) -> Fields | None:
    if fields is None:
        return None
    if not isinstance(fields, Mapping) or not all(
        isinstance(n, str) and callable(f) for n, f in fields.items()
    ):
        raise InputError(
            f"fields={fields!r}: wanted names with functions of no arguments, as "
            '{"t": lambda: heat.field(plate, "t")}'
        )
    return fields


@checked()
def view(
    what: Any,
    *,
    colour: Any = None,
    scale: str = "linear",
    heading: str | None = None,
    fields: Any = None,
    title: str | None = None,
    port: int = 8700,
    rate: float = 30.0,
    readonly: bool = False,
    wait: bool = False,
    record: Path | str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> LiveView:
    """Show a computation in a browser while it runs; prints the address.

    what: a simulation of `lw.sims`, shown between its steps; an array of records with a field
    `position` of three numbers; an array of 2 or 3 dimensions; sites of a lattice. For arrays call
    `LiveView.update` after each step.

    colour: the initial colour of records, bodies and agents: a field, or a function of one record
    (elementwise or `lw.function`) that changes nothing. scale: the initial scale of colours:
    linear, log or rank (the rank among all values). heading: a field of three numbers, which makes
    records arrows. fields: for sites, functions without arguments by name, each of which returns an
    array of the box's shape. port: the first of ten that are tried; 0: any. rate: the most frames
    per second. readonly: viewers cannot pause. wait: wait for the first viewer. record: a file for
    the frames, which `lanewise view FILE` plays. quiet: print nothing; see `LiveView.url`.

    Raises `InputError` if `what` cannot be shown, and if no port is free.
    """
    if not rate >= SLOWEST:  # as of NaN, of which no frame would ever be due
        raise InputError(f"rate={rate:g}: wanted frames per second, at least {SLOWEST:g}")
    if not 0 <= port < 65536:
        raise InputError(f"port={port}: wanted one from 0 to 65535")
    if not isinstance(colour, str | Elementwise | HelperFunction | None):
        raise InputError(
            f"colour={colour!r}: wanted the name of a field, or an elementwise function of a record"
        )
    if scale not in SCALES:
        raise InputError(unknown("scale", scale, SCALES))
    shown = {"colour": colour, "heading": heading, "title": title}
    made = LiveView(
        what,
        shown,
        _checked_fields(fields),
        Serving(port=port, readonly=readonly),
        rate,
        None if record is None else Path(record),
        overwrite,
        scale,
    )
    with ExitStack() as interrupted:
        interrupted.push(made)
        if not quiet:
            print(made._server.lines, file=sys.stderr, flush=True)  # pyright: ignore[reportPrivateUsage]
        if wait:
            made._feed.wait_for_viewer()  # pyright: ignore[reportPrivateUsage]
        interrupted.pop_all()
    return made
