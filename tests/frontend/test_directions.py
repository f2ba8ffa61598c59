"""Populations, directions and the loops over them: plain Python, the lowered function, and what must hold of both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call
from lanewise.ir.printer import print_function
from lanewise.ir.traverse import expressions, statements, subexpressions
from tests.frontend.sites import agree, interpret, lowered, run_python
from tests.written import module

SINGLE, DOUBLE = np.float32, np.float64
LATTICES = {"D2Q9": lw.D2Q9, "D3Q19": lw.D3Q19, "D3Q27": lw.D3Q27}
every_lattice = pytest.mark.parametrize("lattice", LATTICES.values(), ids=LATTICES)
PAIRS = {n: tuple(q for q in x if q.index < q.opposite.index) for n, x in LATTICES.items()}


def random_populations(lattice, dtype=SINGLE, seed=0):
    """Deviations from the weights, of a flow that is slow."""
    return (0.05 * np.random.default_rng(seed).normal(size=lattice.size)).astype(dtype)


def collision(lattice, *, double=False):
    """BGK of deviations from the weights, in the words of the user."""
    populations, real = (lw.dpopulations, lw.f64) if double else (lw.populations, lw.f32)
    vector = {(2, False): lw.vec2, (3, False): lw.vec3, (2, True): lw.dvec2, (3, True): lw.dvec3}[
        lattice.dimension, double
    ]

    def flow(f: populations, omega: real) -> None:
        density = real(1)
        momentum = vector(0)
        for q in lattice:
            density += f[q]
        for q in lattice:
            momentum += f[q] * q.velocity
        u = momentum / density
        for q in lattice:
            c = q.along(u)
            f[q] += omega * (q.weight * (density - 1 + density * (3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u))) - f[q])

    return flow


@pytest.mark.grid(every=40)
@every_lattice
@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=["f32", "f64"])
@given(seed=st.integers(0, 99), omega=st.floats(0.1, 1.9))
def test_a_collision_is_the_same_and_conserves(lattice, dtype, seed, omega):
    f = random_populations(lattice, dtype, seed)
    after, _ = agree(collision(lattice, double=dtype is DOUBLE), lattice, f, omega=omega)
    assert after.dtype == dtype
    e = np.array(lattice.velocities)
    tolerance = 40 * np.finfo(dtype).eps
    assert abs(after.sum(dtype=DOUBLE) - f.sum(dtype=DOUBLE)) < tolerance
    np.testing.assert_allclose(after.astype(DOUBLE) @ e, f.astype(DOUBLE) @ e, rtol=0, atol=tolerance)


def test_golden(golden):
    golden("bgk_d2q9", f"{print_function(lowered(collision(lw.D2Q9), lw.D2Q9).function)}\n")


@every_lattice
def test_sums_over_directions_are_only_sums(lattice):
    """No product with 0, 1 or -1 is left, no sum with 0."""
    vector = lw.vec2 if lattice.dimension == 2 else lw.vec3

    def moments(f: lw.populations) -> tuple[vector, lw.f32, lw.f32]:
        momentum = vector(0)
        energy, shear = lw.f32(0), lw.f32(0)
        for q in lattice:
            momentum += f[q] * vector(q.velocity)
            energy += lw.dot(q.velocity, q.velocity) * f[q]
            shear -= q.x * q.y * f[q]
        return momentum, energy, shear

    f = random_populations(lattice)
    _, found = agree(moments, lattice, f)
    e = np.array(lattice.velocities)
    np.testing.assert_allclose(found[:-2], f @ e, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[-2], f @ (e * e).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found[-1], -f @ (e[:, 0] * e[:, 1]), rtol=1e-5, atol=1e-6)
    body = lowered(moments, lattice).function.body
    operations = [x for s in statements(body) for e in expressions(s) for x in subexpressions(e)]
    literals = [
        x.value for o in operations if isinstance(o, ir.Binary) for x in (o.left, o.right) if isinstance(x, ir.Literal)
    ]
    assert set(literals) <= {2.0, 3.0}  # the squares of the velocities
    links = np.count_nonzero(e) + np.count_nonzero((e * e).sum(axis=1)) + np.count_nonzero(e[:, 0] * e[:, 1])
    sums = [o for o in operations if isinstance(o, ir.Binary) and o.operator in "+-"]
    assert len(sums) == links


def numbers_of_directions(f: lw.populations, u: lw.vec3) -> tuple[lw.f32, lw.f32, lw.f32, lw.i32]:
    total, kinds, indices = lw.f32(0), lw.f32(0), 0
    for q in lw.D3Q19:
        a, b = q.x, q.velocity.y
        total += (a * u.x + b * u.y + q.z * u.z) * f[q] - 2 * q.velocity[0] + (q.x + 1) * (0.5 * q.velocity.z)
        kinds += q.weight * q.x * u.y - u.z * q.x / 3 + q.x / 2 + abs(q.x) * u.x + q.velocity.zx.y
        indices += q.index * (1 + q.opposite.index)
    x, y, z = lw.D3Q19[7].velocity
    return total, kinds, x * u.y + y + z, indices


def test_arithmetic_with_the_numbers_of_directions():
    agree(numbers_of_directions, lw.D3Q19, random_populations(lw.D3Q19), u=(0.3, -0.2, 0.7))


def precision(f: lw.dpopulations) -> tuple[lw.f64, lw.dvec2, lw.f64]:
    third = lw.dvec2(0)
    size = 0.0
    for q in lw.D2Q9:
        third += f[q] * (0.1 * q.velocity)  # a vector of Python numbers still
        scaled = q.weight * q.velocity
        size += lw.dot(scaled, third) + f[q] * lw.length(q.velocity)
    return size, third, lw.f64(0) + lw.D2Q9[5].weight


def test_numbers_of_directions_keep_the_precision_of_their_partner():
    f = random_populations(lw.D2Q9, DOUBLE)
    _, found = agree(precision, lw.D2Q9, f)
    np.testing.assert_allclose(found[1:3], 0.1 * f @ np.array(lw.D2Q9.velocities), rtol=1e-14)
    assert found[3] == 1 / 36


UNKNOWN = tuple(q for q in lw.D2Q9 if q.x == 1)
OTHERS = [1, 2]


def zou_he(f: lw.populations, inflow: lw.vec2) -> None:
    for q in UNKNOWN:
        f[q] = f[q.opposite] + 6 * q.weight * q.along(inflow)
    for i in OTHERS:
        f[i] *= 2


def test_loops_over_a_tuple_of_directions_and_a_list_of_numbers():
    f = random_populations(lw.D2Q9)
    after, _ = agree(zou_he, lw.D2Q9, f, inflow=(0.1, 0.05))
    changed = {q.index for q in UNKNOWN} | {1, 2}
    assert {i for i in range(9) if after[i] != f[i]} == changed
    assert {p.name for p in lowered(zou_he, lw.D2Q9).function.parameters} == {
        *(f"f.q{i}" for q in UNKNOWN for i in (q.index, q.opposite.index)), "inflow.x", "inflow.y",
    }  # fmt: skip
    assert [p.name for p in lowered(zou_he, lw.D2Q9).function.parameters if p.mutable] == [
        f"f.q{i}" for i in sorted(changed)
    ]


@every_lattice
def test_bounce_back_twice_is_nothing(lattice):
    pairs = PAIRS[lattice.name]

    def bounce(f: lw.populations) -> None:
        for q in pairs:
            other = q.opposite
            f[q], f[other] = f[other], f[q]

    f = random_populations(lattice)
    once, _ = agree(bounce, lattice, f)
    np.testing.assert_array_equal(once, f[list(lattice.opposite)])
    np.testing.assert_array_equal(agree(bounce, lattice, once)[0], f)


def decided(f: lw.populations, x: lw.f32) -> tuple[lw.f32, lw.i32]:
    total, count = lw.f32(0), 0
    for q in lw.D2Q9:
        if q.x == 1 and q.y == 0:
            total += 100 * f[q]
        elif not q.y != 1 or q.index == 4:
            total -= f[q]
        elif q.x == 0 and x > 0:
            total += 1000
        else:
            count += 1
        if q.index == 3:
            only = 7  # nothing else gives it a value
        total += f[q] if q.x < q.y <= 1 else 0.25
        if x > 100 and q.x == 5:
            count += f[20]  # not even looked at: there is no such population
    return total, count + only


@pytest.mark.parametrize("x", [-1.0, 1.0])
def test_conditions_on_directions_are_decided(x):
    agree(decided, lw.D2Q9, random_populations(lw.D2Q9), x=x)
    branches = [s for s in statements(lowered(decided, lw.D2Q9).function.body) if isinstance(s, ir.If)]
    assert len(branches) == 1  # of the direction at rest, which depends on x


@lw.function
def moments_of(f):
    density, momentum = lw.f32(0), lw.vec2(0)
    for q in lw.D2Q9:
        density += f[q]
        momentum += q.velocity * f[q]
    return density, momentum


@lw.function
def equilibrium(q, density, u):
    c = q.along(u)
    if q.index == 0:
        return q.weight * density * (1 - 1.5 * lw.dot(u, u))
    return q.weight * density * (1 + 3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u))


@lw.function
def at(f: lw.populations, q, factor):
    other = q.opposite
    return f[other] * factor[0]


def with_helpers(f: lw.populations, omega: lw.f32) -> lw.vec2:
    density, momentum = moments_of(f)
    for q in lw.D2Q9:
        f[q] -= omega * (f[q] - equilibrium(q, density, momentum / density)) + at(f, q.opposite, q.velocity)
    return momentum


def test_helpers_take_populations_and_directions():
    agree(with_helpers, lw.D2Q9, np.abs(random_populations(lw.D2Q9)) + SINGLE(0.1), omega=0.7)


def variables(f: lw.populations, x: lw.f32, n: lw.i32) -> tuple[lw.f32, lw.i32, lw.f32, lw.i32, lw.f32]:
    last, total, weighted = 0, 0.0, 0.0
    for q in lw.D2Q9:
        sign = q.x
        if sign == -1:
            total += f[q]
        if x > 0.5 and q.index % 3 == 0:
            last = q.index
        v = q.velocity
        weighted += lw.dot(v, lw.vec2(x, 1.0)) * f[q]
        if f[q] > 0:
            r = q.opposite
            part = f[r]
        else:
            part = 0
        total += part
        local = lw.zeros(lw.f32, 3)
        for i in range(n):
            if i == q.index:
                break
            local[q.index % 3] += i
        weighted += local[q.index % 3] + local[q] if q.index < 3 else local[1]
        if q.index == 0 or x > 2:
            kept = q.index
    back = sign
    return total, last, weighted, kept, back * x


@settings(deadline=None)
@given(seed=st.integers(0, 99), x=st.sampled_from([-1.0, 1.0, 3.0]), n=st.integers(0, 5))
def test_variables_in_unrolled_loops(seed, x, n):
    agree(variables, lw.D2Q9, random_populations(lw.D2Q9, seed=seed), x=x, n=n)


def nested(f: lw.populations, n: lw.i32) -> lw.f32:
    total = lw.f32(0)
    for q in lw.D2Q9:
        for r in UNKNOWN:
            if q.index < r.index:
                total += f[q] * f[r] * q.along(r.velocity)
    for i in range(n):
        for q in UNKNOWN:
            step = q.y
            total += step * f[q] * i
    for q in UNKNOWN:
        for i in range(n):
            total -= f[q.index - 1] * i
    return total


def test_nested_loops():
    agree(nested, lw.D2Q9, random_populations(lw.D2Q9), n=3)


def left_early(f: lw.populations, x: lw.f32) -> lw.f32:
    for q in lw.D2Q9:
        if f[q] > x:
            return q.weight * f[q]
    for q in UNKNOWN:
        return f[q]


def test_a_return_leaves_an_unrolled_loop():
    for x in (-10.0, 0.02, 10.0):
        agree(left_early, lw.D2Q9, random_populations(lw.D2Q9), x=x)


@every_lattice
def test_many_sites_at_once_in_plain_python(lattice):
    shape = (3, 4)
    f = np.stack([random_populations(lattice, seed=s) for s in range(12)], axis=1).reshape(lattice.size, *shape)
    flow = collision(lattice)
    together, _ = run_python(flow, f, {"omega": 1.2})
    for site in np.ndindex(shape):
        one, _ = run_python(flow, np.ascontiguousarray(f[:, *site]), {"omega": 1.2})
        np.testing.assert_array_equal(together[:, *site], one)


OPERATORS = st.sampled_from(["+", "-", "*"])


@st.composite
def direction_expressions(draw, depth=3):
    """Scalar expressions of a direction's numbers, a population and values."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(
            ["q.x", "q.y", "q.z", "q.velocity.y", "q.weight", "f[q]", "f[q.opposite]", "x", "u.y", "q.along(u)", "2", "0.5",
             "lw.dot(q.velocity, u)", "q.velocity[0]", "lw.dot(q.velocity, q.velocity)", "q.opposite.x",
             "q.x**2", "lw.f32(q.z)", "abs(q.y)"]
        ))  # fmt: skip
    if draw(st.integers(0, 5)) == 0:
        return f"-({draw(direction_expressions(depth - 1))})"
    if draw(st.integers(0, 5)) == 0:
        test = f"{draw(direction_expressions(1))} < {draw(direction_expressions(1))}"
        # Both sides are of one type in a kernel; Python keeps one that is made of literals, weights and components as exact as a
        # float64 until it meets a number with a type, which would round it later than the kernel does.
        sides = [f"lw.f32({draw(direction_expressions(depth - 1))})" for _ in range(2)]
        return f"({sides[0]} if {test} else {sides[1]})"
    return f"({draw(direction_expressions(depth - 1))} {draw(OPERATORS)} {draw(direction_expressions(depth - 1))})"


