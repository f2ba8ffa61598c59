"""Figures of documents that no result and no command gives, each with the reason."""

from __future__ import annotations

# (page, what of the line holds the figure): why.
SETTING = "a setting of the program, which its source has"
FIGURES: dict[tuple[str, str], str] = {
    ("gravity.md", "`median`, `99 %`, `largest`"): "a name",
    ("lbm.md", "above 2 % of the largest speed (`stagger`)"): SETTING,
    ("waves.md", "is promoted less often than 1 % of the time"): "follows from the probability that the program asks for",
    ("ladders.md", "until it lasts 50 ms (10 ms with `--quick`)"): SETTING,
    ("ladders.md", "23,300 s, more than 70 times the CPU's time; 95 % memory management"): "published in the thesis that the ladder follows",
    ("passes.md", "it saves at least 15 % of the work"): SETTING,
    ("search.md", "`.holds` says whether 99 % are within the accuracy"): "what the accuracy is said of",
    ("search.md", "A median error above 1 % or a 99 % error above 5 %"): SETTING,
    ("tuning.md", "0.5 % an axis"): SETTING,
    ("tuning.md", "The best five within 4 %"): SETTING,
    ("tuning.md", "is faster by 1 %"): SETTING,
    ("tuning.md", "One timing lasts at least 2 ms on a GPU (by events, around a graph of many launches) and 20 ms on a CPU. 30 ms of work"): SETTING,
}  # fmt: skip

# Commands of sections with figures that are not run: why.
LONG: dict[str, str] = {
    "lanewise lbm run cylinder --json ...": "no whole command; `tests/cli/test_documented_flows.py` runs the rows of its table",
    "lanewise ladder tree [--bodies N,N] [--quick] [--plot tree.png]": "no whole command",
    "lanewise gravity run --resume cluster.h5 --steps 50 --json": "goes on from the file of another one",
    "lanewise gravity run --resume galaxies.h5 --steps 500 --movie galaxies-2.mp4": "goes on from the file of another one",
    "lanewise gravity run --ic examples/galaxy_collision.py:collision --bodies 30000 --dt 0.05 --steps 800 --movie collision.mp4 "
    "--colour speed --show disc,bulge --width 52": "takes minutes",
    "lanewise explain": "no whole command",
    "lanewise ladder memory": "takes minutes",
    "lanewise tune gravity": "searches for two minutes",
    "lanewise tune boids --bodies 4000 --set world=30 --set k=7": "searches for two minutes",
    "lanewise tune lbm --case karman --set size=24": "searches for two minutes",
    "lanewise tune waves --bodies 100000 --set sfts=90": "searches for two minutes",
    "lanewise tune examples/tune_a_kernel.py:yukawa --bodies 8192 --set screening=0.5": "searches for two minutes",
}
