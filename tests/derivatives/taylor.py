"""The Taylor coefficients of an IR function, as another one."""

from __future__ import annotations

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.value_numbering import ValueTable, number_function
from lanewise.analysis.written_values import function_of_values
from lanewise.derivatives.jets import Jets
from lanewise.ir import nodes as ir
from lanewise.ir.verify import verify_function


def jet(f: ir.Function, order: int, variable: str = "x") -> ir.Function:
    """The function of a function's coefficients 0 to `order`."""
    table = ValueTable()
    arguments = {p.name: table.leaf(p.name, p.type) for p in f.parameters}
    (value,) = number_function(table, f, arguments)
    jets = Jets(Algebra(table), arguments[variable].number)
    results = [(ir.Parameter(f"c{n}", f.results[0].type), jets.coefficient(value, n)) for n in range(order + 1)]
    made = function_of_values(f"{f.name}_jet", table, f.parameters, results)
    verify_function(made)
    return made
