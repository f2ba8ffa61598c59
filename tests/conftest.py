"""What every test shares: hypothesis profiles, golden texts, GPU detection, a cache of compiled kernels."""

from __future__ import annotations

import contextlib
import difflib
import functools
import gc
import hashlib
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CACHE_VARIABLE = "LANEWISE_CACHE_DIR"
GOLDEN_ROOT = Path(__file__).parent / "golden"
OWN_CACHE = pytest.StashKey[str]()
CACHE_WAS_SET = pytest.StashKey[bool]()
DAYS_KEPT = 14  # of a compiled kernel
MANY_FILES = 100  # of which a session tells where its time went

# Examples that compile kernels take long the first time, so there are no deadlines. `ci` repeats the same examples in
# every run, and `many`, of the slow tests, more of them; `--hypothesis-profile explore` looks for new ones.
for profile, examples in (("ci", 6), ("many", 100)):
    settings.register_profile(
        profile, derandomize=True, deadline=None, max_examples=examples, suppress_health_check=[HealthCheck.too_slow]
    )
settings.register_profile("explore", deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts instead of comparing them")


def pytest_configure(config: pytest.Config) -> None:
    # A session in the background of a shell ignores Ctrl-C, and so would the processes that tests start and interrupt.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Set before xdist starts its workers: they inherit it and share one cache, because compiling is what takes time.
    if CACHE_VARIABLE not in os.environ:
        if (kept := getattr(config, "cache", None)) is not None:
            os.environ[CACHE_VARIABLE] = str(_kept_cache(kept))
        else:
            config.stash[OWN_CACHE] = os.environ[CACHE_VARIABLE] = tempfile.mkdtemp(prefix="lanewise-test-cache-")
        config.stash[CACHE_WAS_SET] = True
    # Workers take all cores: threads of NumPy's BLAS would spin while they wait for a core that another worker has.
    if getattr(config.option, "numprocesses", None):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _kept_cache(kept: pytest.Cache) -> Path:
    """The cache of the sessions before, in `.pytest_cache`; without plans that were tuned, and without what nobody needs any more.

    The name of a compiled kernel says the text that it was made of. What makes machine code of a text is lanewise/runtime: with
    another one the cache begins anew.
    """
    made_by = hashlib.sha256()
    for file in sorted((Path(__file__).parent.parent / "src/lanewise/runtime").rglob("*.py")):
        made_by.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    folder = kept.mkdir(f"kernels-{made_by.hexdigest()[:16]}")
    for other in folder.parent.glob("kernels-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    shutil.rmtree(folder / "tuned", ignore_errors=True)
    old = time.time() - DAYS_KEPT * 86400
    for entry in folder.rglob("*"):
        with contextlib.suppress(OSError):  # another session is faster
            if entry.is_file() and entry.stat().st_mtime < old:
                entry.unlink()
    return folder


def pytest_unconfigure(config: pytest.Config) -> None:
    if (directory := config.stash.get(OWN_CACHE, None)) is not None:
        shutil.rmtree(directory, ignore_errors=True)
    if config.stash.get(CACHE_WAS_SET, False):
        del os.environ[CACHE_VARIABLE]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    # Hardly anything dies while modules are imported and items are made: to look for it takes a third of the time.
    gc.disable()
    try:
        _import_a_share(session.config)
        return (yield)
    finally:
        gc.enable()


def _import_a_share(config: pytest.Config) -> None:
    """Each worker imports a share of all files before it collects them, and finds the others as bytecode.

    Else all workers come to the same file at the same time, and each rewrites its assertions, which takes longer than the rest
    of the collection.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for file in sorted(Path(__file__).parent.rglob("test_*.py"))[number::count]:
        # what is wrong with a file, or skips it, is said where it is collected
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    # Compiling makes many objects that live long. To look through them, and through all modules, again and again takes a tenth of
    # the time and more; what was imported stays, and the rest is looked through more rarely. Next to nothing of it has died.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    # What caches hold at the end of a file, they hold to the end of the run. After some thousand tests a test that asks for a
    # collection would wait a second for it.
    if nextitem is None or item.path != nextitem.path:
        _set_apart()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which files took the time of a long session: shares of it, which a busy machine changes little."""
    times: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                times[file] = times.get(file, 0.0) + report.duration
    if len(times) < MANY_FILES:
        return
    whole = sum(times.values())
    terminalreporter.section("files that took most of the time")
    for file in sorted(times, key=lambda f: -times[f])[:10]:
        terminalreporter.write_line(f"{times[file] / whole:6.1%} {times[file]:6.1f} s  {file}")


def _set_apart() -> None:
    """Keep what lives now out of the collections that follow; what nobody holds any more is dropped before."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before pytest looks at marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if addresses := [i.nodeid for i in items if " at 0x" in i.nodeid]:  # others in every process
        raise pytest.UsageError(f"names of tests hold addresses: {', '.join(addresses)}; give them ids")
    for item in [*left_for_slow(items), *not_quick(items), *named_slow(items)]:
        item.add_marker(pytest.mark.slow)
    for item in items:
        if item.get_closest_marker("cuda") and (missing := why_no_gpu()):
            item.add_marker(pytest.mark.skip(reason=missing))


def left_for_slow(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of the grids (`@pytest.mark.grid(every=n)`), the cases that are slow.

    A few cases that are not hold every value of every parameter, and of the other combinations
    one in n is not slow either. What runs on a GPU is quick.
    """
    grids: dict[tuple[Path, str], list[pytest.Function]] = {}
    for item in items:
        if item.get_closest_marker("grid") is None or item.get_closest_marker("cuda") is not None:
            continue
        assert isinstance(item, pytest.Function)
        if item.get_closest_marker("slow") is None:
            grids.setdefault((item.path, item.originalname), []).append(item)
    for cases in grids.values():
        mark = cases[0].get_closest_marker("grid")
        assert mark is not None
        kept = _cases_with_every_value(cases)
        others = [case for case in cases if case not in kept]
        yield from (case for n, case in enumerate(others, 1) if n % mark.kwargs["every"])


def not_quick(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of tests whose quick cases are named (`@pytest.mark.quick(*ids)`), the other cases.

    What runs on a GPU is quick.
    """
    for case, named in _cases_with_names(items, "quick"):
        if not named:
            yield case


def named_slow(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of tests whose slow cases are named (`@pytest.mark.slow_cases(*ids)`), those. What runs on a GPU is quick."""
    for case, named in _cases_with_names(items, "slow_cases"):
        if named:
            yield case


def _cases_with_names(items: Iterable[pytest.Item], marker: str) -> Iterator[tuple[pytest.Function, bool]]:
    """The cases of tests of which a marker names some, and whether it names each."""
    tests: dict[tuple[Path, str], list[pytest.Function]] = {}
    for item in items:
        if item.get_closest_marker(marker) is not None and item.get_closest_marker("cuda") is None:
            assert isinstance(item, pytest.Function)
            tests.setdefault((item.path, item.originalname), []).append(item)
    for (path, name), cases in tests.items():
        mark = cases[0].get_closest_marker(marker)
        assert mark is not None
        missing = {*mark.args} - {case.callspec.id for case in cases}
        if missing and len(cases) > len(mark.args):  # all cases were requested
            raise pytest.UsageError(f"{path}: {name} has no cases {sorted(missing)}, which are named {marker}")
        yield from ((case, case.callspec.id in mark.args) for case in cases)


def _cases_with_every_value(cases: list[pytest.Function]) -> set[pytest.Function]:
    """Few cases that hold every value together: those with the most new values come first."""
    held: set[tuple[str, int]] = set()
    chosen: set[pytest.Function] = set()
    for new in range(max(len(case.callspec.params) for case in cases), 0, -1):
        for case in cases:
            values = {(name, id(value)) for name, value in case.callspec.params.items()}
            if len(values - held) >= new:
                chosen.add(case)
                held |= values
    return chosen


@functools.cache
def why_no_gpu() -> str:
    """What keeps CUDA tests from running here, or nothing when a GPU answers."""
    try:
        from cuda.bindings import driver

        (status,) = driver.cuInit(0)
        if status != driver.CUresult.CUDA_SUCCESS:
            return f"no NVIDIA GPU: cuInit says {status.name}"
        status, count = driver.cuDeviceGetCount()
    except Exception as error:  # a missing package, a missing driver library or a wrong one: all mean the same here
        return f"no NVIDIA GPU: {type(error).__name__}: {error}".splitlines()[0]
    return "" if count else "no NVIDIA GPU: the driver lists no device"


@pytest.fixture(autouse=True, scope="session")
def _short_timings() -> Iterator[None]:
    """Tuning is tested, not timings: a few repetitions do, and a processor need not be awake."""
    from lanewise.runtime import timing
    from lanewise.tuning import measure

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(timing, "LEAST", 1e-3)
        patched.setattr(measure, "AWAKE", 0.0)
        yield


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """The directory of compiled kernels, shared by all tests of this session."""
    return Path(os.environ[CACHE_VARIABLE])


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares text with tests/golden/<test file>/<name>.txt, or writes it (--update-golden)."""
    directory = GOLDEN_ROOT / request.path.stem
    update = bool(request.config.getoption("--update-golden"))

    def compare(name: str, text: str) -> None:
        path = directory / f"{name}.txt"
        shown = os.path.relpath(path, request.config.rootpath)
        text = text.rstrip("\n") + "\n"
        if update:
            directory.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{shown} does not exist: run make golden and read what it wrote", pytrace=False)
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), shown, "this run", lineterm="")
            pytest.fail("golden text differs (make golden updates it)\n" + "\n".join(lines), pytrace=False)

    return compare


@pytest.fixture
def all_is_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU small arrays are written past the caches as large ones are. What is compiled for it stays in no cache.

    The name of a compiled kernel tells nothing of it: the test's kernels must have texts that no other test compiles.
    """
    from lanewise.emit import llvm_vectors

    monkeypatch.setattr(llvm_vectors, "FAR", 0)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "kernels"))


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of tuned plans for one test alone; compiled kernels stay in the cache that all tests share."""
    from lanewise.launch import tuned_plans as store

    folder = tmp_path / "tuned"
    monkeypatch.setattr(store, "store_directory", lambda: folder)
    monkeypatch.delenv(store.SWITCH, raising=False)
    return folder
