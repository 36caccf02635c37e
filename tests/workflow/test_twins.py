"""A workflow of nodes and the same as plain Python leave the same records and earn the same rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from support.field import field_workflow
from support.playing import Streaming, by_hash, played, record_of
from unitymas.api.records import TaskRow
from unitymas.models.engines.scripted import ScriptedGroup
from unitymas.tools.retriever import Retriever
from workflow.twins import chat, mask, proposer

PLANS = ['{"steps": [{"question": "who?", "answer": "Ada"}], "final": "Ada"}', '{"steps": [], "final": ""}', "no plan"]
SCRIPTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "05": {
        "planner": PLANS,
        "searcher": ["<search>who wrote it</search>", "a bare query", "<search>END</search>"],
        "summarizer": ["<evidence>Ada wrote it</evidence>", "<evidence>" + "word " * 80 + "</evidence>", "bare"],
        "updater": ["add", "t0", "t7", "nonsense"],
        "answerer": ["<final_answer>Ada</final_answer>", "<final_answer>Bob</final_answer>", "Ada Lovelace"],
    },
    "09": {
        "proposer": ['{"problem": "2+2", "answer": "4"}', '{"problem": "1/2", "answer": "0.5"}', "nothing"],
        "solver": ["<answer>4</answer>", "<answer>5</answer>", "4"],
    },
    "12": {
        "manager": ["coder", "critic", "tester", "done", "nobody", "coder"],
        **{speaker: [f"{speaker} says yes", "yes"] for speaker in ("coder", "critic", "tester")},
    },
}
FIELDS = {"question": "who wrote it?", "answers": ["Ada Lovelace", "yes"], "topic": "sums"}
CORPUS = [{"id": str(at), "title": name, "text": f"{name} wrote it"} for at, name in enumerate(("Ada", "Bob", "Cy"))]
TWINS: Mapping[str, Any] = {"05": mask.run, "09": proposer.run, "12": chat.run}


@pytest.mark.parametrize("number", TWINS)
@pytest.mark.parametrize("disorder", [False, True])
def test_the_twin_leaves_the_same_records_and_earns_the_same_rewards(number: str, disorder: bool) -> None:
    tasks = [TaskRow(f"t{at}", FIELDS) for at in range(12)]
    script = by_hash(SCRIPTS[number], seed=5)
    group = Streaming("m", script, Random(1)) if disorder else ScriptedGroup("m", script)
    tools = {"wiki": Retriever(CORPUS, top_k=5)}
    both: list[list[dict[str, Any]]] = []
    for code in (None, TWINS[number]):
        one = field_workflow(number, code=code)
        trajectories = played(one.workflow, group, tasks, tools=tools, rollouts=4, rewards=one.rewards)
        both.append([record_of(trajectory) for trajectory in trajectories])
    assert both[0] == both[1]
    lengths = {len(record["visits"]) for record in both[0]}
    rewards = {tuple(visit["rewards"].values()) for record in both[0] for visit in record["visits"]}
    assert len(lengths) > 1  # the script reaches ends of several kinds
    assert len(rewards) > 2
