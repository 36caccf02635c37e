"""From a RewardSpec to programs: every expression checked once against what the workflow lets it see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from unitymas.api import names, shapes
from unitymas.api.base import Entrypoint
from unitymas.api.errors import Findings
from unitymas.api.reward import Metric, Reward, RewardSpecSpec
from unitymas.api.shapes import ListOf, Record, Shape
from unitymas.expr.cel import Environment, Program
from unitymas.expr.errors import ExpressionError, did_you_mean
from unitymas.rewards.series import PLACED, SERIES

USAGE = shapes.record(**dict.fromkeys(("calls", "visits", "outputTokens", "toolCalls"), shapes.NUMBER))
PLACE = shapes.record(prompt=shapes.STRING, turn=shapes.INT, index=shapes.INT)
"""What every visit has beside its node's value. `turn` and `index` hide fields of these names, `prompt` does not."""
TAKEN = ("task", "nodes", "state", "result", "usage", "visit")
"""Variables that no metric may be named like."""
SLOW_RULES = ("prm800k", "symbolic")
"""Rules whose time only a limit bounds: computer algebra."""
AFTER = ""
"""In place of a node's name: a metric read once, after the trajectory."""


@dataclass(frozen=True, slots=True)
class Aside:
    """A metric that runs in the workers; `setup` builds it when it is a class."""

    entrypoint: str
    setup: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class MetricProgram:
    """One metric: its arguments by node (`AFTER` without `at`), their shapes, and what turns them into a number."""

    name: str
    path: str
    at: frozenset[str]
    arguments: Mapping[str, Mapping[str, Program]]
    wanted: Mapping[str, Shape]
    run: Callable[..., object] | Aside


@dataclass(frozen=True, slots=True)
class Part:
    """One reward: its value by role. `watched` are the series that it reads from where the visit stands."""

    reward: Reward
    path: str
    values: Mapping[str, Program]
    watched: frozenset[str]
    per_visit: bool
    """Reads something of the visit; else one evaluation serves all."""


@dataclass(frozen=True, slots=True)
class RewardProgram:
    """A RewardSpec, ready to score trajectories."""

    metrics: tuple[MetricProgram, ...]
    parts: tuple[Part, ...]
    python: Entrypoint | None
    score: str | None
    timeout_s: float | None
    empty: Mapping[str, Mapping[str, object]]
    """Empty values of nodes and state, for a trajectory that ended early."""


def compile_rewards(
    reward: RewardSpecSpec,
    *,
    task: Mapping[str, Shape] | None,
    nodes: Mapping[str, Shape] | None,
    state: Mapping[str, Shape] | None,
    result: Shape,
    role_outputs: Mapping[str, Shape] | None,
    node_values: Mapping[str, Record] | None,
) -> tuple[RewardProgram, Findings]:
    """The program, with everything found wrong; the program runs only when nothing was. Paths start at `spec`.

    `task`: visible and hidden fields. `nodes`: what `nodes` holds in the end. `node_values`: one visit's value by node;
    blocks among them cannot be read at. None: not known before the workflow has run, so anything goes.
    """
    records = {"task": _known(task), "nodes": _known(nodes), "state": _known(state)}
    visits = _visits(_leaves(node_values), [node for metric in reward.metrics for node in metric.at or ()])
    compiler = _Compiler({**records, "result": result, "usage": USAGE}, visits, {})
    metrics = [compiler.metric(metric, f"spec.metrics[{at}]") for at, metric in enumerate(reward.metrics)]
    roles = _visits(_played(role_outputs), [role for part in reward.rewards for role in part.roles])
    parts = [compiler.part(part, f"spec.rewards[{at}]", roles) for at, part in enumerate(reward.rewards)]
    compiler.once("spec.rewards", [part.name for part in reward.rewards])
    if reward.score is not None:
        compiler.score(reward.score)
    program = RewardProgram(
        metrics=tuple(metric for metric in metrics if metric is not None),
        parts=tuple(parts),
        python=reward.python,
        score=reward.score,
        timeout_s=reward.timeout_s,
        empty={name: _empty(records[name]) for name in ("nodes", "state")},
    )
    return program, compiler.findings


def _record(fields: Mapping[str, Shape]) -> Record:
    return Record(tuple(fields.items()))


def _known(fields: Mapping[str, Shape] | None) -> Shape:
    return shapes.ANY if fields is None else _record(fields)


