"""Follow-up of candidates: from the grid of the hierarchical search to a coherent F-statistic of
all data, in stages.

`follow_up` refines candidates; `regrouped` makes longer stacks of short ones, `phase_metric` says
how fine a grid has to be, and `lattice` makes it.
"""

from lanewise.sims.waves.refinement.follow_up import FOLLOWED, follow_up
from lanewise.sims.waves.refinement.lattice import lattice
from lanewise.sims.waves.refinement.metric import phase_metric
from lanewise.sims.waves.refinement.stacks import regrouped, some_stacks

__all__ = ["FOLLOWED", "follow_up", "lattice", "phase_metric", "regrouped", "some_stacks"]