@st.composite
def vector_expressions(draw, depth=2):
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(
            st.sampled_from(
                [
                    "q.velocity",
                    "u",
                    "q.opposite.velocity",
                    "lw.vec3(x)",
                    "q.weight * q.velocity",
                    "lw.vec3(q.x * q.y, 1, q.z)",
                ]
            )
        )
    if draw(st.booleans()):
        return f"({draw(vector_expressions(depth - 1))} * {draw(direction_expressions(1))})"
    return f"({draw(vector_expressions(depth - 1))} {draw(OPERATORS)} {draw(vector_expressions(depth - 1))})"


@settings(deadline=None)
@given(scalar=direction_expressions(), vector=vector_expressions(), seed=st.integers(0, 9))
def test_any_expression_means_what_python_means(scalar, vector, seed):
    kernel = module(f"""
        def kernel(f: lw.populations, x: lw.f32, u: lw.vec3) -> tuple[lw.f32, lw.vec3]:
            total = lw.f32(0)
            sums = lw.vec3(0)
            for q in lw.D3Q27:
                total += {scalar}
                sums += {vector}
                value = {scalar}
                if f[q] > 0 or q.index == 0:
                    part = {vector}
                    sums -= part
                    only = {scalar}
                total -= only * 0.5
                f[q] -= value * 0.125
            return total, sums
    """).kernel
    f = random_populations(lw.D3Q27, seed=seed)
    agree(kernel, lw.D3Q27, f, x=0.3, u=(0.1, -0.4, 0.2))


