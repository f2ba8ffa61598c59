"""Which optimisations does a kernel have, why, and what does the model expect? An explanation
is data, and prints as a table.

python examples/explain_a_kernel.py [charges]
"""

import sys

import numpy as np

import lanewise as lw

CHARGES = int(sys.argv[1]) if len(sys.argv) > 1 else 4096


@lw.record
class Charge:
    """A point charge at rest."""

    position: lw.vec3
    charge: lw.f32


@lw.pairwise
def coulomb(target: Charge, source: Charge, core2: lw.f32) -> lw.vec3:
    d = target.position - source.position
    r = lw.sqrt(lw.dot(d, d) + core2)
    return target.charge * source.charge * d / r**3


def main() -> None:
    rng = np.random.default_rng(5)
    charges = Charge.array(
        position=rng.normal(size=(CHARGES, 3)), charge=rng.choice([-1.0, 1.0], CHARGES)
    )
    # without measure=True in no time
    report = coulomb.compile(charges, charges, core2=1e-3).explain(measure=True)
    print(report)
    root = report.row("rsqrt")  # `coulomb` divides by a square root; lanewise leaves that to you
    print(
        f"\nwith rsqrt={root.best!r}: predicted {root.predicted:.2f} x, measured "
        f"{root.measured:.2f} x"
    )


if __name__ == "__main__":
    main()
