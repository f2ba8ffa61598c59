"""What a profile found, as plain data: every stage's seconds and share of the whole, and how it was sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanewise.profiling.profile import Profile


def summarise(profile: Profile) -> dict[str, Any]:
    """The shares of all stages add up to 1.

    seconds: of the outermost spans. stages, the longest first: seconds, share, calls, bytes (where some were moved), and the
    same by name in `parts`. steps: how many, their seconds, how many were sampled, and how long a sampled one took compared
    with the mean of those sequences; the seconds of stages of steps are those of all steps, divided as the samples are.
    """
    whole = max(1, profile.nanoseconds)
    stages: dict[str, dict[str, Any]] = {}
    for (stage, name), (calls, nanoseconds, nbytes) in _parts(profile).items():
        row = stages.setdefault(stage, {"seconds": 0.0, "share": 0.0, "calls": 0, "bytes": 0, "parts": {}})
        part = {"seconds": nanoseconds * 1e-9, "share": nanoseconds / whole, "calls": calls, "bytes": nbytes}
        row["parts"][name] = part
        for key, value in part.items():
            row[key] += value
    ordered = sorted(stages.items(), key=lambda s: -s[1]["seconds"])
    return {
        "seconds": profile.nanoseconds * 1e-9,
        "stages": dict(ordered),
        "steps": _steps(profile),
        "dropped_events": profile.dropped,
    }


def _parts(profile: Profile) -> dict[tuple[str, str], tuple[int, float, int]]:
    """Calls, nanoseconds and bytes by stage and name: of spans, and of the launches of steps."""
    found = {key: (t.count, float(t.nanoseconds), t.nbytes) for key, t in profile.totals.items()}
    for sequence, taken in (part for loop in profile.loops for part in loop.divided()):
        for key, share in zip(sequence.names, sequence.shares(), strict=True):
            calls, nanoseconds, nbytes = found.get(key, (0, 0.0, 0))
            found[key] = (calls + sequence.repetitions, nanoseconds + share * taken, nbytes)
    return found


def _steps(profile: Profile) -> dict[str, Any]:
    taken = [s for loop in profile.loops for s in loop.sequences if s.repetitions]
    measured = sum(loop.nanoseconds for loop in profile.loops if any(s.sampled for s in loop.sequences))
    return {
        "count": sum(s.repetitions * s.steps for s in taken),
        "seconds": sum(loop.nanoseconds for loop in profile.loops) * 1e-9,
        "sampled": sum(s.sampled * s.steps for s in taken),
        "sampled_over_mean": sum(s.estimate for s in taken) / measured if measured else None,
    }