def test_the_interpreter_meets_the_python_function_with_infinities_only_where_documented():
    """A product with a component that is 0 is nothing: of an infinity Python makes not a number, the compiler nothing."""

    def product(f: lw.populations) -> lw.f32:
        return lw.D2Q9[3].x * f[0] + 1

    f = np.full(9, np.inf, SINGLE)
    with np.errstate(invalid="ignore"):
        assert np.isnan(run_python(product, f, {})[1][0])
    assert interpret(product, lw.D2Q9, f, {})[1] == [1.0]


def test_parameters_are_named_and_ordered():
    def kernel(f: lw.populations, rate: lw.f32, force: lw.vec2) -> None:
        f[4] += rate * force.y
        f[1] = f[4]

    code = lowered(kernel, lw.D2Q9).function
    assert [(p.name, str(p.type), p.mutable) for p in code.parameters] == [
        ("f.q1", "f32", True), ("f.q4", "f32", True), ("rate", "f32", False), ("force.y", "f32", False),
    ]  # fmt: skip
    given = {"f.q1": SINGLE(1), "f.q4": SINGLE(2), "rate": SINGLE(3), "force.y": SINGLE(4)}
    assert call(code, given)[1]["f.q1"] == 14


# ------------------------------------------------------------ sums over directions


@lw.function
def summed_moments(f, start):
    density = sum((f[q] for q in lw.D2Q9), start)
    return density, sum((f[q] * q.velocity for q in lw.D2Q9), lw.vec2(0)) / density


