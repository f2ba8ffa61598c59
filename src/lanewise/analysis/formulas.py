"""Values of a table as formulas for people: powers gathered, and nothing written twice in a
product.

    rsqrt(s + e) * (rsqrt(s + e) * rsqrt(s + e))   ->   (s + e)^(-3/2)
"""

from __future__ import annotations

from fractions import Fraction

from lanewise.analysis.value_numbering import Value, ValueTable

_ROOTS = {"sqrt": Fraction(1, 2), "rsqrt": Fraction(-1, 2), "cbrt": Fraction(1, 3)}
_TERM, _FACTOR, _ATOM = 0, 1, 2  # how tightly a text holds together


def formula(table: ValueTable, value: Value) -> str:
    """The value as text."""
    text, _ = _Formulas(table).text(value.number)
    return text if not value.negative else _negative(text, _Formulas(table).text(value.number)[1])


def _negative(text: str, level: int) -> str:
    return f"-({text})" if level == _TERM else f"-{text}"


class _Formulas:
    def __init__(self, table: ValueTable) -> None:
        self.table = table

    def text(self, number: int) -> tuple[str, int]:
        """The text of a value, and how tightly it holds together."""
        node = self.table.nodes[number]
        x = node.operands
        match node.operation:
            case "leaf":
                return str(node.payload), _ATOM
            case "literal":
                return _number(node.payload), _ATOM
            case "cast":
                return self.text(x[0])
            case "negate":
                return _negative(*self.text(x[0])), _TERM
            case "+" | "-" as sign:
                right, level = self.text(x[1])
                if right.startswith("-") and level != _TERM:
                    sign, right = "-" if sign == "+" else "+", right[1:]
                right = f"({right})" if sign == "-" and level == _TERM else right
                return f"{self.text(x[0])[0]} {sign} {right}", _TERM
            case "*" | "/" | "sqrt" | "rsqrt" | "cbrt":
                return self._product(number)
            case "select":
                condition, first, second = (self.text(n)[0] for n in x)
                return f"({first} if {condition} else {second})", _ATOM
            case ("==" | "!=" | "<" | "<=" | ">" | ">=" | "and" | "or") as word:
                return f"{self.text(x[0])[0]} {word} {self.text(x[1])[0]}", _TERM
            case operation:
                inner = ", ".join(self.text(n)[0] for n in x)
                return f"{operation}({inner})", _ATOM

    def _product(self, number: int) -> tuple[str, int]:
        powers: dict[int, Fraction] = {}
        factor = self._gather(number, Fraction(1), powers)
        powers = {n: e for n, e in powers.items() if e}
        texts = [self._power(n, e) for n, e in powers.items()]
        if factor != 1 or not texts:
            texts = [_number(factor), *texts]
        if len(texts) == 1 and len(powers) == 1:
            (exponent,) = powers.values()
            return texts[0], self.text(next(iter(powers)))[1] if exponent == 1 else _FACTOR
        return " * ".join(texts), _FACTOR

    def _gather(self, number: int, exponent: Fraction, powers: dict[int, Fraction]) -> float:
        """Collect the factors of a value by their exponents; what is a number is returned."""
        node = self.table.nodes[number]
        match node.operation, node.operands:
            case "*", (a, b):
                return self._gather(a, exponent, powers) * self._gather(b, exponent, powers)
            case "/", (a, b):
                return self._gather(a, exponent, powers) * self._gather(b, -exponent, powers)
            case "negate", (a,) if exponent.denominator == 1:
                return (-1.0) ** int(exponent) * self._gather(a, exponent, powers)
            case ("sqrt" | "rsqrt" | "cbrt") as root, (a,):
                return self._gather(a, exponent * _ROOTS[root], powers)
            case "literal", () if node.type.is_float and (
                exponent.denominator == 1 and isinstance(node.payload, float) and node.payload > 0
            ):
                return float(node.payload) ** float(exponent)
            case _:
                powers[number] = powers.get(number, Fraction(0)) + exponent
                return 1.0

    def _power(self, number: int, exponent: Fraction) -> str:
        text, level = self.text(number)
        if exponent == 1:
            return f"({text})" if level == _TERM else text
        base = text if level == _ATOM else f"({text})"
        shown = str(exponent)
        return f"{base}^{shown}" if shown.isdigit() else f"{base}^({shown})"


def _number(payload: object) -> str:
    if not isinstance(payload, float):
        return str(payload)
    return str(int(payload)) if payload.is_integer() and abs(payload) < 1e15 else f"{payload:.6g}"
