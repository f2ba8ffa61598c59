"""The old place of scales of pictures of flows, for one release."""

from lanewise.naming import moved

__getattr__ = moved(__name__, "lanewise.sims.lbm.view.slices")
