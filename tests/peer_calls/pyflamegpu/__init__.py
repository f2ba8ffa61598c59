"""The calls of FLAME GPU 2.0.0-rc.2 that docs/coming_from/flamegpu.md uses. Types of variables are checked as its device
code checks them; agent functions run one after the other. None of FLAME GPU's code is in here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

ALIVE = "alive"
SAME = {"ID": "UInt"}


class Variables:
    """Named values with types: `getVariableFloat("x")`, `setVariableUInt("id", 3)`."""

    def __init__(self, types: dict[str, str], values: dict[str, Any] | None = None) -> None:
        self.types = types
        self.values: dict[str, Any] = dict.fromkeys(types, 0) if values is None else values

    def __getattr__(self, call: str) -> Any:
        what, kind = call[:11], call[11:]
        if what not in ("getVariable", "setVariable"):
            raise AttributeError(call)

        def access(name: str, *value: Any) -> Any:
            declared = self.types[name]
            if SAME.get(kind, kind) != SAME.get(declared, declared):
                raise TypeError(f"{name} is {declared}, and is accessed as {kind}")
            if what == "setVariable":
                (self.values[name],) = value
            return self.values[name]

        return access


class MessageNone:
    pass


class MessageSpatial2D(Variables):
    pass


class SpatialIn:
    """Messages of the 3 x 3 cells around a point; cells are a radius wide."""

    def __init__(self, radius: float, messages: list[MessageSpatial2D]) -> None:
        self._radius = float(radius)
        self._cells: defaultdict[tuple[int, int], list[MessageSpatial2D]] = defaultdict(list)
        for m in messages:
            self._cells[self._cell(m.values["x"], m.values["y"])].append(m)

    def _cell(self, x: float, y: float) -> tuple[int, int]:
        return int(x // self._radius), int(y // self._radius)

    def radius(self) -> float:
        return self._radius

    def __call__(self, x: float, y: float) -> Iterator[MessageSpatial2D]:
        i, j = self._cell(x, y)
        return (m for a in (-1, 0, 1) for b in (-1, 0, 1) for m in self._cells.get((i + a, j + b), ()))


class SpatialOut(MessageSpatial2D):
    def setLocation(self, x: float, y: float) -> None:
        self.values.update(x=x, y=y)


class MessageDescription:
    def __init__(self) -> None:
        self.types, self.list = {"x": "Float", "y": "Float"}, list[MessageSpatial2D]()

    def setMin(self, x: float, y: float) -> None:
        pass

    def setMax(self, x: float, y: float) -> None:
        pass

    def setRadius(self, radius: float) -> None:
        self.radius = radius

    def newVariableID(self, name: str) -> None:
        self.types[name] = "ID"


class FunctionDescription:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.reads, self.writes = function, None, None
        self.after: list[FunctionDescription] = []

    def setMessageOutput(self, name: str) -> None:
        self.writes = name

    def setMessageInput(self, name: str) -> None:
        self.reads = name

    def dependsOn(self, other: FunctionDescription) -> None:
        other.after.append(self)


class AgentDescription:
    def __init__(self) -> None:
        self.types, self.population = dict[str, str](), list[Variables]()

    def newVariableFloat(self, name: str, default: float = 0) -> None:
        self.types[name] = "Float"

    def newRTCFunction(self, name: str, function: Callable[..., Any]) -> FunctionDescription:
        assert function.__name__ == name
        return FunctionDescription(function)


class EnvironmentDescription:
    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def newPropertyFloat(self, name: str, value: float, is_const: bool = False) -> None:
        self.values[name] = value

    def getPropertyFloat(self, name: str) -> float:
        return self.values[name]


class HostFunction:
    def run(self, FLAMEGPU: Any) -> None:
        raise NotImplementedError


class HostAPI:
    def __init__(self, agents: dict[str, AgentDescription]) -> None:
        self._agents = agents

    def agent(self, name: str) -> HostAgent:
        return HostAgent(self._agents[name])


class HostAgent:
    def __init__(self, of: AgentDescription) -> None:
        self._of = of

    def newAgent(self) -> Variables:
        self._of.population.append(Variables(self._of.types))
        return self._of.population[-1]

    def sumFloat(self, name: str) -> float:
        assert self._of.types[name] == "Float"
        return sum(a.values[name] for a in self._of.population)


class ModelDescription:
    def __init__(self, name: str) -> None:
        self.messages, self.agents = dict[str, MessageDescription](), dict[str, AgentDescription]()
        self.environment, self.layers = EnvironmentDescription(), list[FunctionDescription]()
        self.init, self.step = list[HostFunction](), list[HostFunction]()

    def newMessageSpatial2D(self, name: str) -> MessageDescription:
        return self.messages.setdefault(name, MessageDescription())

    def newAgent(self, name: str) -> AgentDescription:
        return self.agents.setdefault(name, AgentDescription())

    def Environment(self) -> EnvironmentDescription:
        return self.environment

    def addExecutionRoot(self, root: FunctionDescription) -> None:
        self.root = root

    def generateLayers(self) -> None:
        following = [self.root]
        while following:
            self.layers += following
            following = [f for g in following for f in g.after]

    def addInitFunction(self, function: HostFunction) -> None:
        self.init.append(function)

    def addStepFunction(self, function: HostFunction) -> None:
        self.step.append(function)


class CUDASimulation:
    def __init__(self, model: ModelDescription) -> None:
        self._model, self._config = model, SimpleNamespace(steps=1)

    def SimulationConfig(self) -> SimpleNamespace:
        return self._config

    def simulate(self) -> None:
        model = self._model
        host = HostAPI(model.agents)
        environment.values = model.Environment().values
        for function in model.init:
            function.run(host)
        for _ in range(self._config.steps):
            for layer in model.layers:
                self._run(layer)
            for function in model.step:
                function.run(host)

    def _run(self, layer: FunctionDescription) -> None:
        (agents,) = self._model.agents.values()
        read = self._model.messages[layer.reads] if layer.reads else None
        written = self._model.messages[layer.writes] if layer.writes else None
        message_in = SpatialIn(read.radius, read.list) if read else MessageNone()
        sent: list[MessageSpatial2D] = []
        for number, agent in enumerate(agents.population, 1):
            _now.update(id=number, agent=agent)
            message_out = SpatialOut(written.types, {}) if written else MessageNone()
            assert layer.function(message_in, message_out) == ALIVE
            if isinstance(message_out, SpatialOut):
                sent.append(message_out)
        if written:
            written.list = sent


_now: dict[str, Any] = {}
environment = EnvironmentDescription()


def agent_function(function: Callable[..., Any]) -> Callable[..., Any]:
    function.is_agent_function = True  # type: ignore[attr-defined]
    return function


def getID() -> int:
    return _now["id"]


def getVariableFloat(name: str) -> float:
    return _now["agent"].getVariableFloat(name)


def setVariableFloat(name: str, value: float) -> None:
    _now["agent"].setVariableFloat(name, value)
