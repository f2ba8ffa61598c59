"""Work units of the hierarchical search: independent parts, run by one process or by many, each
resumed where it was left.

`Job` is what is searched, and on which device; `search_in_units` divides it, runs its units, checks
what they found and merges it into one list, which is the same whatever the number of units,
workers, kills and resumes.
"""

from lanewise.sims.waves.units.checkpoint import State, read_state, write_state
from lanewise.sims.waves.units.job import Job, Ready, differences
from lanewise.sims.waves.units.partition import Unit, divide
from lanewise.sims.waves.units.run import (
    SECONDS,
    Found,
    Opened,
    Workers,
    forget,
    has_checkpoints,
    opened,
    search_in_units,
)
from lanewise.sims.waves.units.validation import validate

__all__ = [
    "SECONDS",
    "Found",
    "Job",
    "Opened",
    "Ready",
    "State",
    "Unit",
    "Workers",
    "differences",
    "divide",
    "forget",
    "has_checkpoints",
    "opened",
    "read_state",
    "search_in_units",
    "validate",
    "write_state",
]
