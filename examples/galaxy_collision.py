"""Two galaxies like ours collide: discs, bulges and dark halos on a parabola, after published
recipes. A start for `lanewise gravity run`, and a movie.

    python examples/galaxy_collision.py [bodies] [steps] [film.mp4 or .gif] [picture.png]
    lanewise gravity run --ic examples/galaxy_collision.py:collision --bodies 20000 --dt 0.05 \
        --steps 1500 --movie two_galaxies.mp4 --show disc,bulge
    lanewise gravity run --ic 'examples/galaxy_collision.py:collision(pericentre=4.0)' ...

One galaxy is that of L. Hernquist, N-body realizations of compound galaxies, ApJS 86, 389 (1993):
an exponential disc of isothermal sheets, a Hernquist bulge and a Hernquist halo (for his truncated
isothermal one); velocities are Gaussians whose dispersions solve the Jeans equations, and whose
disc has Toomre's Q. The orbit is a parabola, and both discs are tilted against it, as in A. Toomre
and J. Toomre, Galactic bridges and tails, ApJ 178, 623 (1972).

Units: G = 1, the scale length of the disc and the mass of the disc. With 3.5 kpc and 5.6e10 solar
masses, a unit of time is 13 million years, and one of speed 262 km/s.
"""

import sys

import numpy as np

BODIES = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 1500
MOVIE = sys.argv[3] if len(sys.argv) > 3 else "galaxy_collision.mp4"
PICTURE = sys.argv[4] if len(sys.argv) > 4 else "galaxy_collision.png"

HALO, DISC, BULGE = 1, 2, 3  # Gadget's numbers of components
MASSES = {DISC: 1.0, BULGE: 1 / 3, HALO: 5.8}
HEIGHT = 0.2  # of the disc's sheets, sech^2(z / HEIGHT)
SCALES = {BULGE: 0.2, HALO: 4.0}
EDGES = {DISC: 8.0, BULGE: 10.0, HALO: 40.0}  # beyond them there are no bodies
TOOMRE_Q, AT_RADIUS = 1.5, 8.5 / 3.5  # the Sun's place
ORDER = (DISC, BULGE, HALO)
RADII = np.geomspace(1e-3, 400.0, 3000)


