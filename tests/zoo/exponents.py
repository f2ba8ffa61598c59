"""The logarithm of a sum of exponentials, of rows, columns and products, in the ways in which people write it."""

from __future__ import annotations

from random import Random

from tests.zoo.generate import Case, Shapes, length_near
from tests.zoo.texts import floats, kernel_text

FORMS = {
    "plain": ["s = 0.0", "{loop}", "    s += lw.exp({e})", "{r} = lw.log(s)"],
    "twice": [
        "m = {first}", "{loop}", "    m = lw.max(m, {e})", "s = 0.0", "{loop}", "    s += lw.exp({e} - m)",
        "{r} = m + lw.log(s)",
    ],
    "test": [
        "m = {first}", "{loop}", "    if {e} > m:", "        m = {e}", "s = 0.0", "{loop}",
        "    s = s + lw.exp({e} - m)", "{r} = lw.log(s) + m",
    ],
    "branch": [
        "m = -1e30", "s = 0.0", "{loop}", "    q = {e}", "    if q > m:", "        s = s * lw.exp(m - q) + 1.0",
        "        m = q", "    else:", "        s += lw.exp(q - m)", "{r} = m + lw.log(s)",
    ],
    "running": [
        "m = -1e30", "s = 0.0", "{loop}", "    q = lw.max(m, {e})", "    s = s * lw.exp(m - q) + lw.exp({e} - q)",
        "    m = q", "{r} = m + lw.log(s)",
    ],
    "pairs": [
        "s = -1e30", "{loop}", "    q = {e}", "    s = lw.max(s, q) + lw.log1p(lw.exp(-abs(s - q)))", "{r} = s",
    ],
}  # fmt: skip
PLACES = {
    "rows": ("y", {"a": 2, "r": 1}, "a.shape[1]", ("4.0 * a[y, k]", "a[y, k] * a[y, k]", "-abs(a[y, k])"), "r[y]"),
    "weights": ("y", {"a": 2, "b": 1, "r": 1}, "a.shape[1]", ("a[y, k] + b[k]", "3.0 * a[y, k] * b[k]"), "r[y]"),
    "columns": ("x", {"a": 2, "r": 1}, "a.shape[0]", ("4.0 * a[k, x]", "a[k, x]"), "r[x]"),
    "channels": ("yx", {"a": 3, "r": 2}, "a.shape[0]", ("4.0 * a[k, y, x]",), "r[y, x]"),
    "products": ("yx", {"a": 2, "b": 2, "r": 2}, "a.shape[1]", ("a[y, k] + b[k, x]", "a[y, k] * b[x, k]"), "r[y, x]"),
}


def row(seed: int, rng: Random) -> Case:
    """One of these forms; sometimes every element less it, which is the logarithm of a soft maximum."""
    form, place = rng.choice(tuple(FORMS)), rng.choice(tuple(PLACES))
    threads, ranks, long, terms, r = PLACES[place]
    e, deep = rng.choice(terms), rng.choice((5, 64, 1000))
    whole = place == "rows" and rng.random() < 0.4
    loop = f"for k in range({long}):"
    given = {"loop": loop, "e": e, "first": rng.choice(("-1e30", e.replace("k", "0"))), "r": "t" if whole else r}
    body = [line.format(**given) for line in FORMS[form]]
    if whole:
        body, ranks = [*body, loop, f"    r[y, k] = {e} - t"], {"a": 2, "r": 2}
    odd = [Random(seed + n) for n in range(2)]

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        k = max(3, min(deep, points // 4))
        m = length_near(odd[0], max(3, points // k if len(threads) == 1 else int(points**0.5)))
        n = length_near(odd[1], max(3, int(points**0.5)))
        if place == "channels":
            k = min(k, 16)
        sizes = {
            "rows": {"a": (m, k), "r": (m, k) if whole else (m,)},
            "weights": {"a": (m, k), "b": (k,), "r": (m,)},
            "columns": {"a": (k, m), "r": (m,)},
            "channels": {"a": (k, m, n), "r": (m, n)},
            "products": {"a": (m, k), "b": (n, k) if "b[x" in e else (k, n), "r": (m, n)},
        }[place]
        return sizes, (m,) if len(threads) == 1 else (m, n)

    return Case(seed, "exponents", kernel_text(threads, floats(**ranks), body), shapes)
