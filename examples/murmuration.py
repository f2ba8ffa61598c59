"""A murmuration: starlings follow their six or seven nearest neighbours at any distance, and
stay around their roost.

The rank of a neighbour counts, not its distance: M. Ballerini et al., Interaction ruling animal
collective behavior depends on topological rather than metric distance, PNAS 105, 1232 (2008). The
rules are Reynolds' (OpenSteer's), the roost a sphere that they stay inside of.

    python examples/murmuration.py [agents] [seconds] [murmuration.mp4 or .gif] [murmuration.png]
"""

import sys

from lanewise.sims.boids import Flock
from lanewise.sims.boids.pictures import Film, picture

AGENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 30
MOVIE = sys.argv[3] if len(sys.argv) > 3 else "murmuration.mp4"
PICTURE = sys.argv[4] if len(sys.argv) > 4 else "murmuration.png"


def main() -> None:
    flock = Flock(
        agents=AGENTS,
        k=7,
        radius=12,
        world=45,
        boundary="inside-sphere",
        seed=4,
        separation_radius=2.5,
        alignment_radius=12,
        alignment_cosine=-0.5,
        cohesion_radius=12,
        cohesion_cosine=-0.9,
        cohesion_weight=12,
    )
    print(f"search: {flock.describe_search()}")
    steps = round(60 * SECONDS)
    orders: list[float] = []
    with Film(flock, MOVIE, camera="orbit", overwrite=True) as film:
        film(flock)
        for _ in range(10):
            flock.run(max(2, steps // 10), callback=film, every=2)
            orders.append(flock.polarisation())
            print(f"t = {flock.time:5.1f}: polarisation {orders[-1]:.3f}")
    picture(flock, PICTURE, camera="orbit", overwrite=True)
    found = flock.statistics()
    print(
        f"nearest flockmate {found.nearest_mean:.2f} away on average, {found.nearest_min:.2f} at "
        "least"
    )
    print(f"movie: {MOVIE}, picture: {PICTURE}")


if __name__ == "__main__":
    main()
