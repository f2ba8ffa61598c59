"""Checkpoints of version 0.1 before files had sums: they resume to the same bits, and what is then written has sums.

How data/checkpoints were made: `gravity run --bodies 8 --softening 0.05 --dt 0.01 --steps 9 --diagnostics-every 1`,
`lbm run cavity --size 6 --steps 8 --no-until-steady`, `boids run --agents 8 --steps 9 --every 2`, each with --out.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.cli.command import Command

FOLDER = Path(__file__).parents[1] / "data" / "checkpoints"
BEGUN = {"gravity": 9, "lbm": 8, "boids": 9}
STATE = {"gravity": "PartType1", "lbm": "lanewise/state", "boids": "state"}
FRESH = {
    "gravity": ("--bodies", 8, "--softening", 0.05, "--dt", 0.01, "--diagnostics-every", 1),
    "lbm": ("cavity", "--size", 6, "--no-until-steady"),
    "boids": ("--agents", 8, "--every", 2),
}  # fmt: skip


OLDER = "note: parts.h5: the file is of an older version of lanewise, whose sums miss some damage; what it holds is taken as it is\n"


def unpack(product: str, to: str) -> None:
    Path(to).write_bytes(gzip.decompress((FOLDER / f"{product}.h5.gz").read_bytes()))


def datasets(path: str, group: str) -> dict[str, Any]:
    file: Any
    with h5py.File(path) as file:
        found = {n: a for n, a in file[group].items() if n not in ("step", "fresh")}
        return {n: (a.dtype, a.shape, np.asarray(a).tobytes()) for n, a in found.items()}


def without_sums(path: str) -> list[str]:
    """Names of datasets with values that have no sum, and of attributes with text in the heap."""
    bad: list[str] = []

    def visit(name: str, held: Any) -> None:
        if isinstance(held, h5py.Dataset) and (
            (held.size and not held.fletcher32) or "lanewise_crc32" not in held.attrs
        ):
            bad.append(name)
        bad.extend(
            f"{name}@{n}"
            for n in held.attrs
            if h5py.check_string_dtype(held.attrs.get_id(n).dtype) and held.attrs.get_id(n).get_type().is_variable_str()
        )

    with h5py.File(path) as file:
        visit("", file)
        file.visititems(visit)
    return bad


@pytest.mark.filterwarnings("always::lanewise.FileWarning")
@pytest.mark.parametrize("product", BEGUN)
def test_it_goes_on_to_the_same_bits(lanewise: Command, product: str) -> None:
    """In one part, and in two parts of which the second starts from a file of today."""
    unpack(product, "old.h5")
    unpack(product, "parts.h5")
    assert without_sums("old.h5")
    assert lanewise(product, "run", "--resume", "old.h5", "--steps", 6).code == 0
    for steps in (2, 4):
        outcome = lanewise(product, "run", "--resume", "parts.h5", "--steps", steps)
        assert (outcome.code, outcome.err) == (0, OLDER if steps == 2 else "")
    assert without_sums("parts.h5") == without_sums("old.h5") == []
    assert datasets("parts.h5", STATE[product]) == datasets("old.h5", STATE[product])
    if product == "boids":
        assert datasets("parts.h5", "trajectory") == datasets("old.h5", "trajectory")
        with h5py.File("parts.h5") as file:
            assert np.asarray(file["trajectory/step"]).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    # The start of such a run has the same bits on any machine; what follows has them on one like that which made the
    # file.
    begun = BEGUN[product]
    assert lanewise(product, "run", *FRESH[product], "--steps", begun, "--out", "begun.h5").code == 0
    unpack(product, "old.h5")
    if datasets("begun.h5", STATE[product]) == datasets("old.h5", STATE[product]):
        assert lanewise(product, "run", *FRESH[product], "--steps", begun + 6, "--out", "whole.h5").code == 0
        assert datasets("whole.h5", STATE[product]) == datasets("parts.h5", STATE[product])


@pytest.mark.filterwarnings("always::lanewise.FileWarning")
def test_walls_that_go_on_by_another_rule_say_so(lanewise: Command) -> None:
    """`lbm run karman --size 4 --steps 20 --out karman.h5` of the version before: links near the cylinder are cut
    before a quarter.
    """
    unpack("karman", "a.h5")
    outcome = lanewise("lbm", "run", "--resume", "a.h5", "--steps", 2)
    assert outcome.code == 0
    assert outcome.err.splitlines(keepends=True)[-1].startswith(
        "note: a.h5 is of an older version, in which links that a wall cuts before 0.25 reflected with less damping; they continue with the rule "
        "of today, and drag may change\n"
    )
    assert "older version" not in lanewise("lbm", "run", "--resume", "a.h5", "--steps", 2).err
