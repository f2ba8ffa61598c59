"""Where the time goes: spans on the host, sampled steps, a table of shares, and a trace for
Perfetto.
"""

from lanewise.profiling.profile import Profile, span, stage, staged

__all__ = ["Profile", "span", "stage", "staged"]
