"""Your own time loop over whole arrays: two substances react and spread, and leave spots.

The model of P. Gray and S. K. Scott, Chem. Eng. Sci. 39, 1087 (1984), with the parameters of J. E.
Pearson, Science 261, 189 (1993). Steps read one pair of arrays and write the other: with cycle=2
there are two lists, one for the even steps and one for the odd ones.

    python examples/own_loop_reaction.py [size] [steps]
"""

import sys

import numpy as np

import lanewise as lw

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 128
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
FEED, KILL = 0.035, 0.06
SPREAD_U, SPREAD_V = 0.16, 0.08
Field = lw.Array2[lw.f32]


@lw.threadwise
def react(
    y: lw.index,
    x: lw.index,
    u: Field,
    v: Field,
    new_u: Field,
    new_v: Field,
    feed: lw.f32,
    kill: lw.f32,
):
    h, w = u.shape
    up, down, left, right = (y + h - 1) % h, (y + 1) % h, (x + w - 1) % w, (x + 1) % w
    here_u, here_v = u[y, x], v[y, x]
    spread_u = u[up, x] + u[down, x] + u[y, left] + u[y, right] - 4 * here_u
    spread_v = v[up, x] + v[down, x] + v[y, left] + v[y, right] - 4 * here_v
    eaten = here_u * here_v * here_v
    new_u[y, x] = here_u + SPREAD_U * spread_u - eaten + feed * (1 - here_u)
    new_v[y, x] = here_v + SPREAD_V * spread_v + eaten - (feed + kill) * here_v


def dish():
    """Two pairs of arrays; the first one has a square of the second substance in the middle."""
    u, v = np.ones((SIZE, SIZE), np.float32), np.zeros((SIZE, SIZE), np.float32)
    middle = slice(SIZE // 2 - 8, SIZE // 2 + 8)
    u[middle, middle], v[middle, middle] = 0.5, 0.25
    return [(u, v), (np.empty_like(u), np.empty_like(v))]


if __name__ == "__main__":
    even, odd = dish()
    there = react.bind(*even, *odd, FEED, KILL, grid=(SIZE, SIZE))
    back = react.bind(*odd, *even, FEED, KILL, grid=(SIZE, SIZE))
    loop = lw.steps([[there], [back]], cycle=2)

    def look(loop):
        _, newest = odd if loop.step % 2 else even
        print(f"step {loop.step:5}: {(newest > 0.2).mean():6.2%} of the dish is covered")

    loop.run(STEPS, callback=look, every=STEPS // 4)

    pairs = dish()
    for _ in range(STEPS):
        react(*pairs[0], *pairs[1], FEED, KILL, grid=(SIZE, SIZE))
        pairs.reverse()
    newest = odd if loop.step % 2 else even
    print("the bits of plain calls:", all(map(np.array_equal, pairs[0], newest)))
