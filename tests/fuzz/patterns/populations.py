"""Populations: elements that live, die and multiply for some steps, against lists of ordinary records; no id is ever
given twice.
"""

from __future__ import annotations

from random import Random

from lanewise.language import types as t
from tests.fuzz.patterns.written import Pattern, array, layout, traits
from tests.fuzz.programs import NAMES, Block, Writer, indented

RUN = """

of_one_call = False

def run(device, plan=None):
    with lw.device(device):
        population = lw.Population(R.array(device=device, layout=layouts[device == "python"], **start), ids="id")
        told = []
        for step in range(steps):
            turnover = population.step(kernel, np.int32(step), newborn=begin if renewed else None, plan=plan)
            told += [turnover.kept, turnover.died, turnover.born, population.next_id]
            if len(population) > 200 or not len(population):
                break
        return off([population.records, np.array(told)])


def called(device):
    return kernel, [R.array(device=device, layout=layouts[0], **start)], dict(step=np.int32(0))


def expected():
    class Row:
        pass
    rows, told, given = [], [], start["id"].max() + 1
    for i in range(len(start["id"])):
        row = Row()
        for n, x in start.items():
            setattr(row, n, x[i])
        rows.append(row)
    ever = {int(r.id) for r in rows}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for step in range(steps):
            fates = [int(kernel.python(r, np.int32(step))) for r in rows]
            for r in rows:
                for n, x in start.items():
                    setattr(r, n, x.dtype.type(getattr(r, n)))
            children = []
            for r, fate in zip(rows, fates):
                if fate == 2:
                    child = Row()
                    child.__dict__.update(r.__dict__)
                    child.id = np.int64(given)
                    assert given not in ever
                    ever.add(given)
                    given += 1
                    if renewed:
                        begin.python(child)
                    children.append(child)
            kept = [r for r, fate in zip(rows, fates) if fate]
            told += [len(kept), len(rows) - len(kept), len(children), given]
            rows = kept + children
            if len(rows) > 200 or not rows:
                break
    return [np.array([getattr(r, n) for r in rows], x.dtype) for n, x in start.items()] + [np.array(told)]
"""


def write(rng: Random) -> str:
    """One program."""
    w = Writer(rng, traits(rng, plain=1.0, vectors=0.0, pattern="elementwise"))
    fields: dict[str, t.ValueType] = {f"f{n}": w.scalar() for n in range(rng.randint(1, 3))} | {"id": t.I64}
    helpers = [line for _ in range(rng.choice((0, 1))) for line in w.helper()]
    b = Block(
        {}, {"e.id": t.I64, "step": t.I32}, fields={f"e.{n}": k for n, k in fields.items() if n != "id"}, leaves=True
    )
    w.budget = rng.choice((15, 30))
    lines = [line for line in w.block(b, rng.randint(1, 3), ()) if line.strip() != "return"] or ["pass"]
    lines = [
        line + (" pass" if line.endswith(":") and not _indented_next(lines, n) else "") for n, line in enumerate(lines)
    ]
    w.budget = 20
    fates = ["DIE", "KEEP", "SPLIT"]
    rng.shuffle(fates)
    lines += [
        f"if {w.condition(b, 2)}:", f"    return lw.Fate.{fates[0]}", f"if (e.id + lw.i64(step)) % 3 == {rng.randrange(3)}:", f"    return lw.Fate.{fates[1]}",
        f"return lw.Fate.{fates[2]} if {w.condition(b, 1)} else lw.Fate.KEEP",
    ]  # fmt: skip
    first = rng.choice(list(fields))
    first = "f0" if first == "id" else first
    count = rng.choice((1, 3, 8, 13))
    start = ", ".join(
        [f"{n}={array(rng, k, f'({count},)')}" for n, k in fields.items() if n != "id"] + [f"id=np.arange({count})"]
    )
    text = [
        "@lw.record", "class R:", *indented([f"{n}: {NAMES[k]}" for n, k in fields.items()]), "", "", *helpers, "", "",
        "@lw.elementwise", "def kernel(e: R, step: lw.i32) -> lw.Fate:", *indented(lines), "", "",
        "@lw.elementwise", "def begin(e: R):", f"    e.{first} = {w.literal(fields[first])}", "", "",
        f"start, steps, renewed = dict({start}), {rng.randint(1, 4)}, {rng.random() < 0.5}",
        f"layouts = [{layout(rng, fields)}, None]",
    ]  # fmt: skip
    return "\n".join(text) + "\n" + RUN


def _indented_next(lines: list[str], n: int) -> bool:
    """Whether a block that a line begins has lines."""
    here = len(lines[n]) - len(lines[n].lstrip())
    return n + 1 < len(lines) and len(lines[n + 1]) - len(lines[n + 1].lstrip()) > here


PATTERN = Pattern("populations", write)