def collision(bodies=BODIES, seed=0, pericentre=2.5, separation=28.0, softening=0.08):
    """Two equal galaxies on a parabola that would bring their centres to `pericentre`; they are
    `separation` apart at the start. One disc turns with the orbit, the other against it, tilted.
    """
    rng = np.random.default_rng(seed)
    first, second = galaxy(bodies - bodies // 2, rng), galaxy(bodies // 2, rng)
    mass = first["mass"].sum() + second["mass"].sum()
    across = np.sqrt(2 * mass * pericentre) / separation
    inward = np.sqrt(2 * mass / separation - across**2)
    offset = np.array([separation, 0, 0]) / 2
    drift = np.array([-inward, across, 0]) / 2
    # inclination and argument of the pericentre of the discs, in degrees
    for one, sign, tilt in ((first, -1, turned(20, 30)), (second, 1, turned(-70, -40))):
        one["position"] = one["position"] @ tilt.T + sign * offset
        one["velocity"] = one["velocity"] @ tilt.T + sign * drift
    both = {name: np.concatenate([first[name], second[name]]) for name in first}
    return both | {"softening": softening}


def single(bodies=BODIES, seed=0, softening=0.08):
    """One galaxy alone: it should stay as it is."""
    return galaxy(bodies, np.random.default_rng(seed)) | {"softening": softening}


def galaxy(bodies, rng):
    """Bodies in equilibrium, at rest in the middle: four tenths disc, a tenth bulge, half halo."""
    counts = {DISC: 4 * bodies // 10, BULGE: bodies // 10}
    counts[HALO] = bodies - sum(counts.values())
    parts = [(disc if c == DISC else sphere)(c, counts[c], rng) for c in ORDER]
    position, velocity = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
    mass = np.concatenate([np.full(counts[c], MASSES[c] / max(counts[c], 1)) for c in ORDER])
    for values in (position, velocity):
        values -= mass @ values / mass.sum()
    component = np.repeat(ORDER, [counts[c] for c in ORDER])
    return {"position": position, "velocity": velocity, "mass": mass, "component": component}


# ------------------------------------------------------------ what pulls


def mass_inside(component, radius):
    """Of the part within its edge. Hernquist's sphere: r^2 / (r + a)^2; the disc by its columns."""

    def share(r):
        return 1 - (1 + r) * np.exp(-r) if component == DISC else (r / (r + SCALES[component])) ** 2

    edge = EDGES[component]
    return MASSES[component] * share(np.minimum(radius, edge)) / share(edge)


def pull(radius):
    """The circular speed squared, M(<r) / r: of the disc as if it were a sphere."""
    return sum(mass_inside(c, radius) for c in ORDER) / radius


def disc_speed2(radius):
    """The circular speed squared in the disc's plane: its own pull there is that of rings."""
    spheres = (mass_inside(BULGE, radius) + mass_inside(HALO, radius)) / radius
    return spheres + np.interp(radius, _RINGS, _ring_speed2())


_RINGS = np.linspace(0.0, 10.0, 201)


def _ring_speed2():
    """R dPhi/dR of an exponential disc with softened rings, by sums over the angle."""
    rings = (np.arange(400) + 0.5) * (EDGES[DISC] / 400)
    weight = rings * np.exp(-rings)
    weight *= MASSES[DISC] / weight.sum()
    angle = (np.arange(256) + 0.5) * np.pi / 256
    r, s, cosine = _RINGS[:, None, None], rings[None, :, None], np.cos(angle)
    away = r**2 + s**2 - 2 * r * s * cosine + (HEIGHT / 2) ** 2
    return (r * (r - s * cosine) * away**-1.5).mean(axis=2)[:, :] @ weight


# ------------------------------------------------------------ parts of a galaxy


def sphere(component, count, rng):
    """Of Hernquist's profile, with the isotropic dispersion that the Jeans equation gives it in the
    pull of all parts: rho sigma^2 = integral of rho M / r^2 from r outwards. No body is faster than
    0.95 of the speed of escape.
    """
    scale, edge = SCALES[component], EDGES[component]
    share = np.sqrt(rng.random(count)) * edge / (edge + scale)
    radius = np.maximum(scale * share / (1 - share), 1e-3)
    density = 1 / (RADII * (RADII + scale) ** 3)
    slope = density * pull(RADII) / RADII
    pieces = (slope[1:] + slope[:-1]) / 2 * np.diff(RADII)
    outwards = np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
    sigma = np.interp(radius, RADII, np.sqrt(outwards / density))
    escape = np.interp(radius, RADII, 0.95 * np.sqrt(2 * _depth()))
    velocity = sigma[:, None] * rng.normal(size=(count, 3))
    while (fast := np.linalg.norm(velocity, axis=1) > escape).any():
        velocity[fast] = sigma[fast, None] * rng.normal(size=(fast.sum(), 3))
    return radius[:, None] * directions(count, rng), velocity


def _depth():
    """Minus the potential at RADII: the integral of M / r^2 from there outwards."""
    slope = pull(RADII) / RADII
    pieces = (slope[1:] + slope[:-1]) / 2 * np.diff(RADII)
    return np.append(np.cumsum(pieces[::-1])[::-1], 0.0) + pull(RADII[-1])


def disc(component, count, rng):
    """Exponential in R, isothermal in z. The radial dispersion falls as exp(-R / 2) and has
    Toomre's Q at the Sun's place; the others and the drift follow from the epicycles.
    """
    edge = EDGES[component]
    grid = np.linspace(0, edge, 2000)
    inside = 1 - (1 + grid) * np.exp(-grid)
    radius = np.maximum(np.interp(rng.random(count) * inside[-1], inside, grid), 1e-2)
    angle = 2 * np.pi * rng.random(count)
    height = HEIGHT * np.arctanh(2 * rng.random(count) - 1)

    speed2, omega2, kappa2 = (np.interp(radius, *v) for v in epicycles())
    surface = MASSES[DISC] / (2 * np.pi * inside[-1])  # at R = 0
    kappa_sun = np.sqrt(np.interp(AT_RADIUS, *epicycles()[2]))
    sigma_sun = TOOMRE_Q * 3.36 * surface * np.exp(-AT_RADIUS) / kappa_sun
    # without the softening of the middle the disc would be hotter than it turns there
    radial2 = sigma_sun**2 * np.exp(AT_RADIUS - np.hypot(radius, 0.25))
    around2 = radial2 * kappa2 / (4 * omega2)
    vertical2 = np.pi * surface * np.exp(-radius) * HEIGHT
    drifted2 = speed2 + radial2 * (1 - kappa2 / (4 * omega2) - 2 * radius)
    along = np.sqrt(np.maximum(drifted2, 0)) + np.sqrt(around2) * rng.normal(size=count)
    outwards = np.sqrt(radial2) * rng.normal(size=count)
    upwards = np.sqrt(vertical2) * rng.normal(size=count)

    cosine, sine = np.cos(angle), np.sin(angle)
    position = np.stack([radius * cosine, radius * sine, height], axis=1)
    velocity = [outwards * cosine - along * sine, outwards * sine + along * cosine, upwards]
    return position, np.stack(velocity, axis=1)


def epicycles():
    """(radii, values) of the circular speed squared, of Omega^2 and of kappa^2, in the disc."""
    radii = np.linspace(0.05, 10.0, 400)
    speed2 = disc_speed2(radii)
    omega2 = speed2 / radii**2
    kappa2 = 4 * omega2 + radii * np.gradient(omega2, radii)
    return (radii, speed2), (radii, omega2), (radii, np.clip(kappa2, omega2, 4 * omega2))


def directions(count, rng):
    """(count, 3) unit vectors, evenly on the sphere."""
    vectors = rng.normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def turned(inclination, argument):
    """(3, 3): tilt about the x axis, then turn about z; degrees."""
    i, w = np.radians([inclination, argument])
    tilt = np.array([[1, 0, 0], [0, np.cos(i), -np.sin(i)], [0, np.sin(i), np.cos(i)]])
    turn = np.array([[np.cos(w), -np.sin(w), 0], [np.sin(w), np.cos(w), 0], [0, 0, 1]])
    return turn @ tilt


def main():
    from lanewise.sims import gravity
    from lanewise.sims.gravity.pictures import Film, picture

    start = gravity.make_initial_conditions(collision, BODIES)
    simulation = gravity.Simulation(gravity.make_bodies(start), softening=start.softening)
    first = simulation.diagnostics()
    look = {"component": start.component, "show": "disc,bulge", "colour": "speed", "width": 56.0}
    with Film(simulation, MOVIE, overwrite=True, **look) as film:
        film(simulation)
        for _ in range(5):
            simulation.run(max(1, STEPS // 5), dt=0.05, callback=film, every=max(1, STEPS // 750))
            error = simulation.diagnostics().energy_error(first)
            print(f"t = {simulation.time:5.2f}   energy error {error:.1e}")
    picture(simulation, PICTURE, overwrite=True, **look)
    print(f"movie: {MOVIE}, picture: {PICTURE}")


if __name__ == "__main__":
    main()
