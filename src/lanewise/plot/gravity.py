"""The old place of pictures of bodies, for one release."""

from lanewise.naming import moved

__getattr__ = moved(__name__, "lanewise.sims.gravity.view.picture")
