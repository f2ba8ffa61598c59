"""What processes that share a mesh do in tests: `python ranks_program.py CASE` in each of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
import time
from typing import Any

import numpy as np

import lanewise as lw
from tests.mesh.rank_devices import of_all_ranks


class Body(lw.Record):
    position: lw.vec3
    velocity: lw.dvec3
    mass: lw.f32
    serial: lw.i64


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return d * (source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3)


@lw.pairwise(search=lw.StaticGrid(radius=0.7))
def near(target: Body, source: Body) -> tuple[lw.vec3, lw.f64, lw.i32, lw.ArgMax[lw.f32]]:
    if lw.same(target, source):
        return lw.vec3(0, 0, 0), 0.0, 0, -1.0
    d = source.position - target.position
    return d * source.mass, 1 / lw.f64(lw.dot(d, d) + 1e-3), 1, source.mass


@lw.elementwise
def push(body: Body, force: lw.vec3, dt: lw.f64) -> tuple[lw.f32, lw.i64]:
    body.velocity += lw.dvec3(force) * dt
    body.position += lw.vec3(body.velocity * dt)
    return lw.length(body.position) * body.mass, body.serial * 2


def bodies(n: int, layout: lw.Layout, device: Any) -> Any:
    rng = np.random.default_rng(n)
    return Body.array(
        position=rng.standard_normal((n, 3)), velocity=rng.standard_normal((n, 3)), mass=rng.random(n),
        serial=np.arange(n), layout=layout, device=device,
    )  # fmt: skip


def fields(array: Any) -> list[Any]:
    return list(array.numpy().values())


def calls(b: Any) -> list[Any]:
    """Results of calls, of bound ones and of searches, and the arrays that they leave."""
    force = pull(b, b, softening2=1e-3)
    left = [force, *push(b, force, dt=1e-2)]
    left += near(b, b)
    bound = pull.bind(b, b, softening2=1e-3)
    lw.steps([bound, push.bind(b, bound.results[0], dt=1e-2)]).run(3)
    out = pull(b, b, softening2=1e-2, out=bound.results[0])
    host = Body.array(position=np.ones((3, 3)), mass=np.ones(3))
    return [*left, out, pull(b, host, softening2=1.0), *fields(b)]


def arrays(b: Any) -> list[Any]:
    """Views, copies, assignment and arithmetic."""
    n = len(b)
    b.velocity = 2 * b.velocity
    b.mass = np.arange(n) / 7
    b[1:n:3] = b[: len(range(1, n, 3))].copy()
    b[np.arange(0, n, 2)] = b[np.arange(0, n, 2)[::-1]]
    left = [2 * b.position + b.mass.numpy()[:, None], np.sqrt(b.mass), b.mass[n // 2 :], *fields(b[: n // 2])]
    left += [*fields(b[b.serial.numpy() % 3 == 0]), *fields(b.with_layout(lw.AoS())), *fields(b.copy()[2:])]
    left += [*fields(b.to("cpu")), *fields(lw.concatenate([b, b[:2]]))]
    left += [np.asarray(lw.sum(b.velocity)), np.asarray(lw.sum(b.velocity * 3))]
    return left


def bits(mesh: lw.Mesh) -> dict[str, str]:
    """What everything leaves on a mesh, by what it was."""
    found = {"gravity": gravity(mesh)}
    for n, layout in ((2, lw.SoA()), (57, lw.AoSoA(8)), (200, lw.SoAoAS())):
        for act in (calls, arrays):
            values = [np.asarray(v) for v in act(bodies(n, layout, mesh))]
            text = b"".join(str((v.dtype, v.shape)).encode() + v.tobytes() for v in values)
            found[f"{act.__name__} {n} {layout}"] = hashlib.sha256(text).hexdigest()
    return found


def gravity(mesh: lw.Mesh) -> str:
    """What a simulation leaves, with writes between its steps; one body is then no number."""
    from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions

    stars = make_bodies(make_initial_conditions("plummer", 131, 3), device=mesh)
    simulation = Simulation(stars, softening=0.05)
    simulation.advance(3, 1e-2)
    stars.velocity *= 0.5
    simulation.advance(3, 1e-2)
    d = simulation.diagnostics()
    left = [*fields(stars), np.asarray(simulation.acceleration), np.array([d.kinetic, d.potential])]
    broken = stars.numpy()["velocity"]
    broken[100] = np.nan
    stars.velocity = broken
    said = ""
    try:
        simulation.advance(1, 1e-2)
    except lw.InputError as error:  # without pytest, as each process would load it
        said = str(error)
    assert said == "velocity of body 100 is (nan, nan, nan); wanted finite numbers"
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in left)).hexdigest()


def moves(mesh: lw.Mesh) -> None:
    """Rows and values go around, those of devices and of the host, and everybody gets those of all; some have none."""
    from lanewise.runtime.memory import array_module, on, to_host

    rank, size = mesh.rank, mesh.transport.size
    left, right = (rank - 1) % size, (rank + 1) % size
    for device in ("cpu", mesh.devices[0]):
        with on(device):
            module = array_module(device)
            ring, into = module.full(3, rank), module.empty((2, 3), int)
            own = module.full((2 * rank, 3), rank, np.float32)
        mesh.transport.exchange([(right, ring), (right, ring[:2])], [(left, into[1]), (left, into[0, :2])])
        mesh.transport.barrier()
        whole = mesh.transport.gather(own, [2 * r for r in range(size)])
        assert type(whole) is type(own)
        assert np.array_equal(to_host(whole)[:, 0], np.repeat(np.arange(size), 2 * np.arange(size)))
        assert (to_host(into)[[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]] == left).all()
    assert mesh.transport.agree({"rank": rank}) == [{"rank": r} for r in range(size)]


def refusals(mesh: lw.Mesh, b: Any) -> None:
    """What is refused, and processes go on."""
    import pytest  # other cases start without it

    kinds = "the devices of a mesh are of one kind, found cpu and python on its ranks"
    with pytest.raises(lw.ArgumentError, match=kinds):
        lw.Mesh.over_ranks("python" if mesh.rank == 1 else "cpu")
    longer = bodies(5 + mesh.rank, lw.SoA(), mesh)
    for gather in (longer.mass.numpy, longer[:5].copy().numpy, (b.mass if mesh.rank else b.position).numpy):
        with pytest.raises(lw.ArgumentError, match=r"rows of different arrays; by ranks: 5 rows of \d+ bytes, "):
            gather()
    if mesh.rank:
        where = f"row 0 lies in another process of the mesh ({mesh}); .numpy() has all rows"
        with pytest.raises(lw.ArgumentError, match=re.escape(where)):
            assert b[0].mass
    else:
        assert b[0].serial == 0


def saved(mesh: lw.Mesh, path: str) -> None:
    """One of the processes writes, and all find the file."""
    whole = bodies(11, lw.AoS(), mesh)
    lw.save(path, whole)
    again = lw.load(path, Body)
    assert all(np.array_equal(a, b) for a, b in zip(fields(whole), fields(again), strict=True))
    lw.save(path, overwrite=True, position=whole.position)
    assert np.array_equal(lw.load(path)["position"], again.position)


def main(case: str, path: str = "") -> None:
    mesh = of_all_ranks()
    rank = mesh.rank
    b = bodies(5, lw.SoA(), mesh)
    print(f"rank {rank} begins\n", end="", flush=True)  # in one piece: two processes write at once
    match case:
        case "bits":
            moves(mesh)
            saved(mesh, path)
            refusals(mesh, b)
            found = bits(mesh)
            if rank == 0:
                print(json.dumps({"mesh": str(mesh), "bits": found}))
        case "exception":
            if rank == 1:
                raise ValueError("on one rank")
            b.numpy()
        case "everywhere":
            b.no_such_field  # noqa: B018
        case "alone":
            if rank == 0:
                b.numpy()
        case "killed":
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(3600)  # who is not ended by the others' end is ended by the test
        case "endless":
            while True:
                b.numpy()
                time.sleep(0.01)
        case _:
            raise AssertionError(case)


if __name__ == "__main__":
    main(*sys.argv[1:])
