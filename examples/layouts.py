"""One function, five layouts, the same result: the physics does not depend on the memory layout.

python examples/layouts.py [bodies]
"""

import sys

import numpy as np

import lanewise as lw
from lanewise.layouts import draw

BODIES = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
LAYOUTS = (
    lw.AoS(),
    lw.SoA(),
    lw.AoAS(16),
    lw.SoAoAS(),
    lw.SoAoAS([("position",), ("velocity", "charge")]),
    lw.AoSoA(8),
)


@lw.record
class Charge:
    """A moving charge."""

    position: lw.vec3
    velocity: lw.vec3
    charge: lw.f32


@lw.pairwise
def field(target: Charge, source: Charge, core2: lw.f32) -> lw.vec3:
    d = target.position - source.position
    inv = lw.rsqrt(lw.dot(d, d) + core2)
    return source.charge * inv**3 * d


def main() -> None:
    rng = np.random.default_rng(2)
    charges = Charge.array(
        position=rng.normal(size=(BODIES, 3)),
        velocity=np.zeros((BODIES, 3)),
        charge=rng.choice([-1.0, 1.0], BODIES),
    )
    reference = field(charges, charges, 0.01)
    for layout in LAYOUTS:
        moved = charges.with_layout(layout)
        result = field(moved, moved, 0.01)
        error = np.abs(result - reference).max() / np.abs(reference).max()
        print(f"{layout}: {moved.nbytes:,} bytes, differs from SoA by {error:.1e}")
        print(draw(moved.arrangement), end="\n\n")


if __name__ == "__main__":
    main()
