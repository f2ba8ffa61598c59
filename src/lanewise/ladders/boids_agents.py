"""Numbers of agents as an axis: steps a second of every search over 2^12 agents and more, as the
thesis's figures 7.1 to 7.3 have them.

The ladder itself measures that, and its picture has this axis.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ladders.boids import LADDER as EVERY_SEARCH

LADDER = replace(EVERY_SEARCH, name="boids agents")
