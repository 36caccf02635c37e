"""What is recorded of a run of the workflow: visits, calls, trajectories; and what crosses the star."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from unitymas.api.errors import Failure

ChatRole = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length"]
Order = tuple[tuple[bool, int], ...]
"""Place in program order: one (parallel, position) a level. Levels that differ and are both parallel do not compare."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a prompt. A variable's text may be truncated, and is never read as control tokens."""

    text: str
    variable: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat, in segments."""

    role: ChatRole
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The message as one string."""
        return "".join(segment.text for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a call samples: temperature 0 is greedy; top-p and top-k only where nothing is trained."""

    max_tokens: int = 256
    temperature: float = 1.0
    stop: tuple[str, ...] = ()
    top_p: float = 1.0
    top_k: int = 0


@dataclass(frozen=True, slots=True)
class CallId:
    """Which call: unique within an attempt, the same whatever the order of arrival."""

    step: int
    task: str
    rollout: int
    visit: str
    call: int
    phase: str = "train"
    """`train`, or the evaluation that it belongs to, such as `dev-greedy`: such tokens are not kept."""

    def __str__(self) -> str:
        return f"{self.phase}/{self.step}/{self.task}/{self.rollout}/{self.visit}/{self.call}"


@dataclass(frozen=True, slots=True)
class Request:
    """One generation asked of a model group: text in, never tokens."""

    id: CallId
    order: Order
    messages: tuple[Message, ...]
    sampling: Sampling
    seed: int
    role: str = ""
    keep: bool = True
    """Keep the tokens for training until the step ends."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What comes back from a model group: text and numbers, never tokens."""

    text: str
    finish: Finish
    prompt_tokens: int
    output_tokens: int
    truncated_tokens: int
    version: int
    """Weight version at dispatch."""


@dataclass(frozen=True, slots=True)
class Call:
    """One LLM generation of a visit."""

    id: str
    model: str
    finish: Finish
    prompt_tokens: int
    output_tokens: int
    truncated_tokens: int
    version: int
    started_s: float
    ended_s: float
    retries: int = 0


@dataclass(slots=True)
class Visit:
    """One execution of a node, keyed by structure. Mutable only while its trajectory runs and is rewarded."""

    key: str
    """Such as `turns[1].search` or `solve[3]`: node, loop turns, forEach items; never arrival."""
    node: str
    order: Order
    parents: tuple[str, ...]
    """Keys of the visits immediately before it in program order."""
    role: str = ""
    model: str = ""
    tool: str = ""
    turns: Mapping[str, int] = field(default_factory=dict[str, int])
    """Turn of each enclosing loop, by the loop's name."""
    items: Mapping[str, int] = field(default_factory=dict[str, int])
    """Item of each enclosing forEach, by its node's name."""
    prompt: str = ""
    text: str = ""
    value: Mapping[str, object] = field(default_factory=dict[str, object])
    """The node's value as expressions see it: for a role `output, text, ok, ran, calls`."""
    calls: tuple[Call, ...] = ()
    started_s: float = 0.0
    ended_s: float = 0.0
    failure: Failure | None = None
    error: str = ""
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    """Every part by name, weighted and shared."""

    @property
    def ok(self) -> bool:
        """Whether the output parsed and passed its check (for a tool: whether it answered)."""
        return bool(self.value.get("ok", False))

    @property
    def output(self) -> object:
        """The parsed output of a role; the whole value of a tool."""
        return self.value.get("output", self.value)

    @property
    def turn(self) -> int:
        """Turn of the innermost loop, 0 outside loops."""
        return list(self.turns.values())[-1] if self.turns else 0

    @property
    def index(self) -> int:
        """Item of the innermost forEach, 0 outside."""
        return list(self.items.values())[-1] if self.items else 0

    @property
    def reward(self) -> float:
        """Sum of the parts."""
        return float(sum(self.rewards.values()))


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One row of data: an id and the input fields by name."""

    id: str
    fields: Mapping[str, object]


@dataclass(slots=True)
class Trajectory:
    """Everything recorded for one run of the workflow on one task."""

    task: TaskRow
    step: int
    rollout: int
    phase: str = "train"
    visits: list[Visit] = field(default_factory=list[Visit])
    """In program order."""
    state: Mapping[str, object] = field(default_factory=dict[str, object])
    nodes: Mapping[str, object] = field(default_factory=dict[str, object])
    """Final values of the nodes by name, as reward expressions see them."""
    result: object = ""
    metrics: Mapping[str, float | Sequence[float]] = field(default_factory=dict[str, "float | Sequence[float]"])
    score: float | None = None
    failure: Failure | None = None
    error: str = ""
    started_s: float = 0.0
    ended_s: float = 0.0

    @property
    def id(self) -> str:
        """Unique within an attempt."""
        return f"{self.phase}/{self.step}/{self.task.id}/{self.rollout}"

    @property
    def calls(self) -> int:
        """Number of LLM generations."""
        return sum(len(visit.calls) for visit in self.visits)


@dataclass(frozen=True, slots=True)
class Row:
    """What a model group learns about one visit: names and numbers. `foreign` rows only form the baseline."""

    visit: str
    """Trajectory id and visit key."""
    calls: tuple[str, ...]
    """Ids of the calls whose tokens carry the advantage; empty when foreign."""
    role: str
    trajectory: str
    reward: float
    """The visit's return: own reward, or rewards to go."""
    group: str
    """Comparison group; equal strings form each other's baseline."""
    foreign: bool = False
