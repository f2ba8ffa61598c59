"""gravity.c built by every compiler found here, called from Python threads.

A reference is what lanewise's CPU kernels are measured against in the same run:
`build_references()` gives one for each compiler (gcc, clang) and each preferred vector width.
`python -m bench.cpu_gravity.reference` measures them alone.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from bench.cpu_gravity.bodies import Bodies, FloatArray, random_bodies, relative_error
from bench.harness import Measurement, describe_machine, interleave, write_results

SOURCE = Path(__file__).with_name("gravity.c")
COMPILERS = ("gcc", "clang")
FLAGS = ("-O3", "-march=native", "-ffast-math")
WIDTHS: dict[str, tuple[str, ...]] = {"": (), " 512": ("-mprefer-vector-width=512",)}
TOLERANCE = 2e-5

Reference = Callable[[Bodies, FloatArray, float, int], None]
"""(bodies, acceleration (3, n) to fill, softening squared, threads)."""


def build_references() -> dict[str, Reference]:
    """Name -> reference, for each compiler present; the libraries live as long as their temporary
    folder, then go.
    """
    folder = Path(tempfile.mkdtemp(prefix="cpu-gravity-"))
    try:
        return {
            compiler + width: _load(
                _build(compiler, options, folder / f"{compiler}{width.strip()}.so")
            )
            for compiler in COMPILERS
            if shutil.which(compiler)
            for width, options in WIDTHS.items()
        }
    finally:
        shutil.rmtree(folder)  # a loaded library stays mapped


def _build(compiler: str, options: tuple[str, ...], library: Path) -> Path:
    command = [
        compiler,
        *FLAGS,
        *options,
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(SOURCE),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return library


def _load(library: Path) -> Reference:
    # CDLL releases the interpreter lock during the call
    function = ctypes.CDLL(str(library)).gravity
    pointer = np.ctypeslib.ndpointer(np.float32, ndim=1, flags="C_CONTIGUOUS")
    function.argtypes = [pointer] * 7 + [ctypes.c_long] * 3 + [ctypes.c_float]
    function.restype = None

    def run(bodies: Bodies, acceleration: FloatArray, softening2: float, threads: int) -> None:
        arrays = (*bodies.position, bodies.mass, *acceleration)
        # Multiples of four: only the last range has targets that do not fill a register block.
        cuts = [bodies.count * part // threads // 4 * 4 for part in range(threads)] + [bodies.count]
        jobs = [
            _pool(threads).submit(function, *arrays, start, end, bodies.count, softening2)
            for start, end in itertools.pairwise(cuts)
        ]
        for job in jobs:
            job.result()

    return run


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def checked(
    reference: Reference, bodies: Bodies, softening2: float, threads: int
) -> Callable[[], None]:
    """`reference` as a version to time, after its result was held against float64.

    Raises:
        ValueError: the result is wrong.
    """
    acceleration = np.full_like(bodies.position, np.nan)
    reference(bodies, acceleration, softening2, threads)
    error = relative_error(bodies, acceleration, softening2)
    if not error < TOLERANCE:
        raise ValueError(
            f"wrong by {error:.2e} of the mean acceleration, allowed is {TOLERANCE:.0e}"
        )
    return lambda: reference(bodies, acceleration, softening2, threads)


def main() -> None:
    bodies, softening2, rounds = random_bodies(16_384), 0.02**2, 5
    references = build_references()
    checked_odd = random_bodies(1003)
    versions: dict[str, Callable[[], None]] = {}
    for name, reference in references.items():
        checked(reference, checked_odd, softening2, 2)  # a remainder of three targets
        for threads in (1, 2):
            versions[f"{name}, {threads} thread(s)"] = checked(
                reference, bodies, softening2, threads
            )
    times = interleave(versions, rounds)
    rows = [Measurement(name, seconds, bodies.count**2, "pairs") for name, seconds in times.items()]
    title = f"C references: direct-sum gravity, {bodies.count:,} bodies, float32, softened"
    print(
        write_results(
            Path("bench/results/cpu_gravity_reference.md"), title, rows, describe_machine()
        )
    )


if __name__ == "__main__":
    main()
