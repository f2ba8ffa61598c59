"""Old names work for one release, and say what to use instead."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import warnings
from pkgutil import resolve_name
from typing import Any

import pytest

import lanewise as lw
from lanewise.moved import MOVED
from lanewise.patterns.sitewise.fractions import WallFractions

# Names that earlier versions had in their documents, in `__all__` or in their benchmarks, and those by which their users annotate.
PUBLIC = {
    **{f"lanewise.search.{n}": f"lanewise.{n}" for n in (
        "AllPairs", "Bounded", "DynamicGrid", "Nearest", "Neighbors", "Open", "Periodic", "StaticGrid",
    )},
    "lanewise.search.Search": "lanewise.patterns.search.Search",
    "lanewise.search.World": "lanewise.patterns.search.World",
    "lanewise.search.worlds.Periodic": "lanewise.Periodic",
    "lanewise.search.ragged.Ragged": "lanewise.Ragged",
    "lanewise.search.queries.neighbors": "lanewise.neighbors",
    "lanewise.explanation.Bound": "lanewise.explanation.Bottleneck",
    "lanewise.layouts.choose_layout": "lanewise.choose_layout",
    "lanewise.layouts.Use": "lanewise.Use",
    "lanewise.layouts.LayoutChoice": "lanewise.LayoutChoice",
    "lanewise.layouts.uses.Use": "lanewise.Use",
    "lanewise.sites.fractions.WallFractions": "lanewise.patterns.sitewise.fractions.WallFractions",
    "lanewise.sites.array.Sites": "lanewise.patterns.sitewise.sites.Sites",
    "lanewise.sites.kinds.Wall": "lanewise.patterns.sitewise.kinds.Wall",
    "lanewise.kernels.elementwise.Elementwise": "lanewise.patterns.elementwise.kernel.Elementwise",
    "lanewise.kernels.elementwise.elementwise": "lanewise.elementwise",
    "lanewise.kernels.pairwise.Pairwise": "lanewise.patterns.pairwise.kernel.Pairwise",
    "lanewise.kernels.pairwise.pairwise": "lanewise.pairwise",
    "lanewise.kernels.sitewise.Sitewise": "lanewise.Sitewise",
    "lanewise.kernels.compiled.Call": "lanewise.launch.compiled.Call",
    "lanewise.kernels.compiled.Compiled": "lanewise.launch.compiled.Compiled",
    "lanewise.kernels.helper.function": "lanewise.function",
    "lanewise.kernels.arguments.bind_value_array": "lanewise.launch.arguments.bind_value_array",
    "lanewise.kernels.searched.structure_of": "lanewise.patterns.search.searched.structure_of",
    "lanewise.plot.flow.plot_flow": "lanewise.sims.lbm.view.flow.plot_flow",
    "lanewise.plot.flow.flow_title": "lanewise.sims.lbm.view.flow.flow_title",
    "lanewise.plot.gravity.plot_gravity": "lanewise.sims.gravity.view.plot_gravity",
    "lanewise.plot.reference.Reference": "lanewise.sims.lbm.view.slices.Reference",
    "lanewise.runtime.executable.build_executable": "lanewise.launch.executable.build_executable",
    "lanewise.runtime.launches.NamedLaunch": "lanewise.runtime.programs.NamedLaunch",
    "lanewise.sims.lbm.output.hdf5.read_flow": "lanewise.sims.lbm.files.read_flow",
    "lanewise.tuning.store.StoreWarning": "lanewise.launch.tuned_plans.StoreWarning",
}  # fmt: skip


def imported(old: str) -> tuple[Any, list[warnings.WarningMessage]]:
    """What `from module import name` gives, and the warnings."""
    module, _, name = old.rpartition(".")
    space: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(f"from {module} import {name} as found", space)
    return space["found"], seen


@pytest.mark.parametrize(("old", "new"), PUBLIC.items())
def test_an_old_name_is_the_new_one_and_says_so(old: str, new: str) -> None:
    found, seen = imported(old)
    assert found is resolve_name(new)
    assert {w.category for w in seen} == {DeprecationWarning}
    assert {str(w.message) for w in seen} == {f"{old} is now {new}; the old name goes with the next release"}
    assert {w.filename for w in seen} == {"<string>"}, "the line that uses the old name is the one to change"


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_the_table_leads_somewhere(old: str, new: str) -> None:
    """What is in the table is gone from its old place, and there in the new one."""
    module, _, name = old.rpartition(".")
    if module in sys.modules and module not in MOVED:
        assert name not in vars(sys.modules[module]) or type(sys.modules[old].__spec__.loader).__name__ == "Moved"  # pyright: ignore
    if new:
        assert resolve_name(new) is not None


def test_packages_that_are_gone_are_at_hand_as_they_were() -> None:
    """`lw.sites.fractions`, without an import of its own."""
    text = (
        "import warnings, lanewise as lw; warnings.simplefilter('ignore'); "
        "print(lw.sites.fractions.WallFractions.__module__, lw.kernels.pairwise.Pairwise.__name__, lw.search.StaticGrid is lw.StaticGrid)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["lanewise.patterns.sitewise.fractions", "Pairwise", "True"]


def test_what_was_pickled_under_an_old_name_is_read() -> None:
    old = pickle.dumps(WallFractions, protocol=0).replace(
        b"lanewise.patterns.sitewise.fractions", b"lanewise.sites.fractions"
    )
    assert b"lanewise.sites.fractions" in old
    with pytest.warns(DeprecationWarning, match=r"^lanewise\.sites\.fractions\.WallFractions is now "):
        assert pickle.loads(old) is WallFractions


def test_names_that_never_were_are_refused() -> None:
    for module in ("lanewise.search", "lanewise.kernels", "lanewise.kernels.pairwise", "lanewise.layouts", "lanewise"):
        with pytest.raises(AttributeError, match=rf"^module '{module}' has no attribute 'nothing'$"):
            importlib.import_module(module).nothing  # noqa: B018
    with pytest.raises(ImportError, match=r"^cannot import name '_build' from 'lanewise\.kernels\.pairwise'"):
        imported("lanewise.kernels.pairwise._build")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'lanewise\.kernels\.nothing'$"):
        importlib.import_module("lanewise.kernels.nothing")


def test_new_names_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lw.StaticGrid is resolve_name("lanewise.patterns.search.StaticGrid")
