"""A unit's process that says what it does (see `stand_in`)."""

from __future__ import annotations

import sys
from pathlib import Path

from lanewise.sims.units import child
from tests.sims.units.stand_in import take_part

if __name__ == "__main__":
    take_part(Path(sys.argv[3]).stem)
    child.main()
