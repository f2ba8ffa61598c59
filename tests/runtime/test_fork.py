"""After a fork: threads are made anew, half done work is refused, and CUDA says that it cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lanewise.runtime import cpu, devices
from lanewise.runtime.compiler_locks import LOADING
from lanewise.runtime.lease import Lease
from lanewise.runtime.prepared import Piece
from lanewise.support.errors import ArgumentError, DeviceError
from tests.runtime.forked_kernel import Body, near

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),  # of Python: threads are the point here
]

FORKED = """
import multiprocessing, warnings
import numpy as np
from tests.runtime.forked_kernel import Body, pull

warnings.simplefilter("ignore", DeprecationWarning)
bodies = Body.array(position=np.random.default_rng(1).random((3000, 3), "f4"), mass=np.ones(3000, "f4"))
expected = pull(bodies, bodies, 0.1).copy()


def child(queue):
    queue.put(bool(np.array_equal(pull(bodies, bodies, 0.1), expected)))


context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
try:
    print("equal:", queue.get(timeout=60))
    process.join(60)
finally:
    process.kill()
"""


def test_a_forked_child_runs_on_threads_of_its_own() -> None:
    environment = {**os.environ, "LANEWISE_THREADS": "4"}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=240, check=False, env=environment
    )
    assert done.stdout == "equal: True\n", done.stderr


def in_child(work: Callable[[], str]) -> str:
    """What `work` returns in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_a_call_that_another_thread_was_in_is_refused_in_the_child() -> None:
    idle, busy = Lease("an idle call"), Lease("a busy call")
    entered, done = threading.Event(), threading.Event()

    def hold() -> None:
        with busy:
            entered.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()

    def use(lease: Lease) -> str:
        with lease:
            return "entered"

    try:
        assert in_child(lambda: use(idle)) == "entered"
        assert in_child(lambda: use(busy)) == (
            "ArgumentError: a busy call: another thread was calling it when this process was forked, which can never finish "
            "here; make the call again in the child"
        )
    finally:
        done.set()
        thread.join()
    with busy:  # the parent's own is as it was
        pass


def test_threads_of_a_child_renew_a_lock_once() -> None:
    idle = Lease("an idle call")

    def use_together() -> str:
        problems: list[str] = []
        start = threading.Barrier(8)

        def use() -> None:
            start.wait()
            try:
                with idle:
                    time.sleep(0.001)
            except ArgumentError as error:
                problems.append(str(error))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return str(problems)

    assert in_child(use_together) == "[]"


@pytest.mark.parametrize("which", ["LLVM", "loading"])
def test_a_fork_waits_for_the_compiler(which: str) -> None:
    """The child can compile, though another thread of the parent was compiling when the fork was requested."""
    from llvmlite.binding import ffi

    cpu.width_problem(256)  # as every call asks
    internal: Any = ffi.lib
    locks: dict[str, Any] = {"LLVM": internal._lock, "loading": LOADING}
    entered = threading.Event()

    def compile_long() -> None:
        with locks[which]:
            entered.set()
            time.sleep(0.2)

    def free() -> str:
        inner = getattr(locks[which], "_lock", locks[which])
        return str(inner.acquire(timeout=60))  # patience: it is there at once, or never

    thread = threading.Thread(target=compile_long)
    thread.start()
    entered.wait()
    assert in_child(free) == "True"
    thread.join()


def test_cuda_is_refused_in_a_child_of_a_process_that_used_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_STARTED_IN", [])
    assert in_child(lambda: str(devices.check_not_forked())) == "None"  # nobody has used it yet
    devices.cuda_started()

    def check() -> str:
        with pytest.raises(DeviceError, match="forked from one that had used CUDA") as error:
            devices.resolve("cuda")
        with pytest.raises(DeviceError):
            devices.cuda_started()
        return str(error.value)

    assert 'get_context("spawn")' in in_child(check)
    devices.check_not_forked()


def test_turns_follow_streams_and_come_back_after_errors() -> None:
    seen: list[object] = []

    def follow(last: object) -> object:
        seen.append(last)
        if len(seen) == 2:
            raise DeviceError("no stream")
        return len(seen)

    lease = Lease("a call", follow)
    with lease:
        pass
    with pytest.raises(DeviceError), lease:
        raise AssertionError
    with pytest.raises(ArgumentError), lease:  # the lock is free again
        raise ArgumentError
    with lease:
        pass
    assert seen == [None, 1, 1, 3]


def test_threads_that_share_a_bound_search_take_turns() -> None:
    rng = np.random.default_rng(2)
    record: Any = Body
    bodies = record.array(position=rng.random((3000, 3), "f4"), mass=np.ones(3000, "f4"))
    call = near.bind(bodies, bodies)
    expected = call().copy()
    running: list[int] = []
    together: list[int] = []

    def enter() -> None:
        running.append(1)
        time.sleep(0.002)  # lets the others in, where nothing keeps them out

    def leave() -> None:
        together.append(len(running))
        running.pop()

    launch: Any = call.launch

    first, last = (Piece(lambda _, work=work: work(), (), (), ()) for work in (enter, leave))
    launches = replace(launch.launches, pieces=(first, *launch.launches.pieces, last))
    shared = replace(call, launch=replace(launch, launches=launches))
    wrong: list[bool] = []

    def work() -> None:
        for _ in range(10):
            wrong.append(not np.array_equal(shared(), expected))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == [1] * 80
    assert wrong == [False] * 80
