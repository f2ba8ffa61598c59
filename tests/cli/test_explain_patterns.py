"""`lanewise explain FILE:kernel` with kernels of every pattern: arrays are made up, and the user names their sizes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.explanation.offline import explained
from tests.cli import every_pattern as kernels
from tests.cli.command import Command
from tests.cli.test_explain import check
from tests.cli.test_user_errors import assert_refused

N = 4096


@dataclass(frozen=True)
class Case:
    """A kernel, what is asked of it, and what becomes of that. above: the text above the table."""

    name: str
    pattern: str
    counts: dict[str, int]
    sizes: dict[str, list[int]] = field(default_factory=dict[str, "list[int]"])
    options: str = ""
    above: str = ""


CASES = [
    Case("sorted_rows", "threadwise", {"points": N}, {"image": [64, 64], "least": [64, 64], "grid": [64, 64]}),
    Case("sorted_rows", "threadwise", {"points": 6000}, {"least": [60, 100], "grid": [60, 100]}, "--shape image=60x100"),
    Case("sorted_rows", "threadwise", {"points": 50}, {"image": [64, 64], "least": [64, 64]}, "--shape grid=5x10"),
    Case("deposit", "threadwise", {"points": 300}, {"cells": [500], "grid": [300]}, "--shape place=300 --shape mass=500"),
    Case("sorted_rows", "threadwise", {"points": 900}, {"grid": [30, 30]}, "--shape image=40x30 --shape least=30x40"),
    Case("shifted", "threadwise", {"points": 99}, {"grid": [99]}, "--shape a=100 --shape b=99"),
    Case("flat", "threadwise", {"points": 6}, {"a": [N]}, "--shape grid=2x3 --set width=3"),
    Case("diffuse", "elementwise", {"elements": N}),
    Case("looked_up", "elementwise", {"elements": N}, {"table": [64, 64]}),
    Case("looked_up", "elementwise", {"elements": 77}, {}, "--shape body=77 --shape table=9x3 --shape rate=77"),
    Case("scaled", "elementwise", {"elements": 600}, {}, "--shape x=20x30"),
    Case("pull", "pairwise", {"target": 100, "source": N}, {}, "--shape target=100"),
    Case("force", "pairwise", {"target": N, "source": N}, above="the gradient of pull with respect to target.position: one kernel"),
    Case("around", "search", {"target": N, "source": N}, above="neighbors: all within 0.1; 4,096 sources at random places, 32 of them within 0.1 on average (choose it with --near)"),
    Case("around", "search", {"target": N, "source": N}, {}, "--near 5", "places, 5 of them within 0.1 on average"),
    Case("boxed", "search", {"target": N, "source": N}, above="4,096 sources at random places, about 8.58 of them within 0.1"),
    Case("nearest", "search", {"target": N, "source": N}, above="over nearest: the 5 nearest; 4,096 sources at random places"),
    Case("power", "segmentwise", {"cells": 16 * N}, {"sample": [16, 32], "bins": [16]}),
    Case("power", "segmentwise", {"cells": 3000}, {}, "--shape body=100 --shape sample=10x3x90 --shape bins=40"),
    Case("power", "segmentwise", {"cells": 90 * N}, {"bins": [16]}, "--lists 90x2"),
    Case("power", "segmentwise", {"cells": 3000}, {}, "--lists 10x3x90 --shape body=100 --shape bins=40"),
    Case("flow", "sitewise", {"sites": N}, {"sites": [64, 64]}),
    Case("gray_scott", "sitewise", {"sites": N}, {"sites": [64, 64]}),
    Case("heat", "sitewise", {"sites": 120}, {}, "--shape sites=4x5x6 --shape source=4x5x6 --set dt=0.1"),
]  # fmt: skip


@pytest.fixture
def mine(lanewise: Command) -> Command:
    shutil.copy(kernels.__file__, "mine.py")
    return lanewise


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.name} {c.options}")
def test_explained_for_a_cpu(mine: Command, case: Case) -> None:
    outcome = mine("explain", f"mine.py:{case.name}", "--bodies", N, *case.options.split(), "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.last_json
    if case.above:
        assert case.above in found["search"]
        (found,) = found["kernels"]
    check(found)
    assert (found["pattern"], found["counts"], found["invented_shapes"]) == (case.pattern, case.counts, case.sizes)
    assert found["bound"]["predicted_seconds"] != 0


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.slow if c.options else [], id=f"{c.name} {c.options}") for c in CASES],
)
def test_sources_for_a_gpu_that_is_not_there(mine: Command, case: Case) -> None:
    options = ("--source", "cuda", "--arch", "sm_90", "--bodies", N, *case.options.split())
    outcome = mine("explain", f"mine.py:{case.name}", *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert 'extern "C" __global__' in outcome.out


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.name} {c.options}")
def test_explained_for_a_gpu_that_is_not_there(mine: Command, case: Case) -> None:
    options = ("--device", "cuda", "--arch", "sm_90", "--bodies", N, *case.options.split())
    found = mine("explain", f"mine.py:{case.name}", *options, "--json").last_json
    if case.above:
        (found,) = found["kernels"]
    check(found)
    assert (found["pattern"], found["counts"], found["invented_shapes"]) == (case.pattern, case.counts, case.sizes)
    assert found["resources"]["registers"] > 0
    text = mine("explain", f"mine.py:{case.name}", *options).out
    assert case.above in " ".join(text.split())
    assert ("sizes that were not given; choose them with --shape NAME=SIZES" in " ".join(text.split())) == bool(
        case.sizes
    )


def in_python(name: str) -> Any:
    """What Python compiles for arrays of the sizes that are made up."""
    square, row = np.ones((64, 64), np.float32), np.ones(N, np.float32)
    bodies = kernels.Body.array(position=np.ones((N, 3)), mass=np.ones(N))
    kernel: Any = getattr(kernels, name)
    match name:
        case "sorted_rows":
            return kernel.compile(square, square.copy(), 1.0, grid=square.shape)
        case "deposit":
            return kernel.compile(np.ones(N, np.int32), row, row.copy(), grid=N)
        case "diffuse":
            return kernel.compile(bodies, 1, 1.0, 1)
        case "looked_up":
            return kernel.compile(bodies, square, 1.0)
        case "pull" | "force":
            return kernel.compile(bodies, bodies, 0.01)
        case "power":
            samples = lw.ragged(kernels.Sample.array(time=np.ones(512), weight=np.ones(512)), counts=[32] * 16)
            return kernel.compile(bodies, samples, lw.ragged(np.ones(512 * 16, np.float32), counts=[16] * 512), 1.0)
        case "flow":
            sites = kernel.sites((64, 64))
            sites.step = 1
            return kernel.compile(sites, omega=1.0, rates=row)
        case "gray_scott":
            return kernel.compile(kernel.sites((64, 64)), feed=1.0)
        case _:
            box = (16, 16, 16)
            return kernel.compile(kernel.sites(box), conductivity=np.ones(box), dt=1.0, source=1.0)


WITHOUT_CALL = {"invented", "invented_shapes"}


@pytest.mark.parametrize(
    "name",
    [
        "sorted_rows",
        "deposit",
        "looked_up",
        "power",
        "gray_scott",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("diffuse", "pull", "force", "flow", "heat")),
    ],
)
def test_as_python_explains_a_call_of_these_sizes(name: str) -> None:
    (_, (made,)) = explained(getattr(kernels, name), N, "cpu")
    compiled = in_python(name)
    assert made.executable.source == compiled.source
    ours, theirs = (x.explain(measure_resources=False).as_dict() for x in (made, compiled))
    # of sites it is the call that has launches
    left_out = WITHOUT_CALL | ({"launches"} if ours["pattern"] == "sitewise" else set())
    for key in ours.keys() - left_out:
        assert ours[key] == theirs[key], key


def test_nothing_is_allocated_for_arrays_that_nobody_reads() -> None:
    (_, (made,)) = explained(kernels.pull, 10**12, "cuda", arch="sm_90")
    assert made.subject.counts == {"target": 10**12, "source": 10**12}


def test_rows_of_arrays_on_a_gpu_begin_where_wide_accesses_may() -> None:
    """Kernels have no sizes but whether rows are a multiple of what one access reads."""
    even, other, odd = (
        explained(kernels.sorted_rows, N, "cuda", arch="sm_90", shapes={"image": shape})[1][0].subject.reference
        for shape in ((64, 64), (128, 128), (64, 63))
    )
    assert even == other
    assert even != odd


LIST = "mine.py:NAME, with one of around, both, boxed, deposit, diffuse, flat, flow, force, gray_scott, gridded, heat, looked_up, nearest, parts, power, pull, scaled, shifted, sorted_rows"
ROWS = (
    "    def sorted_rows(y: lw.index, x: lw.index, image: lw.Array2[lw.f32], least: lw.Array2[lw.f32], edge: lw.f32):\n"
)
POWER = "    def power(body: Body, sample: Sample, bins: lw.Row[lw.f32], width: lw.f32) -> lw.f32:\n"
REFUSED = [
    ("sorted_rows --shape image", "--shape image: wanted NAME=SIZES, as in --shape a=512x512"),
    ("sorted_rows --shape image=5x", "--shape image=5x: wanted NAME=SIZES, as in --shape a=512x512"),
    ("sorted_rows --shape image=5x0", "--shape image=5x0: wanted sizes from 1 on"),
    ("sorted_rows --shape image=5x5 --shape image=6x6", "--shape image=6x6: image is set twice"),
    ("sorted_rows --shape imag=5x5", "sorted_rows has no array 'imag' to give a shape; did you mean 'image'? it has image, least, grid"),
    ("sorted_rows --shape edge=5", "sorted_rows: 'edge' is one f32 for all, which --set edge=VALUE gives; it has no shape"),
    ("scaled --shape x=5 --set x=1", "scaled: 'x' has a value and a shape; wanted one of them: a value for all, or an array"),
    (
        "sorted_rows --shape image=5",
        f"{{file}}:13:43: 'image' is an lw.Array2[lw.f32]\n{ROWS}{' ' * 46}{'^' * 24}\n  found: --shape image=5\n  wanted: 2 sizes: --shape image=512x512",
    ),
    (
        "sorted_rows --shape grid=5",
        f"{{file}}:13:17: 'grid' says how many values y, x have\n{ROWS}{' ' * 20}{'^' * 11}\n  found: --shape grid=5\n  wanted: 2 sizes: --shape grid=512x512",
    ),
    (
        "flat",
        "{file}:35:10: nothing says how many values 'y' has\n    def flat(y: lw.index, x: lw.index, width: lw.i32, a: lw.Array1[lw.f32]):\n"
        f"{' ' * 13}{'^' * 11}\n"
        "  found: no element of an array whose index is y itself, and no grid\n"
        "  wanted: --shape grid=512x512, with the sizes of a call's grid=",
    ),
    (
        "shifted --bodies 100",
        "{file}:31:12: shifted: 'a' is read outside of its elements\n    b[i] = a[i + 1]\n           ^^^^^^^^\n"
        "  found: the index goes from 1 to 100 with grid=100, and 'a' has the shape (100,)\n"
        "  wanted: 0 to 99\n  hint: arrays and a grid that fit each other, or a condition around the access\n"
        "  made up: a 100, b 100, grid 100: sizes that were not given; choose them with --shape NAME=SIZES",
    ),
    (
        "power --shape sample=90",
        f"{{file}}:81:23: 'sample' is lw.ragged(...) of Sample\n{POWER}{' ' * 26}{'^' * 14}\n  found: --shape sample=90\n"
        "  wanted: how many lists each level has, and how many items each of them: --shape sample=1000x90",
    ),
    *((f"power --lists {sizes}", f"--lists {sizes}: wanted how many lists each level has, and how many items each of them, "
       "from 1 on, as in --lists 1000x90") for sizes in ("90", "90x", "90x0", "sample=90x2")),
    ("power --lists 90x2 --shape sample=9x2", "--lists 90x2: --shape also sets the sizes of sample"),
    ("pull --lists 90x2", "--lists 90x2 is of kernels of @lw.segmentwise, and pull runs over no lists; --shape NAME=SIZES gives "
     "an array its sizes"),
    ("heat --shape sites=5x5", "--shape sites=5x5: sites of D3Q7 have the shape (nz, ny, nx): wanted --shape sites=512x512x512"),
    ("heat --shape dt=5x5x5", "--shape dt=5x5x5: a value that is one per site has the shape of the sites: wanted --shape dt=25x25x25"),
    ("heat --shape conductivity=5x5x5", "--shape conductivity=5x5x5: conductivity is a field of the sites, which has their shape: leave it out"),
    ("flow --shape rates=5x5", "--shape rates=5x5: rates is an lw.Array1[lw.f32]: wanted one size, as in --shape rates=16384"),
    ("flow --shape sties=5x5", "flow has no array 'sties' to give a shape; did you mean 'sites'? it has sites, omega, rates"),
    ("pull --near 5", "--near says how many sources lie within the radius of a search, and pull runs over none"),
    ("around --near 0", "--near 0: wanted a number of sources above 0"),
    ("nearest --near 5", "--near says how many sources lie within the radius of a search; this one has none (nearest: the 5 nearest)"),
    ("boxed --near 5", "--near says how many sources lie within the radius of a search; in a world with borders it follows from the number of elements: choose --bodies"),
    ("density", "mine.py: density is an observer, which looks at sites and has no plan; explain the kernel whose sites it looks at"),
    ("smoothstep", f"mine.py: smoothstep is a helper, which is written into the kernels that call it; wanted {LIST}"),
    ("plain", "mine.py: plain is a plain function, and a kernel has a decorator: @lw.pairwise, @lw.elementwise, @lw.threadwise, "
     f"@lw.segmentwise, @lw.sitewise(lattice) or @lw.stencil(lattice); wanted {LIST}"),
    ("number", f"mine.py: number is no kernel, found int 7; wanted {LIST}"),
    ("pul", f"mine.py has no kernel 'pul'; did you mean 'pull'? wanted {LIST}"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[o for o, _ in REFUSED])
def test_refused(mine: Command, options: str, message: str) -> None:
    name, *more = options.split()
    outcome = mine("explain", f"mine.py:{name}", *more)
    assert_refused(outcome, message.replace("{file}", str(Path("mine.py").resolve())))


@pytest.mark.parametrize("command", ["explain", "tune"])
def test_products_have_no_arrays_to_give_a_shape(lanewise: Command, command: str) -> None:
    assert_refused(
        lanewise(command, "gravity", "--shape", "a=5"),
        "--shape belongs to kernels of files, and gravity is a product",
    )
    assert_refused(
        lanewise(command, "waves", "--lists", "9x5"), "--lists belongs to kernels of files, and waves is a product"
    )
    assert_refused(
        lanewise(command, "boids", "--near", "5"), "--near belongs to kernels of files, and boids is a product"
    )


def test_the_conditions_of_branch_splitting_are_told(lanewise: Command, tmp_path: Path) -> None:
    """Those of the LBM paper, for a threadwise kernel whose sides differ."""
    (tmp_path / "sides.py").write_text(
        "import lanewise as lw\n\n\n@lw.threadwise\n"
        "def sides(i: lw.index, mask: lw.Array1[lw.i32], a: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):\n"
        "    if mask[i] == 0:\n        r[i] = a[i]\n    else:\n        r[i] = lw.sqrt(a[i]) / lw.exp(a[i])\n"
    )
    said = " ".join(lanewise("explain", "sides.py:sides", "--device", "cuda", "--all").out.split())
    for text in (
        "by eq. 1 of the LBM paper; its conditions:",
        "occupancy below 100 %: ",
        "two major branches: ",
        "unequal resources: ",
    ):
        assert text in said
