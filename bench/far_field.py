"""How fast are forces by all pairs, by other libraries' trees and by lw.Tree, and how wrong is
each?

`python -m bench.far_field [--bodies 1e5] [--device cpu] [--threads 1] [--places plummer]` writes
bench/results/far_field_DEVICE_BODIES.{md,json} (`..._2_threads` of two): a Plummer sphere cut off
at ten scale lengths, or a unit box (`far_field_uniform_...`), all versions in turns in one run, or
those that `--only` names by parts of their names. Errors are those of |a| for bodies chosen at
random, against all pairs in float64. What a body meets in a tree is counted, and on a GPU every
tree has a bound from that. A version whose errors are not below its limit ends the run, and nothing
is written.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from bench.far_field_bound import least_seconds, met
from bench.harness import Errors, Measurement, describe_machine, interleave, write_results
from lanewise.ladders.run import predict_executable
from lanewise.ladders.tree_peers import PEERS, Forces
from lanewise.models.devices import device_model
from lanewise.sims.common.devices import to_host
from lanewise.sims.gravity.initial.plummer import plummer_sphere
from lanewise.sims.gravity.physics import Body, make_physics

SAMPLE = 400  # bodies whose forces are compared
CHUNK = 100_000  # sources of one block in float64
EDGE = 10.0  # scale lengths
# bodies whose pairs are all met: of four times as many a round takes 6 s on a GPU, 50 s on a CPU
MOST_PAIRED = {"cpu": 2**17, "cuda": 2**21}
LIMIT, EXACT_LIMIT = 0.2, 2e-3
"""Of the 99 % error: of a tree at its widest opening, and of all pairs in float32."""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Positions (n, 3) and masses (n,), rounded to float32 as all versions see them, in float64.

    wanted: accelerations (SAMPLE, 3) of the bodies `sample`, in float64.
    """

    position: NDArray[np.float64]
    mass: NDArray[np.float64]
    softening: float
    sample: NDArray[np.int64]
    wanted: NDArray[np.float64]


def cluster(count: int, softening: float, seed: int = 1, places: str = "plummer") -> Cluster:
    """A Plummer sphere, G = M = a = 1, of which no body is farther out than EDGE; or a unit box."""
    rng = np.random.default_rng(seed)
    position = cloud(places, count, rng).astype(np.float32).astype(np.float64)
    mass = np.full(count, np.float32(1 / count), np.float64)
    sample = np.sort(rng.choice(count, min(SAMPLE, count), replace=False))
    return Cluster(position, mass, softening, sample, exact(position, mass, softening, sample))


