"""The default plans of stencils and threadwise kernels, from the tables of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lanewise.patterns.pairwise.build import LEAST_SIDE_BY_SIDE, SIDE_BY_SIDE
from lanewise.patterns.sitewise.pattern import BOX_PLANS, LEAST_MERGED
from lanewise.patterns.threadwise import host_plans, plans, priced
from lanewise.planning.plan import Plan

TITLE = "Default shapes"
ANCHOR = "default-shapes"
FEWER = f"below {plans.MANY_EDGED:,} points"

# kernels, and their plans in the order in which they are tried
ON_A_GPU: tuple[tuple[str, tuple[Plan, ...]], ...] = (
    ("products: a sum with two indices, whose factors share one of them each", plans.PRODUCTS),
    ("products of batches: the same with three indices", plans.BATCHES),
    ("a loop slides over an array (`a[y, x + j]`)", plans.WINDOWS),
    ("a loop reads neighbours of the point, three indices", plans.CHANNELS),
    ("transposes: threads read rows and write columns", (plans.TURNED_ROWS, *plans.TURNED)),
    ("neighbouring threads read elements that lie far apart", plans.APART),
    ("neighbouring threads read every second or third element", plans.STRIDED),
    ("neighbours in a plane", plans.NEAR),
    ("neighbours in a plane, with tests for edges", plans.STENCILS),
    (f"neighbours in a plane with costly edges, {FEWER}", (plans.EDGED,)),
    ("neighbours in a box", plans.LAYERS),
    (f"neighbours in a box with costly edges, {FEWER}", (plans.EDGED_BOX,)),
    ("all others", plans.STREAMS),
)
# kernels, and the plans that the model compares with that of the rules
BY_THE_MODEL: tuple[tuple[str, tuple[Plan, ...]], ...] = (
    ("all loops have fewer iterations than the tile", plans.LOOPS["short"]),
    ("fewer points than these plans need", plans.LOOPS["small"]),
    ("the end of a loop depends on the point", plans.OTHERS),
)
ON_A_CPU: tuple[tuple[str, tuple[Plan, ...]], ...] = (
    ("products, AVX-512", (host_plans.PRODUCT,)),
    ("products, AVX2", (host_plans.PRODUCT_OF_16,)),
    ("other loops that read the same in every row, two indices", (host_plans.WINDOW,)),
    ("the same, three indices", (host_plans.BATCH,)),
    ("one index and a loop", (host_plans.COLUMNS,)),
    ("one index without a loop; three indices with tests for edges", (host_plans.LINE,)),
    ("neighbours in a plane, AVX-512", (host_plans.NEAR_OF_512,)),
    ("neighbours otherwise; all that writes in the order of memory", (host_plans.NEAR,)),
    ("two indices, no neighbours", (host_plans.STREAM,)),
)


def section() -> Iterator[str]:
    """Lines of Markdown."""
    yield from (
        f"## {TITLE}",
        "",
        "The rules try the plans of a row in this order. They take the first one that is "
        "legal, gives every multiprocessor or core work, and has blocks that are at least half "
        "full. Fields that a plan leaves out are neutral. If you set `block` or a field about the "
        "shape yourself, the rules leave the other ones neutral. All numbers are for values of "
        "4 bytes unless the table says otherwise.",
        *_table(
            f"Stencils on a GPU, from {LEAST_MERGED:,} sites:", "axes", "bytes of a value", "plans"
        ),
    )
    for (rank, size), given in BOX_PLANS.items():
        yield f"| {rank} | {size} | {_plans(given)} |"
    yield from _table(
        "Threadwise kernels on a GPU. With values of 8 bytes `rows`, `targets` and `adjacent` are "
        "half as large. If no row of an array begins at a multiple of several elements, `adjacent` "
        "is 1.",
        "kernels",
        "plans",
    )
    for kernels, given in ON_A_GPU:
        yield f"| {kernels} | {_plans(given)} |"
    yield (
        f"| recurrences of {plans.LONG} iterations or more | `panel={plans.PANEL}`, and the plan "
        "of the sums ahead of a panel |"
    )
    yield from _table(
        "If a kernel has loops, the model sometimes compares the plan of the rules with others: it "
        f"takes one that it expects to be {priced.SURE:g} times as fast and to save "
        f"{priced.WORTH * 1e6:g} µs.",
        "when",
        "plans",
    )
    for when, given in BY_THE_MODEL:
        yield f"| {when} | {_plans(given)} |"
    wide, narrow = (host_plans.BYTES // 4 * bits // 512 for bits in (512, 256))
    yield from _table(
        f"Threadwise kernels on a CPU. `across` is the number of values in a SIMD register, {wide} "
        f"with AVX-512 and {narrow} with AVX2; neighbours take those of a line of memory, "
        f"{host_plans.BYTES // 4}. With values of 8 bytes it is half as large.",
        "kernels",
        "plans",
    )
    for kernels, given in ON_A_CPU:
        yield f"| {kernels} | {_plans(given)} |"
    columns, squares = (
        " or ".join(str(n // 4) for n in sizes) for sizes in (host_plans.POINTS, host_plans.TILES)
    )
    yield f"| a loop runs down columns | `unroll={host_plans.TOGETHER}`, `tile` {columns} |"
    yield f"| rows are another array's columns | `rows` as `across`, `tile` {squares} |"
    yield (
        f"| loops that points share | `slices` {host_plans.SEVERAL * wide} or {2 * wide}, "
        f"`tile={host_plans.KEPT}`; if points read the same elements "
        f"`targets={host_plans.SIDE_BY_SIDE}`, if loops write `targets={host_plans.BEHIND}` |"
    )
    yield (
        f"| loops of {host_plans.SHORT_NESTED} to {host_plans.SHORT - 1} rounds that write what a "
        f"loop inside gathers | `slices` {wide}, {2 * wide} or {host_plans.SEVERAL * wide} |"
    )
    yield from (
        "",
        "Pairs that a CPU computes [side by side](../reductions.md#reductions-of-pairs) have "
        f"`across={SIDE_BY_SIDE}`, from {LEAST_SIDE_BY_SIDE} targets.",
    )


def _table(about: str, *columns: str) -> tuple[str, ...]:
    """A paragraph, and the head of a table."""
    return "", about, "", f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)


def _plans(given: Iterable[Plan]) -> str:
    texts = [f"`{_text(p)}`" for p in given]
    if len(texts) == 1:
        return texts[0]
    return "<br>".join(f"{n}. {text}" for n, text in enumerate(texts, start=1))


def _text(plan: Plan) -> str:
    """The fields that are set."""
    said = {n: v for n, v in plan.as_dict().items() if v is not None}
    return ", ".join(f"{n}={v!r}" for n, v in said.items()).replace("'", '"') or "neutral"
