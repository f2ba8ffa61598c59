"""Which layout suits all kernels of a simulation together? The answer may be that no change is
worth making.

python examples/choose_a_layout.py [stars]
"""

import sys

import lanewise as lw

STARS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000


@lw.record
class Star:
    """Eight scalars; most kernels need four of them."""

    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3
    age: lw.f32


@lw.elementwise
def attraction(star: Star, softening2: lw.f32) -> lw.vec3:
    inv = lw.rsqrt(lw.dot(star.position, star.position) + softening2)
    return -star.mass * inv**3 * star.position


@lw.elementwise
def grow_older(star: Star, dt: lw.f32):
    star.age += dt


def main() -> None:
    streamed = [attraction, lw.Use(grow_older, weight=0.1)]  # the age every tenth step
    # as neighbours
    gathered = [lw.Use(attraction, pattern="gathered", weight=8), lw.Use(grow_older, weight=0.1)]
    for uses in (streamed, gathered):
        # "cuda" needs no GPU: without one it plans for an NVIDIA H200
        for device in ("cpu", "cuda"):
            choice = lw.choose_layout(Star, uses, device=device, count=STARS)
            print(f"{choice}\n-> {choice.layout}\n")


if __name__ == "__main__":
    main()
