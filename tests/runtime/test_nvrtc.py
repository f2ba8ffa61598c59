"""What ptxas says of a kernel, and what is done when it says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lanewise.errors import DeviceError
from lanewise.runtime.cache import cache_directory
from lanewise.runtime.nvrtc import Resources, compile_cubin, parse_resources

TEXT = 'extern "C" __global__ void twice(float *a) { a[threadIdx.x] *= 2.0f; }'
REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'lj' for 'sm_90'
ptxas info    : Function properties for lj
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 63 registers, used 1 barriers, 16384 bytes smem
"""


def test_a_report_is_read() -> None:
    assert parse_resources(REPORT, "lj") == Resources(63, 16384, 8, 12, 16)


@pytest.mark.parametrize(
    ("log", "said"), [("", ", as its log is empty"), ("a warning\n", ":\na warning\n")], ids=["empty", "without"]
)
def test_a_report_without_registers_is_an_error_and_not_0(log: str, said: str) -> None:
    with pytest.raises(DeviceError) as error:
        parse_resources(log, "lj")
    assert str(error.value) == f"ptxas did not say how many registers lj takes{said}"


def test_an_earlier_result_without_registers_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    first = compile_cubin(TEXT, "twice", "sm_90")
    (path,) = cache_directory().rglob("*.json")
    kept = json.loads(path.read_text())
    kept["resources"]["registers"] = 0
    path.write_text(json.dumps(kept))
    assert compile_cubin(TEXT, "twice", "sm_90").resources == first.resources
    assert json.loads(path.read_text())["resources"]["registers"] == first.resources.registers > 0
