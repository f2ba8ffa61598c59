"""How many paths lead to what a loop computes anew in every round although it stays the same.

LLVM's vectoriser moves such values before the loop. Where it interleaves rounds, it then asks of
each of them whether its operands stay the same, theirs and so on, and remembers no answer: it asks
as often as paths lead there. A value that the next one uses twice, which a third one uses twice,
has four. Clamps, `lw.min` and branches use what they are given twice or more, so that a chain of a
dozen takes minutes. Where there are too many paths LLVM is instructed not to interleave; it
vectorises all the same.

What stays the same and lies behind no branch has left a loop before the vectoriser comes. The
module is looked at earlier, so the number is an upper estimate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan

from lanewise.runtime.llvm_blocks import (
    END,
    FUNCTION,
    NAME,
    LlvmFunction,
    LlvmStatement,
    read_function,
)

# LLVM follows millions a second, of which not all are there
MOST_PATHS = 1e7

_ARM = re.compile(rf"\[ ([^\s,]+), ({NAME}) \]")
_CALLED = re.compile(r'@("[^"]*"|[-\w.$]+)\(')
_OWN_CALL = re.compile(r"call [^@\n]*@(?!llvm\.)")
_ROUNDS = 5  # of an inner loop, after which chains have shown how they grow


def most_paths(module: str) -> float:
    """Of the loops of a module, in LLVM's language: the most paths to what stays the same in one;
    infinite where a loop within it makes them more in every round.

    A loop around one that LLVM cannot write out is vectorised only where that one falls away: its
    rounds count once.
    """
    functions = dict[str, LlvmFunction]()
    for text in module.split(END):
        found = FUNCTION.search(text)
        if found is not None:
            functions[found[1]] = read_function(text[found.end() :])
    calls = _Calls(functions)
    most = 0.0
    for function in functions.values():
        loops = dict(function.loops())
        unknown = {
            head for head, inside in loops.items() if not _is_counted(function, head, inside)
        }
        for head, inside in loops.items():
            if _keeps_some(function, head, inside):
                written_out = inside.intersection(loops) - unknown - {head}
                most = max(most, _paths_of(function, head, inside, written_out, calls))
    return most


def _is_counted(function: LlvmFunction, head: str, inside: set[str]) -> bool:
    """Whether a loop asks of numbers alone if it continues: LLVM knows its rounds, and may write it
    out.
    """
    phis = [s for s in function.blocks[head] if s.operation == "phi"]
    arms = {s.result: _ARM.findall(s.rest) for s in phis}
    counters = set(arms)
    while True:
        known = set(counters)
        for s in (s for name in function.place if name in inside for s in function.blocks[name]):
            if s.operation not in ("phi", "load", "call") and known.issuperset(s.used):
                known.add(s.result)
        left = {
            c
            for c in counters
            if all(arm[0] != "%" or (arm in known and source in inside) for arm, source in arms[c])
        }
        if left == counters:
            break
        counters = left
    exits = [name for name in inside if not inside.issuperset(function.leads[name])]
    return all(known.issuperset(function.blocks[name][-1].used[:1]) for name in exits)


def _keeps_some(function: LlvmFunction, head: str, inside: set[str]) -> bool:
    """Whether what stays the same in a loop may stay in it: behind branches that meet again, or a
    call.
    """
    texts = [function.texts[name] for name in inside - {head}]
    return any(" = phi " in t for t in texts) or any(
        _OWN_CALL.search(t) for t in (*texts, function.texts[head])
    )


@dataclass(frozen=True)
class _Calls:
    """Functions of the module, and how many paths lead through each to one of its arguments."""

    functions: Mapping[str, LlvmFunction]
    known: dict[str, float] = field(default_factory=dict[str, float])

    def paths(self, name: str) -> float:
        if name not in self.functions:
            return 1.0
        if name not in self.known:
            self.known[name] = 1.0  # of a function that calls itself
            function = self.functions[name]
            head = next(iter(function.blocks))
            values = _Round(function, head, set(function.blocks), self, {}).values()
            self.known[name] = max((v for v in values.values() if v == v), default=1.0)
        return self.known[name]


def _paths_of(
    function: LlvmFunction, head: str, inside: set[str], written_out: set[str], calls: _Calls
) -> float:
    """How many paths lead to what stays the same in a loop, together. written_out: where loops
    begin that LLVM may write out within it.
    """
    found, before = dict[str, float](), list[dict[str, float]]()
    inner = [
        (s.result, arm)
        for name in written_out
        for s in function.blocks[name]
        if s.operation == "phi" and s.result
        for arm, source in _ARM.findall(s.rest)
        if function.place.get(source, -1) >= function.place[name]
    ]
    for _ in range(_ROUNDS):
        found = _Round(function, head, inside, calls, found).values()
        before.append(found)
        if not any(found.get(arm, 0.0) > found[result] for result, arm in inner):
            break
    else:
        if any(_grows([values[result] for values in before]) for result, _ in inner):
            return inf
    return sum(v for v in found.values() if v == v)


def _grows(rounds: list[float]) -> bool:
    """Whether every round multiplies what the one before added."""
    *_, a, b, c = rounds
    return c - b > 1.5 * (b - a) > 0


@dataclass
class _Round:
    """One round of a loop: how many paths lead to each of its values; nan where a value changes
    from round to round, which makes nan of whatever is computed of it.

    earlier: what the last round found, for loops within this one.
    """

    function: LlvmFunction
    head: str
    inside: set[str]
    calls: _Calls
    earlier: Mapping[str, float]
    memory: dict[str, float] = field(default_factory=dict[str, float])
    found: dict[str, float] = field(default_factory=dict[str, float])
    conditions: dict[str, _Condition] = field(default_factory=dict[str, "_Condition"])

    def values(self) -> dict[str, float]:
        for name, statements in self.function.blocks.items():
            if name in self.inside:
                self.conditions[name] = self._condition(name)
                for s in statements:
                    self._take(name, s)
        return self.found

    def _paths(self, names: list[str]) -> float:
        return sum(self.found.get(n, 1.0) for n in names)

    def _take(self, block: str, s: LlvmStatement) -> None:
        variables = self.function.variables
        match s.operation:
            case "phi":
                value = nan if block == self.head else self._joined(block, s)
            case "store":
                self._keep(s.used[-1:], self._paths(s.used[:-1]))
                return
            case "load" if s.used and s.used[0] in variables:
                value = self.memory.get(variables[s.used[0]], 0.0)
            case "call" | "invoke":
                called = _CALLED.search(s.rest)
                name = called[1] if called else ""
                through = self.calls.paths(name)
                value = through * self._paths([n for n in s.used if n not in variables])
                if not name.startswith("llvm."):
                    self._keep(s.used, value)
            case _:
                value = self._paths(s.used)
        if s.result:
            self.found[s.result] = max(value, 1.0) if value == value else value

    def _keep(self, pointers: list[str], value: float) -> None:
        """What is written into variables of the function's own."""
        known = self.function.variables
        for variable in {known[p] for p in pointers if p in known}:
            self.memory[variable] = self.memory.get(variable, 0.0) + value

    def _joined(self, block: str, s: LlvmStatement) -> float:
        """A value that depends on where a round came from: on conditions as well."""
        value = 0.0
        for arm, source in _ARM.findall(s.rest):
            if source in self.conditions and source != block:
                value += self._paths([arm]) if arm[0] == "%" else 0.0
                value += self._edge(source, block).paths
            elif arm in self.earlier:
                value += self.earlier[arm]
        return value

    def _condition(self, block: str) -> _Condition:
        """Under which a round comes to a block."""
        if block == self.head:
            return _ALWAYS
        sources = [n for n in self.function.before[block] if n in self.conditions]
        return _either({self._edge(n, block) for n in sources})

    def _edge(self, source: str, target: str) -> _Condition:
        """Under which it comes to a block from another one."""
        before, place = self.conditions[source], self.function.place
        leads = self.inside.intersection(self.function.leads[source])
        ways = {t for t in leads if place[t] > place[source]}
        if len(ways) < 2:
            return before
        asked = self.function.blocks[source][-1].used[:1]
        return _Condition(before, source, target, len(ways), before.paths + self._paths(asked))


@dataclass(frozen=True)
class _Condition:
    """A condition: that of a block, and which of so many ways is taken behind it."""

    before: _Condition | None
    block: str
    target: str
    ways: int  # -1 where several meet that are not all
    paths: float = field(compare=False)


_ALWAYS = _Condition(None, "", "", 0, 0.0)


def _either(conditions: set[_Condition]) -> _Condition:
    """Any of them: where these are all ways behind a block, the condition of the block."""
    while len(conditions) > 1:
        for c in conditions:
            ways = {o for o in conditions if (o.before, o.block) == (c.before, c.block)}
            if c.before is not None and len(ways) == c.ways:
                conditions = conditions - ways | {c.before}
                break
        else:
            names = "|".join(sorted(f"{c.block}>{c.target}" for c in conditions))
            return _Condition(_ALWAYS, names, "", -1, sum(c.paths for c in conditions))
    return next(iter(conditions))
