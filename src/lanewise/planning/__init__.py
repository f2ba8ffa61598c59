"""What can be decided about a kernel, and the kinds of devices that it is decided for.

Of this room others take what is named here: `lw.Plan` is what is requested, `CompletePlan` what was
decided, `FIELDS` names the decisions, `DECLARED` says what each of them is (its name, its place in
the order of passes, its neutral value), and `neutral_plan` has all of them switched off.
"""

from typing import TYPE_CHECKING

from lanewise.support.naming import at_first_use

if TYPE_CHECKING:
    from lanewise.planning.plan import DECLARED, FIELDS, CompletePlan, neutral_plan

__all__ = ["DECLARED", "FIELDS", "CompletePlan", "neutral_plan"]

__getattr__, __dir__ = at_first_use(
    __name__, {"plan": ("DECLARED", "FIELDS", "CompletePlan", "neutral_plan")}
)
"""The kinds of devices are there without plans."""
