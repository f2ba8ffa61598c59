"""GPS times: int64 nanoseconds, which are exact, since 1980-01-06 00:00:00 UTC."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.support.checks import checked, host_array, shown
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral

Times = NDArray[np.int64]
SECOND = 1_000_000_000  # nanoseconds
# of times, and -LATEST the earliest: their differences are int64 as well
LATEST = 4_000_000_000 * SECOND

LEAPS = (
    46_828_800,
    78_364_801,
    109_900_802,
    173_059_203,
    252_028_804,
    315_187_205,
    346_723_206,
    393_984_007,
    425_520_008,
    457_056_009,
    504_489_610,
    551_750_411,
    599_184_012,
    820_108_813,
    914_803_214,
    1_025_136_015,
    1_119_744_016,
    1_167_264_017,
)
"""GPS seconds at which leap seconds began (23:59:60 UTC).

From then on UTC is one more second behind.

IERS Bulletin C; none was announced after 2017-01-01.
"""


@checked(InputError)
def gps_time(seconds: float) -> int:
    """A time in GPS seconds as nanoseconds, rounded to the nearest.

    A float resolves 0.1 to 0.2 microseconds today; an int is exact.

    Raises InputError for what is no number of seconds, and beyond 4e9 seconds, 127 years.
    """
    if not abs(seconds) <= LATEST // SECOND:
        raise InputError(f"gps_time({numeral(seconds)}): wanted GPS seconds, from -4e9 to 4e9")
    whole = math.floor(seconds)
    return whole * SECOND + round((seconds - whole) * SECOND)


@checked(InputError)
def leap_seconds(times: ArrayLike) -> NDArray[np.int64]:
    """GPS minus UTC in seconds, at GPS times in nanoseconds (integers).

    Raises InputError for anything else.
    """
    array = host_array("the times", times, InputError)
    if array.dtype.kind not in "iu":
        raise InputError(f"the times are {shown(times)}; wanted GPS nanoseconds, integers")
    return np.asarray(
        np.searchsorted(np.array(LEAPS), array.astype(np.int64) // SECOND, side="right"), np.int64
    )
