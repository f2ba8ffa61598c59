"""Pictures of F-statistics and of Hough maps."""

from lanewise.sims.waves.view.band import draw_band
from lanewise.sims.waves.view.sky_map import draw_map

__all__ = ["draw_band", "draw_map"]
