"""Which layout records should have, and why: `lw.choose_layout`."""

from lanewise.advice.choice import LayoutChoice
from lanewise.advice.choose import choose_layout
from lanewise.advice.uses import Use

__all__ = ["LayoutChoice", "Use", "choose_layout"]
