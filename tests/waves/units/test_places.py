"""A search on several places: workers on a CPU or on GPUs, one each, write the list of one process, to the byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waves.units.data import environment, make_files, start_search
from tests.waves.units.test_kills import ended, sky_of

SAID = {
    "cpu*2": "8 work units for 2 workers on cpu\n",
    "cpu*3 --units 5": "5 work units for 3 workers on cpu\n",
    "cuda --workers 2": " for 2 workers, a GPU each: 0, 1\n",
    "cuda:*": ", a GPU each: 0, 1",
    "cuda:1,0 --units 5": "5 work units for 2 workers, a GPU each: 1, 0\n",
}


PROGRAM = """
from lanewise.sims.common.cluster import check_installed
check_installed()
from dask import config
config.get("distributed.nanny.pre-spawn-environ")
"""


def test_a_process_that_starts_workers_has_the_settings_of_the_package() -> None:
    """In a process that has not imported it before."""
    pytest.importorskip("distributed")
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment(), check=True)


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("erfa")
    pytest.importorskip("distributed")
    return make_files(tmp_path_factory.mktemp("sfts"))


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("cpu*2", marks=pytest.mark.slow),
        pytest.param("cpu*3 --units 5", marks=pytest.mark.slow),
        *(pytest.param(p, marks=pytest.mark.cuda) for p in SAID if p.startswith("cuda")),
    ],
)
def test_the_list_is_that_of_one_process(
    pattern: str, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, *more = place.split()
    if device.startswith("cuda"):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        cupy = pytest.importorskip("cupy")
        if cupy.cuda.runtime.getDeviceCount() < 2:
            pytest.skip("needs two GPUs")
    sky = sky_of(tmp_path, 12)
    kind = device.partition(":")[0].partition("*")[0]
    ended(start_search(pattern, sky, tmp_path / "a.csv", device=kind))
    said = ended(start_search(pattern, sky, tmp_path / "b.csv", *more, device=device, quiet=False))
    assert SAID[place] in said
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
