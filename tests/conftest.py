"""What every test shares: hypothesis profiles, golden texts, GPU detection, one kernel cache per test session."""

from __future__ import annotations

import difflib
import functools
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CACHE_VARIABLE = "LANEWISE_CACHE_DIR"
GOLDEN_ROOT = Path(__file__).parent / "golden"
OWN_CACHE = pytest.StashKey[str]()

# Examples that compile kernels take long the first time, so there are no deadlines. `ci` repeats the same examples in
# every run; `--hypothesis-profile explore` looks for new ones.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts instead of comparing them")


def pytest_configure(config: pytest.Config) -> None:
    # Set before xdist starts its workers: they inherit it and share one cache, because compiling is what takes time.
    if CACHE_VARIABLE not in os.environ:
        config.stash[OWN_CACHE] = os.environ[CACHE_VARIABLE] = tempfile.mkdtemp(prefix="lanewise-test-cache-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if (directory := config.stash.get(OWN_CACHE, None)) is not None:
        shutil.rmtree(directory, ignore_errors=True)
        del os.environ[CACHE_VARIABLE]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("cuda") and (missing := why_no_gpu()):
            item.add_marker(pytest.mark.skip(reason=missing))


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
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of tuned plans for one test alone; compiled kernels stay in the cache that all tests share."""
    from lanewise.launch import tuned_store as store

    folder = tmp_path / "tuned"
    monkeypatch.setattr(store, "store_directory", lambda: folder)
    monkeypatch.delenv(store.SWITCH, raising=False)
    return folder
