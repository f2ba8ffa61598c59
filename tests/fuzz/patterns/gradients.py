"""Derivatives of smooth elements and pairs in float64, against differences of the function as ordinary Python computes
it.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.patterns.written import Pattern, seed

EXPECTED = """

STEP = 1e-6


def near(found, wanted):
    scale = np.maximum(np.abs(wanted), 1.0)
    return np.abs(found - wanted) <= 2e-6 * scale * max(1.0, float(np.abs(wanted).max(initial=0.0)))


def slope(function, values, n):
    ends = []
    for side in (STEP, -STEP):
        moved = [np.float64(v + side) if m == n else np.float64(v) for m, v in enumerate(values)]
        ends.append(function(*moved))
    return (ends[0] - ends[1]) / (2 * STEP)
"""
ELEMENT = """

of_one_call = False


def called(device):
    given, _ = arguments(device)
    return kernel.gradient(wrt=names[0]), given, {}


def arguments(device):
    return [on(device, x) for x in data], {}


def run(device, plan=None):
    with lw.device(device):
        given, _ = arguments(device)
        return off([kernel.gradient(wrt=n)(*given, plan=plan) for n in names])


def expected_near():
    return [np.array([slope(kernel.python, [x[i] for x in data], n) for i in range(count)]) for n in range(len(names))]
"""
PAIR = """

of_one_call = False


def arguments(device):
    a = R.array(device=device, **targets)
    return [a, a if same else R.array(device=device, **sources)], {}


def gradients():
    return [kernel.gradient(wrt="target." + n if not same else n) for n in names]


def called(device):
    return gradients()[0], *arguments(device)


def run(device, plan=None):
    with lw.device(device):
        given, _ = arguments(device)
        return off([g(*given, plan=plan) for g in gradients()])


def expected_near():
    others = targets if same else sources
    class Row:
        pass
    def row(fields, i, name=None, side=0.0):
        r = Row()
        for n, x in fields.items():
            setattr(r, n, np.float64(x[i] + (side if n == name else 0.0)))
        return r
    found = []
    for name in names:
        total = np.zeros(count)
        for i in range(count):
            for j in range(len(others["x"])):
                for left, right, place in ((name, None, i), (None, name, j)) if same else ((name, None, i),):
                    ends = [kernel.python(row(targets, i, left, s), row(others, j, right, s)) for s in (STEP, -STEP)]
                    total[place] += (ends[0] - ends[1]) / (2 * STEP)
        found.append(total)
    return found
"""


def _smooth(rng: Random, leaves: list[str], depth: int) -> str:
    """A function without kinks or poles, and of moderate slopes."""
    if depth <= 0 or rng.random() < 0.15:
        return rng.choice([*leaves, *leaves, "0.5", "1.25", "2.0"])
    a, b = _smooth(rng, leaves, depth - 1), _smooth(rng, leaves, depth - 1)
    forms = (
        f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / (2.0 + {b} * {b}))", f"lw.sin({a})", f"lw.cos({a})", f"lw.exp(-({a}) * ({a}))",
        f"lw.tanh({a})", f"lw.atan({a})", f"lw.sqrt(1.0 + {a} * {a})", f"lw.log(1.5 + {a} * {a})", f"(1.0 + {a} * {a}) ** 0.5", f"lw.fma({a}, {b}, {a})",
        f"lw.atan2({a}, 2.0 + {b} * {b})", f"lw.hypot(1.0, {a})", f"smooth({a}, {b})", f"lw.pow(1.5 + lw.tanh({a}), {b} * 0.25)", f"lw.mix({a}, {b}, 0.25)",
        f"lw.sinh(lw.tanh({a}))", f"lw.cbrt(2.0 + {a} * {a})", f"lw.rsqrt(1.0 + {a} * {a})", f"(-{a})", f"({a}) ** 2",
    )  # fmt: skip
    return rng.choice(forms)


def _body(rng: Random, leaves: list[str]) -> list[str]:
    """Some steps: variables, branches far from their kinks, loops of known and of unknown rounds. All that it may read
    has a derivative.
    """
    every = leaves
    # Numbers alone would make it an f32, which no f64 may be given to later.
    lines = [f"v: lw.f64 = {_smooth(rng, leaves, 3)}"]
    leaves = [*leaves, "lw.tanh(v)"]
    for _ in range(rng.randint(0, 3)):
        e = _smooth(rng, leaves, 2)
        lines += rng.choice((
            [f"v = {e}"], [f"v += lw.tanh({e})"], [f"if {leaves[0]} > 0.123456:", f"    v = {e}", "else:", f"    v -= {_smooth(rng, leaves, 1)}"],
            [f"for i in range({rng.randint(1, 3)}):", f"    v = lw.sin({e}) + 0.5 * v"],
            [f"v = {e} if {leaves[0]} < 0.654321 else {_smooth(rng, leaves, 1)}"],
            [f"k{len(lines)} = lw.i32(3)", f"while k{len(lines)} > 0:", f"    v = 0.5 * v + lw.tanh({e})", f"    k{len(lines)} -= 1"],
        ))  # fmt: skip
    return [*lines, f"return {rng.choice(('v', 'v * 2.0', 'lw.sin(v)'))} + 0.25 * ({' + '.join(every)})"]


def write(rng: Random) -> str:
    """One program."""
    names = ["x", "y", "z"][: rng.randint(1, 3)]
    helper = [
        "@lw.function",
        "def smooth(a, b):",
        f"    return {_smooth(rng, ['a', 'b'], 2).replace('smooth(', 'lw.fma(1.0, ')}",
        "",
        "",
    ]
    count = rng.choice((1, 3, 4))
    draw = f"np.random.default_rng({seed(rng)}).uniform(-1.5, 1.5"
    if rng.random() < 0.5:
        typed = ", ".join(f"{n}: lw.f64" for n in names)
        lines = _body(rng, names)
        data = f"[{draw}, ({len(names)}, {count}))[n] for n in range({len(names)})]"
        text = [
            "@lw.elementwise",
            f"def kernel({typed}) -> lw.f64:",
            *(f"    {x}" for x in lines),
            "",
            "",
            f"names, count, data = {names}, {count}, {data}",
        ]
        return "\n".join([*helper, *text]) + "\n" + EXPECTED + ELEMENT
    leaves = [f"{side}.{n}" for n in names for side in ("target", "source")]
    lines = _body(rng, ["(source.x - target.x)", *leaves])
    fields = lambda n: f"{{k: v for k, v in zip({names}, {draw}, ({len(names)}, {n})))}}"  # noqa: E731
    text = [
        "@lw.record", "class R:", *(f"    {n}: lw.f64" for n in names), "", "", "@lw.pairwise", "def kernel(target: R, source: R) -> lw.f64:",
        *(f"    {x}" for x in lines), "", "", f"names, count, same = {names}, {count}, {rng.random() < 0.5}", f"targets, sources = {fields(count)}, {fields(3)}",
    ]  # fmt: skip
    return "\n".join([*helper, *text]) + "\n" + EXPECTED + PAIR


PATTERN = Pattern("gradients", write)
