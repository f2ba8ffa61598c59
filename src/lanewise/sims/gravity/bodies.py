"""Bodies as record arrays: particles in a precision, a layout and a place."""

from __future__ import annotations

from typing import Any

import lanewise as lw
from lanewise.io.particles import Particles
from lanewise.layouts import default_layout
from lanewise.profiling.profile import Profile, span
from lanewise.sims.common.checks import check_known
from lanewise.sims.common.devices import first_of, place_of
from lanewise.sims.common.meshes import require_divided
from lanewise.sims.gravity.checks import check_range
from lanewise.sims.gravity.physics import RECORDS
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted


@checked(InputError)
def make_bodies(
    particles: Particles,
    *,
    precision: str = "f32",
    layout: lw.Layout | None = None,
    device: str | lw.Mesh | None = None,
    profile: Profile | None = None,
) -> lw.RecordArray:
    """Make a record array from `Particles` (float64 arrays on the host), in this precision and
    layout, on a device or mesh.
    """
    check_known("precision", precision, RECORDS)
    where = place_of(device)
    cls: Any = RECORDS[precision]
    record = cls.__record__
    layout = layout or default_layout(record, first_of(where))
    if precision == "f32":
        check_range(particles)
    count = len(particles.mass)
    nbytes = layout.arrange(record.leaves).nbytes(count)
    row = 24 + -(-nbytes // max(1, count))
    require_divided(where, count, row, f"a simulation of {counted(count, 'body', 'bodies')}")
    with span(profile, "transfer", name="bodies to the device", nbytes=nbytes):
        bodies: lw.RecordArray = cls.array(
            position=particles.position,
            mass=particles.mass,
            velocity=particles.velocity,
            layout=layout,
            device=where,
        )
    return bodies
