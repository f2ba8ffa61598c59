"""Work units of any product: a run for every point of a scan of parameters, in one folder, that
continues from wherever it was left.

`Scan` is what is computed; `compute` has its units done by processes of this machine or of a
cluster, `status` reads how far they are. Results do not depend on who computed them when, to the
byte.
"""

from lanewise.sims.units.axes import Axis, axis_of
from lanewise.sims.units.coordinator import Done, compute, opened
from lanewise.sims.units.scan import Scan, ScanUnit, read_scan
from lanewise.sims.units.status import UnitState, status

__all__ = [
    "Axis",
    "Done",
    "Scan",
    "ScanUnit",
    "UnitState",
    "axis_of",
    "compute",
    "opened",
    "read_scan",
    "status",
]
