"""Figures of documents that no result, command or test gives, each with the reason."""

from __future__ import annotations

# (page, what of the line holds the figure): why.
SETTING = "a setting of the program, which its source has"
PUBLISHED = "published in the thesis that the ladder follows"
NAME = "a name of what is measured, no measurement"
FIGURES: dict[tuple[str, str], str] = {
    ("determinism.md", "u = 2⁻²⁴ = 6e-8 in float32, 2⁻⁵³ = 1.1e-16 in float64"): "half of the steps of the types at 1",
    ("explain.md", "or 5 ms on a CPU"): "SHORTEST of models/deviations.py",
    ("explain.md", "predicted 27.9 ms"): "`lanewise explain matmul.py:matmul --device cuda` with 8192 x 8192 predicts it",
    ("gravity.md", "every initial condition conserves energy to 1e-3"): "`test_defaults.py` asks for no warning, which comes above it",
    ("gravity.md", "an accuracy that the precision does not have (1e-5 in float32, 1e-12 in float64)"): SETTING,
    ("gravity.md", "the error that 99 % are below"): NAME,
    ("gravity.md", "`median`, `99 %`, `largest`"): NAME,
    ("gravity.md", "an `energy_error` above 1e-3"): SETTING,
    ("gravity.md", "the command line warns of above 1e-3"): SETTING,
    ("gravity.md", "by default 97 % of the bodies of the first frame"): SETTING,
    ("threadwise-plans.md", "and saves at least 10 µs"): SETTING,
    ("passes.md", "an occupancy below 100 %, two major branches"): SETTING,
    ("lbm.md", "above 2 % of the largest speed a warning"): SETTING,
    ("lbm.md", "by more than 1e-9 in float64, 1e-4 in float32, or 1 % in float16"): SETTING,
    ("lbm.md", "the warning then comes at 5 %"): SETTING,
    ("lbm.md", "it is 10 % too large at Re = 100"): "follows from the rows below it: 2.74 for 2.46 to 2.50",
    ("lbm_obstacles_units.md", "(at least 1e-6 of a link)"): SETTING,
    ("waves.md", "noise is promoted less than 1 % of the time"): "follows from the probability that the program asks for",
    ("waves.md", "before LALPulsar rounds it to 120 ns"): "half of the step of float64 at a GPS time, 2^-22 s",
    ("waves.md", "a phase of 1.1e-3 rad at 731 Hz"): "follows: 2 pi x 731 Hz x 2^-22 s",
    ("waves.md", "a resolution of 2e-13 Hz at 1 kHz"): "the step of float64",
    ("ladders.md", "until it lasts 50 ms (10 ms with `--quick`)"): SETTING,
    ("ladder-memory.md", "the tolerance is 1e-6"): SETTING,
    ("ladder-tutorial.md", "| `hybrid, 10 % on the CPU` |"): NAME,
    ("ladder-tutorial.md", "the tutorial has 261.1 and 88.7 GFLOP/s next to"): PUBLISHED,
    ("ladder-tutorial.md", "as the tutorial's 32, 63 and 99 %"): PUBLISHED,
    ("ladder-lbm.md", "1e-4 of the largest population, 2e-2 with float16"): SETTING,
    ("ladder-boids.md", "The tolerance is 1e-4 of the largest change"): SETTING,
    ("ladder-waves.md", "The tolerance is 1e-4 of the largest amplitude"): SETTING,
    ("ladder-lbm.md", "above 100 % if the box fits the caches"): NAME,
    ("ladder-boids.md", "three runs of at least 30 ms"): SETTING,
    ("ladder-compiler.md", "launches a kernel repeatedly for 15 ms (10 ms with `--quick`)"): SETTING,
    ("ladder-tree.md", "A rung whose 99 % error is"): NAME,
    ("ladder-tree.md", "| median error | 99 % |"): NAME,
    ("ladder-tree.md", "The fastest trees within 1e-2, 1e-3 and 1e-4"): SETTING,
    ("ladder-tree.md", "errors within 1e-2, 1e-3 and 1e-4"): SETTING,
    ("ladder-boids.md", "the static grid is 35 times as fast as all pairs"): PUBLISHED,
    ("ladder-boids.md", "constant memory gains at most 2 %"): PUBLISHED,
    ("ladder-boids.md", "3-D around is 1.15 times as fast"): PUBLISHED,
    ("ladder-boids.md", "11,152 (1-D, 40.5 %) and 9,821 (3-D, 37.5 %)"): PUBLISHED,
    ("ladder-waves.md", "23,300 s, more than 70 times the CPU's time; 95 % memory management"): PUBLISHED,
    ("layouts.md", "in 1e9 pairs/s:"): "a unit",
    ("layouts.md", "gains less than 5 % over the current layout"): SETTING,
    ("passes.md", "that saves at least 15 % of the work"): SETTING,
    ("far-fields.md", "`.holds` tells whether 99 % are within the requested accuracy"): "what the accuracy is said of",
    ("far-fields.md", "A median error above 1 % or a 99 % error above 5 %"): SETTING,
    ("far-fields.md", "float32, 1e-12 in float64"): SETTING,
    ("far-fields.md", "1e-5 in float32"): SETTING,
    ("far-fields.md", "5 for less than 3e-4"): SETTING,
    ("far-fields.md", "An opening is acceptable if 99 % of them"): SETTING,
    ("ladder-gravity-mesh.md", "100 % means twice as fast on two"): NAME,
    ("tuning.md", "Plans that take 1.5 times as long"): SETTING,
    ("tuning.md", "0.5 % per axis"): SETTING,
    ("tuning.md", "The best five within 4 %"): SETTING,
    ("tuning.md", "is faster by 1 %"): SETTING,
    ("tuning.md", "One timing lasts at least 2 ms on a GPU (by events, around a graph of many launches) and 20 ms on a CPU. A warm-up of 30 ms"): SETTING,
}  # fmt: skip

# Commands beside figures whose output is compared elsewhere: where.
COMPARED: dict[str, str] = {
    "lanewise explain gravity --device cuda --bodies 524288": "tests/test_said.py",
}

# Commands beside figures that are not run: why.
LONG: dict[str, str] = {
    "lanewise gravity run --ic examples/galaxy_collision.py:collision --bodies 30000 --dt 0.05 --steps 800 --movie collision.mp4 "
    "--colour speed --show disc,bulge --width 52": "takes minutes on a CPU",
    "lanewise tune examples/tune_a_kernel.py:yukawa --bodies 8192 --set screening=0.5": "searches for a minute, and prints times alone",
}
