"""A file with a kernel of every pattern, as users write them."""

import lanewise as lw


@lw.function
def smoothstep(x: lw.f32) -> lw.f32:
    t = lw.clamp(x, 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@lw.threadwise
def sorted_rows(y: lw.index, x: lw.index, image: lw.Array2[lw.f32], least: lw.Array2[lw.f32], edge: lw.f32):
    h = image.shape[0]
    values = lw.zeros(lw.f32, 3)
    for j in range(3):
        values[j] = smoothstep(image[lw.clamp(y + j - 1, 0, h - 1), x] / edge)
    for a in range(2):
        if values[a + 1] < values[0]:
            values[0] = values[a + 1]
    least[y, x] = values[0]


@lw.threadwise
def deposit(i: lw.index, place: lw.Array1[lw.i32], mass: lw.Array1[lw.f32], cells: lw.Array1[lw.f32]):
    lw.scatter_add(cells, (place[i] + 1) % len(cells), 0.5 * mass[i])


@lw.threadwise
def shifted(i: lw.index, a: lw.Array1[lw.f64], b: lw.Array1[lw.f64]):
    b[i] = a[i + 1]


@lw.threadwise
def flat(y: lw.index, x: lw.index, width: lw.i32, a: lw.Array1[lw.f32]):
    a[y * width + x] = 0.0


class Body(lw.Record):
    position: lw.vec3
    mass: lw.f32


@lw.elementwise
def diffuse(body: Body, step: lw.i32, sigma: lw.f32, seed: lw.u32):
    u = lw.random4(seed, lw.index_of(body), step)
    body.position += sigma * (lw.vec3(u.x, u.y, u.z) - 0.5)


@lw.elementwise
def looked_up(body: Body, table: lw.Array2[lw.f32], rate: lw.f32) -> lw.f32:
    return rate * table[lw.i32(body.mass * 3.0), 2]


@lw.elementwise
def scaled(x: lw.f32, weight: lw.f32) -> lw.f32:
    return x * weight


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.f32:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2)


force = pull.gradient("target.position")
around = pull.using(lw.Neighbors(radius=0.1))
boxed = pull.using(lw.Neighbors(radius=0.1, world=lw.Periodic((1.0, 1.0, 2.0))))
nearest = pull.using(lw.Nearest(k=5))
gridded = pull.using(lw.StaticGrid(radius=0.1))
both = pull.gradient(("target.position", "source.mass"))
parts = scaled.gradient(("x", "weight"))


class Sample(lw.Record):
    time: lw.f64
    weight: lw.f32


@lw.segmentwise
def power(body: Body, sample: Sample, bins: lw.Row[lw.f32], width: lw.f32) -> lw.f32:
    return sample.weight * bins[lw.i32(body.mass * 4.0)] / width


@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations, omega: lw.f32, rates: lw.Array1[lw.f32]):
    total = lw.f32(0)
    for q in lw.D2Q9:
        total += f[q]
    for q in lw.D2Q9:
        f[q] += omega * rates[3] * (q.weight * total - f[q])


@flow.observer
def density(f: lw.populations) -> lw.f32:
    total = lw.f32(0)
    for q in lw.D2Q9:
        total += f[q]
    return total


@lw.stencil(lw.D2Q9)
def gray_scott(u: lw.Field[lw.f32], v: lw.Field[lw.f32], feed: lw.f32) -> tuple[lw.f32, lw.f32]:
    spread = lw.f32(0)
    for q in lw.D2Q9:
        spread += q.weight * (u[q] - u[0])
    r = u[0] * v[0] * v[0]
    return u[0] + spread - r + feed * (1.0 - u[0]), v[0] + r - feed * v[0]


@lw.stencil(lw.D3Q7)
def heat(t: lw.Field[lw.f64], conductivity: lw.Field[lw.f64], dt: lw.f64, source: lw.f64) -> lw.f64:
    flux = 0.0
    for q in lw.D3Q7:
        flux += 0.5 * (conductivity[q] + conductivity[0]) * (t[q] - t[0])
    return t[0] + dt * (flux + source)


def plain(x: float) -> float:
    return x


number = 7
