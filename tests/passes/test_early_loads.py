"""What is loaded before the tests that it stands under lies in the array, whatever the indices, lengths and uniforms of
a call are.
"""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest

from lanewise.analysis.affine import nest
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.names import length_of
from lanewise.ir.traverse import rewrite, statements
from lanewise.launch.shaped_arrays import NARROW
from lanewise.passes.points import early_loads
from lanewise.passes.points.shape import Shape, first_of
from tests.fuzz.texts import executed
from tests.passes.test_guards import wrapping
from tests.patterns.reductions import reference

HEAD = "@lw.threadwise\ndef kernel({index}, a: lw.Array{rank}[lw.f32], c: lw.Array{rank}[lw.f32], t: lw.i32):\n"
TERMS = (
    "{i} + {i}",
    "{i} * 2",
    "{i} - t",
    "{i} + t",
    "t - {i}",
    "{n} - {i}",
    "{n} + {i}",
    "{i}",
    "-{i} - {i}",
    "t",
    "t * 2",
)
PLACES = [0, 2**29, 2**30, 2**31 - 2**16]  # about which indices and lengths lie
UNIFORMS = [-(2**31), -(2**30), 0, 2**30, 2**31 - 1]


def program(rng: Random, rank: int) -> str:
    """Loads of a few neighbours under a test that they lie in the array."""
    names = "yx"[2 - rank :]
    sums = [rng.choice(TERMS).format(i=i, n=f"a.shape[{d}]") for d, i in enumerate(names)]
    lines, within = [], []
    for d, e in enumerate(sums):
        lines.append(f"p{d} = {e}")
        within.append(f"p{d} >= 4 and p{d} < a.shape[{d}] - 4")
    neighbours = [[rng.choice((-3, -1, 0, 0, 2)) for _ in names] for _ in range(3)]
    loads = [f"a[{', '.join(f'p{d} + {c}' for d, c in enumerate(shifts))}]" for shifts in neighbours]
    lines += [f"if {' and '.join(within)}:", f"    c[{', '.join(names)}] = {' + '.join(loads)}"]
    head = HEAD.format(index=", ".join(f"{i}: lw.index" for i in names), rank=rank)
    return head + "".join(f"    {line}\n" for line in lines)


def near(rng: Random, edges: list[int], low: int, high: int) -> np.int32:
    return np.int32(min(max(low, rng.choice(edges) + rng.randint(-20, 20)), high))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 30))])
def test_what_is_loaded_early_lies_in_the_array(seed: int, rank: int) -> None:
    rng = Random(f"{seed} {rank}")
    loaded = 0
    for number in range(12):
        shape = (8,) * rank
        sides = Shape((1, 8)[2 - rank :], (2, 2)[2 - rank :], rank - 1)
        with executed(program(rng, rank), f"early_{seed}_{number}.py") as names:
            arrays = [np.zeros(shape, np.float32) for _ in range(2)]
            naive = reference(names.kernel, arrays, shape, t=np.int32(0))
        loops, body = nest(naive)
        if (found := early_loads.apply(naive, body, loops, sides)) is None:
            continue
        for _ in range(150):
            loaded += _compared(rng, loops, sides, *found)
    assert loaded


def _compared(
    rng: Random, loops: tuple[ir.Parallel, ...], sides: Shape, tests: tuple[ir.Expression, ...], body: ir.Block
) -> int:
    """Each point of a block that loads early: whether there was one."""
    rank = len(loops)
    env: dict[str, Any] = {"t": near(rng, UNIFORMS, -(2**31), 2**31 - 1)}
    env |= {length_of("a", d): near(rng, PLACES, 1, NARROW) for d in range(rank)}
    env |= {first_of(x.variable): near(rng, PLACES, 0, NARROW) for x in loops}
    lengths = [int(env[length_of("a", d)]) for d in range(rank)]
    with np.errstate(over="ignore"):
        if not all(evaluate(rewrite(e, wrapping), env) for e in tests):
            return 0
        ranges = [range(sides.side(d)) for d in range(rank)]
        for point in itertools.product(*ranges):
            env |= {x.variable: env[first_of(x.variable)] + np.int32(p) for x, p in zip(loops, point, strict=True)}
            for s in statements(body):
                match s:
                    case ir.Assign() if s.name.startswith("p"):
                        env[s.name] = evaluate(rewrite(s.value, wrapping), env)
                    case ir.LoadElement() if s.early:
                        index = [int(evaluate(rewrite(i, wrapping), env)) for i in s.indices]
                        place = index[0] if rank == 1 else index[0] * lengths[1] + index[1]
                        assert 0 <= place < int(np.prod(lengths, dtype=object)), (index, env)
                    case _:
                        pass
    return 1
