"""What the thesis says of its versions of the F-statistic.

J. Breitbart, Case studies on GPU usage and data structure design, University of Kassel (2008),
chapter 4: HierarchicalSearch of Einstein@Home on a GeForce 8800 GTS, next to an Athlon 64 3700+.
Its
data: 45 directions, 9 spin-downs, 84 stacks of about 45 SFTs of two detectors, about 161
frequencies.
"""

from __future__ import annotations

from dataclasses import dataclass

GPU = "GeForce 8800 GTS"
SOURCE = (
    f"J. Breitbart, Case studies on GPU usage and data structure design (2008), chapter 4, {GPU}; "
    "what it states in words (its "
    "times contain the Hough transform on the CPU, about 10 % of a CPU run of its data)"
)
DIRECTIONS, SPINS, STACKS, SFTS, DETECTORS, FREQUENCIES = 45, 9, 84, 45, 2, 161
CPU = "0: one CPU thread"
CALLS = "1: copies per call"
PACKED = "2: packed data"
BAND = "3: one kernel per band"
STACKED = "4: stacks in the grid"
DOUBLE = "4d: in float64"
HOUGH_HOST = "5: Hough on the host"
HOUGH_BESIDE = "5b: Hough on the host during F"
HOUGH = "6: Hough on the device"
BUFFERED = "7: double buffering"
SECONDS = 23_300.0  # of version 1, all of its data
CPU_SHARE = 70.0  # version 1 took more than 70 times the CPU's time


@dataclass(frozen=True, slots=True)
class Figure:
    """What is said of a version. factor: over the version before it, from times relative to the
    CPU's.
    """

    text: str
    where: str
    factor: float | None = None


FIGURES = {
    CPU: Figure("what all times of the thesis are relative to", "section 4.2"),
    CALLS: Figure(
        "23,300 s, > 70 x the CPU; 95 % memory management, 70 % copies",
        "section 4.3.1, figure 4.5",
        round(1 / CPU_SHARE, 4),
    ),
    PACKED: Figure(
        "as fast as the CPU; copies and packing hardly count", "section 4.3.2", CPU_SHARE
    ),
    BAND: Figure(
        "1/3 of the CPU's time, 1/5 in the F-statistic; 3 to 10 idle threads", "section 4.3.3", 3.0
    ),
    STACKED: Figure("proposed: all stacks by the second dimension of the grid", "section 4.4"),
    HOUGH_HOST: Figure(
        "versions 1 to 3: about 10 % of a CPU run of its data, about half of a full work unit's",
        "section 4.2",
    ),
    DOUBLE: Figure(
        "its hardware had single precision alone, of no scientific value", "section 4.2"
    ),
    HOUGH_BESIDE: Figure(
        "proposed: the device computes F while the host does the last Hough transform",
        "section 4.4",
    ),
    HOUGH: Figure("proposed: the Hough transform may perform well there", "section 4.4"),
    BUFFERED: Figure("the same, with the Hough transform on the device", "section 4.4"),
}
