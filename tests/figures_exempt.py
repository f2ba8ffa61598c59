"""Figures of documents that no result and no command gives, each with the reason; pages that are not looked at yet."""

from __future__ import annotations

PAGES: dict[str, str] = dict.fromkeys(
    ("lbm.md", "lbm_obstacles_units.md", "gravity.md", "waves.md", "flocks.md"), "is being rewritten"
)

# (page, what of the line holds the figure): why.
SETTING = "a setting of the program, which its source has"
FIGURES: dict[tuple[str, str], str] = {
    ("ladders.md", "until it lasts 50 ms (10 ms with `--quick`)"): SETTING,
    ("ladders.md", "23,300 s, more than 70 times the CPU's time; 95 % memory management"): "published in the thesis that the ladder follows",
    ("passes.md", "it saves at least 15 % of the work"): SETTING,
    ("tuning.md", "0.5 % an axis"): SETTING,
    ("tuning.md", "The best five within 4 %"): SETTING,
    ("tuning.md", "is faster by 1 %"): SETTING,
    ("tuning.md", "One timing lasts at least 2 ms on a GPU (by events, around a graph of many launches) and 20 ms on a CPU. 30 ms of work"): SETTING,
}  # fmt: skip

# Commands of sections with figures that are not run: why.
LONG: dict[str, str] = {
    "lanewise explain": "no whole command",
    "lanewise ladder memory": "takes minutes",
    "lanewise tune gravity": "searches for two minutes",
    "lanewise tune boids --bodies 4000 --set world=30 --set k=7": "searches for two minutes",
    "lanewise tune lbm --case karman --set size=24": "searches for two minutes",
    "lanewise tune waves --bodies 100000 --set sfts=90": "searches for two minutes",
    "lanewise tune examples/tune_a_kernel.py:yukawa --bodies 8192 --set screening=0.5": "searches for two minutes",
}