@pytest.mark.parametrize("dtype", [SINGLE])
def test_a_sum_is_the_loop_that_adds_term_by_term(dtype):
    def with_sums(f: lw.populations, omega: lw.f32) -> None:
        density, u = summed_moments(f, lw.f32(1))
        for q in lw.D2Q9:
            c = q.along(u)
            f[q] += omega * (q.weight * (density - 1 + density * (3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u))) - f[q])

    f = random_populations(lw.D2Q9, dtype)
    after, _ = agree(with_sums, lw.D2Q9, f.copy(), omega=1.3)
    other, _ = agree(collision(lw.D2Q9), lw.D2Q9, f.copy(), omega=1.3)
    np.testing.assert_array_equal(after, other)


def test_sums_over_tuples_and_without_a_start():
    known, halves = (1, 2, 4), PAIRS["D2Q9"]

    def flow(f: lw.populations) -> None:
        f[0] = sum(f[i] * i for i in known) + sum((f[q] for q in halves), 0.5) + summed_moments(f, 1.0)[0]

    f = random_populations(lw.D2Q9)
    after, _ = agree(flow, lw.D2Q9, f.copy())
    pairs = sum(float(f[q.index]) for q in PAIRS["D2Q9"])
    assert after[0] == pytest.approx(f[1] + 2 * f[2] + 4 * f[4] + 0.5 + pairs + 1 + f.sum(), rel=1e-5)
