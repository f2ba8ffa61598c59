"""All that a step over sites launches: what is observed before it, the update, what corrects
populations behind it.

Each launch moves the bytes of the sites that it covers. Its time is that of its bytes at the rate
of the update, whose time is predicted (`models.roofline.step_time`), and on a GPU at least that of
a launch.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.explanation.launches import grid_of
from lanewise.explanation.report import LaunchRow
from lanewise.ir.names import COUNT
from lanewise.launch.tasks import Launch
from lanewise.models.devices import DeviceModel
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.interpolated_walls import CURVED
from lanewise.patterns.sitewise.outflow import OUTLET
from lanewise.patterns.sitewise.passes.runs import RUNS
from lanewise.patterns.sitewise.passes.splitting import PARTS
from lanewise.runtime.memory import to_host

LISTS = (RUNS, *(part.array for part in PARTS), CURVED, OUTLET)
"""Arrays of the sites that a kernel runs over: numbers of sites, or where rows of them begin and
end.
"""


def rows_of_step(
    update: SiteCall, calls: Sequence[SiteCall], seconds: float, device: DeviceModel
) -> tuple[LaunchRow, ...]:
    """A row for each launch of the calls of a step. seconds: of the update, which is one of
    them.
    """
    moved = sum(_bytes(update, launch)[1] for launch in update.executable.sequence.launches)
    rows: list[LaunchRow] = []
    for call in calls:
        own = call.executable is update.executable
        least = device.graph_launch_seconds if device.target.has_blocks and not own else 0.0
        for launch in call.executable.sequence.launches:
            touched, its = _bytes(call, launch)
            time = max(least, seconds * its / moved) if moved else None
            over, times = grid_of(launch, call.environment)
            rows.append(LaunchRow(launch.name, times, over, touched, time))
    return tuple(rows)


def _bytes(call: SiteCall, launch: Launch) -> tuple[int, int]:
    """Of the arrays that a launch touches for the sites that it covers, each once; and of what it
    reads and writes.
    """
    arrays = {a.name: a for a in launch.kernel.arrays}
    sites, touched, moved = _covered(call, launch), 0, 0
    for access in launch.accesses:
        if (bound := call.arrays.get(access.buffer)) is None:
            continue
        size = sum(leaf.type.size for leaf in arrays[access.buffer].leaves)
        nbytes = size * min(bound.count, sites)
        touched, moved = touched + nbytes, moved + nbytes * (access.reads + access.writes)
    return touched, moved


def _covered(call: SiteCall, launch: Launch) -> int:
    """How many sites a launch runs over."""
    names = {a.name for a in launch.kernel.arrays}
    listed = next((call.arrays[n] for n in LISTS if n in names), None)
    if listed is None:
        return int(call.environment[COUNT])
    columns = len(listed.arrangement.slots)
    if columns == 1:
        return listed.count
    kind = listed.arrangement.slots[0].type.dtype
    begins = to_host(listed.data).view(kind)[: columns * listed.count].reshape(-1, columns)
    return int((begins[:, 1] - begins[:, 0]).sum())
