"""Names of the facade that no module may have, because Python means something else by them."""

from lanewise.frontend.reductions import Any_ as Any
from lanewise.language.record import RecordBase as Record
from lanewise.language.values import abs_ as abs
from lanewise.language.values import bool_ as bool
from lanewise.language.values import pow_ as pow
from lanewise.language.values import round_ as round
from lanewise.patterns.elementwise.totals import max_ as max
from lanewise.patterns.elementwise.totals import min_ as min
from lanewise.patterns.elementwise.totals import sum_ as sum

__all__ = ["Any", "Record", "abs", "bool", "max", "min", "pow", "round", "sum"]
