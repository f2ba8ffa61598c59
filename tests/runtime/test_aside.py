"""Work next to what a GPU does, in which order it comes."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from lanewise.language.target import CUDA
from lanewise.runtime import aside, cuda
from lanewise.runtime.aside import Aside
from lanewise.runtime.cuda_graphs import graph_stream

FAILED = 700  # `cudaErrorIllegalAddress`


class Stream:
    """Of a GPU, which is waited for in no time."""

    made: list[dict[str, Any]]

    def __init__(self, **options: Any) -> None:
        self.made.append(options)

    def __enter__(self) -> None:
        """It is the current one."""

    def __exit__(self, *_: object) -> None:
        """It is no more."""

    def synchronize(self) -> None:
        """All is done."""


@pytest.mark.parametrize("ends", [0, FAILED])
def test_work_begins_when_its_copy_is_there(monkeypatch: pytest.MonkeyPatch, ends: int) -> None:
    """An event that has failed is none to wait for either: the work says so."""
    monkeypatch.setattr(Stream, "made", [], raising=False)
    slept, now = list[float](), 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    def query(event: int) -> int:
        return cuda.NOT_READY if now < 0.0214 else ends

    module = SimpleNamespace(cuda=SimpleNamespace(Stream=Stream, runtime=SimpleNamespace(eventQuery=query)))
    device = SimpleNamespace(use=nullcontext, target=CUDA)
    monkeypatch.setattr(cuda, "cupy", lambda: module)
    monkeypatch.setattr(aside, "get_device", lambda name: device)
    monkeypatch.setattr(aside.time, "sleep", sleep)
    work = Aside("cuda", "a view", "show less")
    for taken in (SimpleNamespace(ptr=1), None):
        with work.working(taken):
            assert now >= 0.0214, "steps that came before are done"
    assert len(slept) < 50, "it is asked now and then, and the thread sleeps"
    (options,) = Stream.made
    assert options["non_blocking"]


@pytest.mark.cuda
def test_work_goes_before_what_is_left_of_steps() -> None:
    with cuda.use("cuda"):
        assert cuda.preferred_stream().priority < graph_stream("cuda").priority
