"""Spans as a file of the Trace Event Format: complete events ("ph": "X"), times in microseconds.

Format: "Trace Event Format",
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import chain, pairwise
from typing import Any, NamedTuple

from lanewise.io.atomic import atomic_path
from lanewise.io.source import FilePath


class Track(IntEnum):
    """A row of the timeline."""

    HOST = 1
    DEVICE = 2  # sampled steps by the GPU's clock


class Event(NamedTuple):
    """A span: begin by `perf_counter_ns`, and how long it took."""

    name: str
    stage: str
    begin: int
    nanoseconds: int
    track: int  # a `Track`, or a row of `FIRST_LANE` and on


Sample = tuple[tuple[tuple[str, str], ...], list[int], Track]
"""A sampled repetition of launches.

Their stages and names, the readings before the first and after each, the track.
"""

LABELS: dict[int, str] = {Track.HOST: "host", Track.DEVICE: "device (sampled steps)"}
FIRST_LANE = 3  # the rows of several devices follow those of `Track`


def trace_events(
    events: Iterable[Event],
    samples: Iterable[Sample],
    origin: int,
    dropped: int,
    lanes: Iterable[str] = (),
) -> dict[str, Any]:
    """The file's contents. Outer spans come before those within them, as viewers want them.

    lanes: several devices, whose rows follow those of `Track`.
    """
    labels = LABELS | {FIRST_LANE + n: f"{lane} (sampled steps)" for n, lane in enumerate(lanes)}
    every = chain(events, *(_expanded(*sample) for sample in samples))
    ordered = sorted(every, key=lambda e: (e.track, e.begin, -e.nanoseconds))
    process = os.getpid()
    tracks = sorted({e.track for e in ordered})
    rows = [_label("process_name", "lanewise", process, Track.HOST)]
    rows += [_label("thread_name", labels[t], process, t) for t in tracks]
    rows += [
        {
            "name": e.name,
            "cat": e.stage,
            "ph": "X",
            "ts": (e.begin - origin) / 1e3,
            "dur": e.nanoseconds / 1e3,
            "pid": process,
            "tid": int(e.track),
        }
        for e in ordered
    ]
    return {"traceEvents": rows, "displayTimeUnit": "ms", "otherData": {"dropped_events": dropped}}


def _expanded(
    names: tuple[tuple[str, str], ...], marks: list[int], track: Track
) -> Iterator[Event]:
    """A sample as a step and the launches within it."""
    yield Event("step", "steps", marks[0], marks[-1] - marks[0], track)
    for (stage, name), (begin, end) in zip(names, pairwise(marks), strict=True):
        yield Event(name, stage, begin, end - begin, track)


def _label(kind: str, text: str, process: int, track: int) -> dict[str, Any]:
    """What a row is called.

    Time and duration say nothing here, but readers that know no other rows find them.
    """
    where = {"ts": 0.0, "dur": 0.0, "pid": process, "tid": int(track)}
    return {"name": kind, "cat": "__metadata", "ph": "M", **where, "args": {"name": text}}


def write_trace(path: FilePath, trace: dict[str, Any], *, overwrite: bool) -> None:
    """Write it whole or not at all; raises `InputError` as `writable_target`."""
    with atomic_path(path, overwrite) as temporary, temporary.open("w", encoding="utf-8") as file:
        json.dump(trace, file, separators=(",", ":"))