def _leaves(values: Mapping[str, Record] | None) -> Mapping[str, Record] | None:
    """The nodes that run a role or a tool."""
    return None if values is None else {name: value for name, value in values.items() if value.get("ok") == shapes.BOOL}


def _played(outputs: Mapping[str, Shape] | None) -> Mapping[str, Record] | None:
    return None if outputs is None else {role: _role_value(output) for role, output in outputs.items()}


def _visits(values: Mapping[str, Record] | None, asked: Iterable[str]) -> Mapping[str, Shape]:
    """What `visit` is, by node or role; of those asked for where none is known."""
    if values is None:
        return dict.fromkeys(asked, shapes.ANY)
    return {name: _visit(value) for name, value in values.items()}


def _empty(shape: Shape) -> Mapping[str, object]:
    return cast(dict[str, object], shapes.empty(shape)) if isinstance(shape, Record) else {}


def _visit(value: Record) -> Record:
    return _record({**dict(PLACE.fields[:1]), **dict(value.fields), **dict(PLACE.fields[1:])})


def _role_value(output: Shape) -> Record:
    return shapes.record(output=output, text=shapes.STRING, ok=shapes.BOOL, ran=shapes.BOOL, calls=shapes.INT)


def _fits(given: Shape, wanted: Shape) -> bool:
    if shapes.ANY in (given, wanted):
        return True
    if isinstance(given, ListOf) and isinstance(wanted, ListOf):
        return _fits(given.item, wanted.item)
    return given == wanted or (given == shapes.INT and wanted == shapes.NUMBER)


class _Kind(Protocol):
    """The class of a built-in metric."""

    arguments: Mapping[str, object]
    """Shapes of its keywords, as users write shapes."""

    def __call__(self, **setup: str) -> Callable[..., object]: ...