def cloud(places: str, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Positions (count, 3) in a Plummer sphere up to EDGE, or a unit box."""
    if places == "uniform":
        return rng.random((count, 3))
    return plummer_sphere(count, rng, EDGE**3 / (1 + EDGE**2) ** 1.5)[0]


def exact(
    position: NDArray[np.float64], mass: NDArray[np.float64], softening: float,
    sample: NDArray[np.int64],
) -> NDArray[np.float64]:  # fmt: skip
    """Accelerations of some bodies by all pairs in float64: (len(sample), 3)."""

    def of_part(begin: int) -> NDArray[np.float64]:
        part, found = slice(begin, begin + CHUNK), np.zeros((len(sample), 3))
        for row, body in enumerate(sample):
            d = position[part] - position[body]
            squared = np.einsum("ij,ij->i", d, d) + softening**2
            if begin <= body < begin + CHUNK:
                squared[body - begin] = np.inf
            found[row] = (mass[part] * squared**-1.5) @ d
        return found

    total = np.zeros((len(sample), 3))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(of_part, range(0, len(mass), CHUNK)):
            total += found
    return total


def errors_of(found: Any, bodies: Cluster) -> Errors:
    """Relative errors of |a| of the sampled bodies; refuses what is not (n, 3) finite numbers."""
    own = hasattr(found, "get") or isinstance(found, np.ndarray)  # JAX's arrays become NumPy's
    values = np.asarray(to_host(found) if own else found, np.float64)
    if values.shape != bodies.position.shape:
        raise ValueError(f"accelerations of shape {values.shape}")
    away = np.linalg.norm(values[bodies.sample] - bodies.wanted, axis=1)
    relative = away / np.linalg.norm(bodies.wanted, axis=1)
    if not np.isfinite(relative).all():
        raise ValueError("accelerations that are no finite numbers")
    return Errors(
        float(np.median(relative)), float(np.percentile(relative, 99)), float(relative.max()),
        len(relative),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Own:
    """lanewise's versions. bounds: the seconds that they take at least, where a device's figures
    tell; met: what a body meets.
    """

    versions: Forces
    bounds: dict[str, float]
    met: dict[str, str]


def asked(name: str, only: Sequence[str]) -> bool:
    """Whether a version is wanted whose name this is. only: parts of names; none: all are."""
    return not only or any(word in name for word in only)


def lanewise_versions(bodies: Cluster, device: str, only: Sequence[str]) -> Own:
    """All pairs, and trees."""
    records: Any = Body.array(position=bodies.position, mass=bodies.mass, device=device)  # type: ignore[attr-defined]
    values: dict[str, Any] = {"softening2": bodies.softening**2}
    force = make_physics(Body, bodies.softening > 0).acceleration
    direct = force.bind(records, records, **values)
    own = Own({}, {}, {})
    most = MOST_PAIRED["cpu" if device == "cpu" else "cuda"]
    if len(bodies.mass) <= most and asked(ALL_PAIRS, only):
        own.versions[ALL_PAIRS] = partial(run_once, direct, device)
    model, count = device_model(device), len(bodies.mass)
    bound = predict_executable(direct.compiled.executable, model, count, values).bound
    if bound is not None and ALL_PAIRS in own.versions:
        own.bounds[ALL_PAIRS] = bound
    for name, search in trees().items():
        if not asked(name, only):
            continue
        call = force.using(search=search).bind(records, records, **values)
        own.versions[name] = partial(run_once, call, device)
        run_once(call, device)
        found = met(call, search, bodies.position)
        own.met[f"{name} meets"] = str(found)
        if bound is not None:
            pair = bound / count**2
            own.bounds[name] = least_seconds(force, search, found, count, pair, model)
    return own


ALL_PAIRS = "lanewise, all pairs"


# theta, order
WALKS = ((0.7, 1), (0.7, 2), (0.5, 2), (0.7, 3), (0.65, 3), (0.7, 4), (0.5, 4), (0.6, 5))
DUALS = ((0.8, 3), (0.6, 4), (0.8, 4), (0.7, 5), (0.8, 5), (0.9, 5), (0.6, 6))


def trees() -> dict[str, lw.Tree]:
    """Searches by name."""
    walks = {
        f"lanewise, lw.Tree, order {order}, theta {theta}": lw.Tree(theta=theta, order=order)
        for theta, order in WALKS
    }
    duals = {
        f"lanewise, lw.Tree, dual, order {order}, theta {theta}": lw.Tree(
            theta=theta, order=order, method="dual"
        )
        for theta, order in DUALS
    }
    return walks | duals


def run_once(call: lw.Call, device: str) -> Any:
    result = call()
    if device != "cpu":
        from lanewise.runtime.device import get_device

        get_device(device).synchronize()
    return result


def checked(versions: Forces, bodies: Cluster) -> tuple[dict[str, Callable[[], None]], Any]:
    """The versions to time, and the errors of each; raises ValueError for one that is wrong."""
    errors: dict[str, Errors] = {}
    for name, run in versions.items():
        try:
            found = errors_of(run(), bodies)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        limit = EXACT_LIMIT if name == ALL_PAIRS else LIMIT
        if not found.most < limit:
            raise ValueError(f"{name}: 99 % of the errors are below {found.most:.1e}, not {limit}")
        errors[name] = found
        print(f"{name}: median {found.median:.1e}, 99 % {found.most:.1e}", flush=True)
    return {name: partial(_drop, run) for name, run in versions.items()}, errors


def _drop(run: Callable[[], Any]) -> None:
    run()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bodies", type=float, default=1e5)
    options.add_argument("--device", default="cpu")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--softening", type=float, default=None, help="0, on a GPU 1e-3")
    options.add_argument("--places", choices=("plummer", "uniform"), default="plummer")
    options.add_argument("--only", nargs="*", default=[], help="parts of names of versions")
    given = options.parse_args()
    count, on_cpu = int(given.bodies), given.device == "cpu"
    softening = (0.0 if on_cpu else 1e-3) if given.softening is None else given.softening
    for variable in ("LANEWISE_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        if on_cpu and os.environ.get(variable) != str(given.threads):
            raise SystemExit(f"set {variable}={given.threads}: libraries read it when they load")

    bodies = cluster(count, softening, places=given.places)
    own = lanewise_versions(bodies, given.device, given.only)
    kind = "cpu" if on_cpu else "cuda"
    others: Forces = {}
    left: list[str] = []
    for peer in (p for p in PEERS if p.on_gpu != on_cpu):
        if reason := peer.lacking(softening):
            left.append(reason)
        else:
            found = peer.versions(bodies.position, bodies.mass, softening, given.threads)
            others |= {name: run for name, run in found.items() if asked(name, given.only)}
    versions, errors = checked(own.versions | others, bodies)
    alone = on_cpu and given.threads == 1  # then processor time, which other programs leave alone
    clock = time.process_time if alone else time.perf_counter
    times = interleave(versions, given.rounds, clock)
    rows = [
        Measurement(
            name, seconds, count, "bodies", count / own.bounds[name] if name in own.bounds else 0.0
        )
        for name, seconds in times.items()
    ]
    machine = describe_machine() | {"programs running at the end": f"{os.getloadavg()[0]:.1f}"}
    machine |= {"clock": clock.__name__} | own.met
    if left:
        machine["left out"] = "; ".join(left)
    box = given.places == "uniform"
    what = "a unit box" if box else f"a Plummer sphere (r < {EDGE:g} a)"
    title = (
        f"Forces of {what}, {count:,} bodies, softening {softening:g}, "
        f"{f'{given.threads} thread(s)' if on_cpu else given.device}"
    )
    several = f"_{given.threads}_threads" if on_cpu and given.threads > 1 else ""
    path = Path(f"bench/results/far_field_{'uniform_' if box else ''}{kind}_{count}{several}.md")
    print(write_results(path, title, rows, machine, errors))


if __name__ == "__main__":
    main()
