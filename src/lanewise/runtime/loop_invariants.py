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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, nan

# LLVM follows millions a second, of which not all are there
MOST_PATHS = 1e7

_NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_FUNCTION = re.compile(r'define [^\n]*?@("[^"]*"|[-\w.$]+)\([^\n]*\{\n')
_LABEL = re.compile(r'^("[^"]*"|[-\w.$]+):.*\n', re.M)
_STATEMENT = re.compile(rf"^  (?:({_NAME}) = )?(?:tail |musttail |notail )?(\w+)(.*)", re.M)
_USED = re.compile(_NAME)
_ARM = re.compile(rf"\[ ([^\s,]+), ({_NAME}) \]")
_TARGET = re.compile(rf"label ({_NAME})")
_CALLED = re.compile(r'@("[^"]*"|[-\w.$]+)\(')
_OWN_CALL = re.compile(r"call [^@\n]*@(?!llvm\.)")
_ROUNDS = 5  # of an inner loop, after which chains have shown how they grow


def most_paths(module: str) -> float:
    """Of the loops of a module, in LLVM's language: the most paths to what stays the same in one;
    infinite where a loop within it makes them more in every round.

    A loop around one that LLVM cannot write out is vectorised only where that one falls away: its
    rounds count once.
    """
    functions = dict[str, _Function]()
    for text in module.split("\n}\n"):
        found = _FUNCTION.search(text)
        if found is not None:
            functions[found[1]] = _read(text[found.end() :])
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


@dataclass(frozen=True, slots=True)
class _Statement:
    """What it defines, its operation, the values that it uses, and what is written behind."""

    result: str  # "" for one that defines nothing
    operation: str
    used: list[str]
    rest: str


@dataclass(frozen=True)
class _Function:
    """Its blocks in an order in which what leads to a block comes before it, but for the ends of
    loops; and where each of them leads.
    """

    texts: dict[str, str]
    leads: dict[str, list[str]]

    @cached_property
    def blocks(self) -> dict[str, list[_Statement]]:
        return {name: _statements(text) for name, text in self.texts.items()}

    @cached_property
    def place(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.texts)}

    @cached_property
    def before(self) -> dict[str, list[str]]:
        """The blocks that lead to each block."""
        before: dict[str, list[str]] = {name: [] for name in self.texts}
        for name, targets in self.leads.items():
            for target in dict.fromkeys(targets):
                before[target].append(name)
        return before

    @cached_property
    def variables(self) -> dict[str, str]:
        """Pointers into memory of the function's own, with the variable that they point into."""
        known: dict[str, str] = {}
        for s in (s for block in self.blocks.values() for s in block if s.result):
            if s.operation == "alloca":
                known[s.result] = s.result
            elif s.operation == "getelementptr" and s.used[0] in known:
                known[s.result] = known[s.used[0]]
        return known

    def loops(self) -> Iterator[tuple[str, set[str]]]:
        """Each loop: the first of its blocks, and all of them."""
        for head, place in self.place.items():
            ends = [n for n in self.before[head] if self.place[n] >= place]
            if ends:
                inside = {head}
                while ends:
                    name = ends.pop()
                    if name not in inside:
                        inside.add(name)
                        ends += self.before[name]
                yield head, inside


def _statements(text: str) -> list[_Statement]:
    found = _STATEMENT.finditer(text)
    return [_Statement(m[1] or "", m[2], _USED.findall(m[3]), m[3]) for m in found]


def _is_counted(function: _Function, head: str, inside: set[str]) -> bool:
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


def _keeps_some(function: _Function, head: str, inside: set[str]) -> bool:
    """Whether what stays the same in a loop may stay in it: behind branches that meet again, or a
    call.
    """
    texts = [function.texts[name] for name in inside - {head}]
    return any(" = phi " in t for t in texts) or any(
        _OWN_CALL.search(t) for t in (*texts, function.texts[head])
    )


def _read(body: str) -> _Function:
    first, *rest = _LABEL.split(body)
    texts = {f"%{name}": text for name, text in zip(rest[::2], rest[1::2], strict=True)}
    texts = {"": first, **texts} if first.strip() else texts
    leads = {name: _TARGET.findall(text) for name, text in texts.items()}
    order = _from_the_beginning(next(iter(texts)), leads)
    return _Function({n: texts[n] for n in order}, {n: leads[n] for n in order})


def _from_the_beginning(first: str, leads: Mapping[str, list[str]]) -> list[str]:
    """The blocks that can be reached, each behind those that lead to it, but for ends of loops."""
    seen, left = {first}, list[str]()
    todo = [(first, iter(leads[first]))]
    while todo:
        name, targets = todo[-1]
        target = next((t for t in targets if t not in seen), None)
        if target is None:
            left.append(name)
            todo.pop()
        else:
            seen.add(target)
            todo.append((target, iter(leads[target])))
    return left[::-1]


@dataclass(frozen=True)
class _Calls:
    """Functions of the module, and how many paths lead through each to one of its arguments."""

    functions: Mapping[str, _Function]
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
    function: _Function, head: str, inside: set[str], written_out: set[str], calls: _Calls
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

    function: _Function
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

    def _take(self, block: str, s: _Statement) -> None:
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

    def _joined(self, block: str, s: _Statement) -> float:
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