@dataclass(slots=True)
class _Compiler:
    base: Mapping[str, Shape]
    visits: Mapping[str, Shape]
    known: dict[str, Shape]
    """Metrics so far: NUMBER, or SERIES."""
    findings: Findings = field(default_factory=Findings)

    def metric(self, metric: Metric, path: str) -> MetricProgram | None:
        """Compile one metric; those before it are known by name. None where its kind cannot be built."""
        taken = [*TAKEN, *self.known]
        if metric.name in taken:
            expected = f"a name of its own, and none of {', '.join(TAKEN)}"
            self.findings.add("metric-name", f"{path}.name", found=f"`{metric.name}`", expected=expected)
        path = f"{path}.{metric.kind}"
        texts, wanted, run = self._kind(metric, path)
        nodes = self._nodes(metric, path) if metric.at else [AFTER]
        paths = {name: path + {"cel": "", "python": f".with.{name}"}.get(metric.kind, f".{name}") for name in texts}
        arguments = {node: self._arguments(texts, wanted, paths, node) for node in nodes}
        self.known[metric.name] = SERIES if metric.at else shapes.NUMBER
        if run is None:
            return None
        return MetricProgram(metric.name, path, frozenset(metric.at or ()), arguments, wanted, run)

    def _kind(
        self, metric: Metric, path: str
    ) -> tuple[Mapping[str, str], Mapping[str, Shape], Callable[..., object] | Aside | None]:
        """Texts of the arguments by name, their shapes, and what runs on them."""
        if metric.cel is not None:
            return {"value": metric.cel}, {"value": shapes.NUMBER}, _same
        if metric.python is not None:
            arguments = metric.python.with_
            return arguments, dict.fromkeys(arguments, shapes.ANY), Aside(metric.python.entrypoint)
        spec = metric.token_f1 or metric.exact_match or metric.math_equal or metric.choice or metric.pass_rate
        assert spec is not None
        texts = cast(dict[str, str], spec.model_dump())
        setup = {"rule": texts.pop("rule")} if "rule" in texts else {}
        if metric.kind == "passRate":
            hint = f"in a later release: {names.LATER['code']}"
            self.findings.add("later", path, found="`passRate`", expected="a `python` metric", hint=hint)
        kind = cast(_Kind, names.load(names.METRICS, metric.kind))
        wanted = {name: shapes.parse(shape) for name, shape in kind.arguments.items()}
        try:
            run = kind(**setup)
        except ValueError as error:
            self.findings.add("later", f"{path}.rule", found=f"`{setup['rule']}`", expected=str(error))
            return texts, wanted, None
        slow = setup.get("rule") in SLOW_RULES
        return texts, wanted, Aside(names.METRICS[metric.kind].target, setup) if slow else run

    def _nodes(self, metric: Metric, path: str) -> list[str]:
        at = path.rpartition(".")[0] + ".at"
        for number, node in enumerate(metric.at or ()):
            if node not in self.visits:
                expected = f"a node that runs a role or a tool: {', '.join(self.visits)}"
                hint = did_you_mean(node, self.visits)
                self.findings.add("unknown-node", f"{at}[{number}]", found=f"`{node}`", expected=expected, hint=hint)
        return [node for node in metric.at or () if node in self.visits]

    def _arguments(
        self, texts: Mapping[str, str], wanted: Mapping[str, Shape], paths: Mapping[str, str], node: str
    ) -> dict[str, Program]:
        variables = {**self.base, **self.known, **({} if node == AFTER else {"visit": self.visits[node]})}
        programs = {name: self._program(text, paths[name], variables, wanted[name]) for name, text in texts.items()}
        return {name: program for name, program in programs.items() if program is not None}

    def part(self, reward: Reward, path: str, roles: Mapping[str, Shape]) -> Part:
        """Compile one reward, for each of its roles."""
        series = {name for name, shape in self.known.items() if shape == SERIES}
        variables = {**self.base, **self.known, **dict.fromkeys(series, PLACED)}
        values: dict[str, Program] = {}
        for number, role in enumerate(reward.roles):
            if role not in roles:
                expected, hint = f"a role of the workflow: {', '.join(roles)}", did_you_mean(role, roles)
                self.findings.add(
                    "unknown-role", f"{path}.roles[{number}]", found=f"`{role}`", expected=expected, hint=hint
                )
                continue
            seen = {**variables, "visit": roles[role]}
            program = self._program(reward.value, f"{path}.value", seen, shapes.NUMBER)
            if program is not None:
                values[role] = program
        reads = [read for program in values.values() for read in program.paths]
        same_everywhere = {(name, statistic) for name in series for statistic in SERIES.names()}
        watched = frozenset(read[0] for read in reads if read[0] in series and read[:2] not in same_everywhere)
        per_visit = bool(watched) or any(read[0] == "visit" for read in reads)
        return Part(reward, f"{path}.value", values, watched, per_visit)

    def _program(self, text: str, path: str, variables: Mapping[str, Shape], wanted: Shape) -> Program | None:
        try:
            program = Environment.of(variables).compile(text)
        except ExpressionError as error:
            self._add("expression", path, error.found, error.expected, error.hint)
            return None
        if not _fits(program.shape, wanted):
            found = f"`{text}`, which is {shapes.notation(program.shape)}"
            self._add("expression", path, found, shapes.notation(wanted), _hint(text, program.shape, wanted))
            return None
        return program

    def _add(self, check: str, path: str, found: str, expected: str, hint: str) -> None:
        if not any((told.path, told.found) == (path, found) for told in self.findings.items):  # once, not once a role
            self.findings.add(check, path, found=found, expected=expected, hint=hint)

    def once(self, path: str, given: Iterable[str]) -> None:
        """A finding for every name that is used twice."""
        seen: set[str] = set()
        for number, name in enumerate(given):
            if name in seen:
                found = f"`{name}` a second time"
                self.findings.add("duplicate-name", f"{path}[{number}].name", found=found, expected="a name of its own")
            seen.add(name)

    def score(self, name: str) -> None:
        """The score must be one number."""
        if self.known.get(name) == shapes.NUMBER:
            return
        numbers = [metric for metric, shape in self.known.items() if shape == shapes.NUMBER]
        series = f"`{name}`, a series"
        self.findings.add(
            "score",
            "spec.score",
            found=series if name in self.known else f"`{name}`",
            expected=f"a metric without `at`: {', '.join(numbers) or 'there are none'}",
            hint=f"add a metric such as `cel: {name}.last`" if name in self.known else did_you_mean(name, numbers),
        )


def _same(value: object) -> object:
    return value


def _hint(text: str, given: Shape, wanted: Shape) -> str:
    if given == shapes.BOOL and wanted == shapes.NUMBER:
        return f"write `({text}) ? 1.0 : 0.0`"
    if isinstance(wanted, ListOf) and _fits(given, wanted.item):
        return f"write `[{text}]`"
    return f"write `string({text})`" if wanted == shapes.STRING and given in (shapes.INT, shapes.NUMBER) else ""
