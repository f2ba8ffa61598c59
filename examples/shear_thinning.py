"""Your own collision: a shear-thinning fluid, whose viscosity k (shear rate)^(n - 1) each
site computes.

The shear rate follows from the stress that a site holds, and the stress from the viscosity: a few
iterations solve for the relaxation time. A channel driven by a body force (Guo, Zheng & Shi 2002)
has an exact profile to compare with: u(y) = n / (n + 1) (g / k)^(1/n) [(H/2)^(1 + 1/n) - |y -
H/2|^(1 + 1/n)].

    python examples/shear_thinning.py [sites across the channel] [exponent n]
"""

import sys

import numpy as np

import lanewise as lw

HEIGHT = int(sys.argv[1]) if len(sys.argv) > 1 else 32
EXPONENT = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
SPEED, VISCOSITY = 0.05, 0.1  # in the middle of the channel; at the shear rate 2 SPEED / HEIGHT


@lw.function
def moments(f, force):
    density, momentum = lw.f64(1), lw.dvec2(0) + 0.5 * force
    for q in lw.D2Q9:
        density += f[q]
        momentum += f[q] * q.velocity
    return density, momentum / density


@lw.function
def source(q, u, force):
    return q.weight * (3 * (q.along(force) - lw.dot(u, force)) + 9 * q.along(u) * q.along(force))


@lw.function
def excess(q, f, density, u, force):
    """What a population has over its equilibrium, with half a step of the force."""
    c = q.along(u)
    equilibrium = q.weight * (density - 1 + density * (3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u)))
    return f[q] - equilibrium + 0.5 * source(q, u, force)


@lw.sitewise(lw.D2Q9)
def power_law(f: lw.dpopulations, consistency: lw.f64, exponent: lw.f64, force: lw.dvec2):
    density, u = moments(f, force)
    xx, xy, yy = lw.f64(0), lw.f64(0), lw.f64(0)
    for q in lw.D2Q9:
        n = excess(q, f, density, u, force)
        xx += q.x * q.x * n
        xy += q.x * q.y * n
        yy += q.y * q.y * n
    stress = lw.sqrt(xx * xx + 2 * xy * xy + yy * yy)
    tau = lw.f64(1)
    for _ in range(8):
        shear_rate = lw.max(1.5 * lw.sqrt(2.0) * stress / (density * tau), 1e-7)  # sqrt(2 S:S)
        tau = 0.5 + lw.min(3 * consistency * shear_rate ** (exponent - 1), 5.0)
    for q in lw.D2Q9:
        f[q] += source(q, u, force) - excess(q, f, density, u, force) / tau


power_law.wall(1, "wall")


@power_law.observer
def look(f: lw.dpopulations, force: lw.dvec2) -> tuple[lw.f64, lw.dvec2]:
    return moments(f, force)


def main() -> None:
    half, n = HEIGHT / 2, EXPONENT
    consistency = VISCOSITY * (SPEED / half) ** (1 - n)
    g = consistency * (SPEED * (n + 1) / n) ** n / half ** (n + 1)
    sites = power_law.sites((HEIGHT, 4), edges={"y": "wall"})
    power_law.run(
        sites, round(HEIGHT**2 / VISCOSITY), consistency=consistency, exponent=n, force=(g, 0.0)
    )

    y = np.arange(HEIGHT) + 0.5
    _, velocity = look(sites, force=(g, 0.0))
    found = velocity.reshape(HEIGHT, 4, 2)[:, 0, 0]
    exact = (
        n
        / (n + 1)
        * (g / consistency) ** (1 / n)
        * (half ** (1 + 1 / n) - np.abs(y - half) ** (1 + 1 / n))
    )
    print(f"{sites}, n = {n:g}, after {sites.step:,} steps")
    for share in (0.1, 0.25, 0.5):
        i = int(share * HEIGHT)
        print(f"  y = {y[i]:4.1f}: u = {found[i]:.5f}, exact {exact[i]:.5f}")
    print(f"  largest deviation {np.abs(found - exact).max() / SPEED:.1e} of the largest velocity")
    print(
        "  a Newtonian profile would deviate by "
        f"{np.abs(exact - SPEED * (1 - (y / half - 1) ** 2)).max() / SPEED:.1e}"
    )


if __name__ == "__main__":
    main()
