"""`lanewise info`: what this machine offers, and what is missing."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer

from lanewise._version import __version__
from lanewise.cli.links import gather_links, lines_of_links
from lanewise.support.numerals import counted

PACKAGES = (
    "numpy",
    "llvmlite",
    "h5py",
    "matplotlib",
    "cupy-cuda13x",
    "cuda-core",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
)

INTERPRETER = {"name": "python", "description": "the interpreter: slow, the definition of meaning"}


def info(
    json_: Annotated[bool, typer.Option("--json", metavar="", help="as one line of JSON")] = False,
    devices: Annotated[
        bool,
        typer.Option(
            "--devices", metavar="", help="also the links between devices, with measured rates"
        ),
    ] = False,
) -> None:
    """Devices, versions, cache, and what CUDA still needs here."""
    facts = gather()
    if devices:
        names = [d["name"] for d in facts["devices"] if d["name"] != INTERPRETER["name"]]
        facts["links"] = gather_links(names)
    if json_:
        print(json.dumps(facts))
        return
    print(f"lanewise {__version__} on Python {facts['python']}, {facts['system']}")
    print("\ndevices")
    for d in facts["devices"]:
        print(f"  {d['name']:8} {d['description']}")
    if devices:
        print("\nlinks, with bytes copied per second")
        for line in lines_of_links(facts["links"]):
            print(f"  {line}")
    if facts["cuda_missing"]:
        print("\ncuda is not available:")
        for problem in facts["cuda_missing"]:
            print(f"  - {problem}")
    print("\npackages")
    for name, number in facts["versions"].items():
        print(f"  {name:18} {number or 'not installed'}")
    print(
        f"\ncache\n  {facts['cache']['directory']}: "
        f"{counted(facts['cache']['files'], 'file', 'files')}, "
        f"{facts['cache']['bytes']:,} bytes"
    )


def gather() -> dict[str, Any]:
    """The facts as plain data."""
    from lanewise.runtime.cache import cache_directory, cache_size
    from lanewise.runtime.devices import missing_for_cuda

    files, nbytes = cache_size()
    missing = missing_for_cuda()
    return {
        "lanewise": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "devices": [_cpu(), *([] if missing else _gpus()), INTERPRETER],
        "cuda_missing": list(missing),
        "versions": {p: _version(p) for p in PACKAGES},
        "cache": {"directory": str(cache_directory()), "files": files, "bytes": nbytes},
    }


def _cpu() -> dict[str, Any]:
    from lanewise.runtime.device import get_device

    cpu = get_device("cpu")
    free = f"{cpu.free_memory() / 2**30:.1f} GiB free"
    return {
        "name": "cpu",
        "description": f"{cpu.title()}, {counted(cpu.units(), 'thread', 'threads')}, {free}",
        "threads": cpu.units(),
    }


def _gpus() -> list[dict[str, Any]]:
    from lanewise.runtime.devices import cuda_device_count

    return [
        _gpu("cuda" if number == 0 else f"cuda:{number}") for number in range(cuda_device_count())
    ]


def _gpu(name: str) -> dict[str, Any]:
    from lanewise.runtime.device import get_device

    gpu = get_device(name)
    units, free = f"{gpu.units()} multiprocessors", f"{gpu.free_memory() / 2**30:.1f} GiB free"
    return {
        "name": name,
        "description": f"{gpu.title()}, {gpu.architecture()}, {units}, {free}",
        "arch": gpu.architecture(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
