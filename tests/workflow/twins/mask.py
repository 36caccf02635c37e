"""Workflow 05 as plain Python."""

from __future__ import annotations

from collections.abc import Mapping

from unitymas.workflow import Agents, Tools, turns

Step = dict[str, object]


async def run(task: Mapping[str, object], agents: Agents, tools: Tools) -> object:
    """Plan, answer, then up to three turns of search that each change one step of the plan and answer again."""
    steps: list[Step] = (await agents.planner.at("plan")()).output["steps"]
    answer = (await agents.answerer.at("answer0")(state={"steps": steps, "answer": ""})).output
    for _ in turns("turns", 3):
        state = {"steps": steps, "answer": answer}
        query = (await agents.searcher.at("search")(state=state)).output
        if query == "END":
            break
        found = await tools.wiki.at("retrieve")(query=query)
        evidence = (await agents.summarizer.at("summary")(query=query, passages=found.passages)).output
        target = (await agents.updater.at("update")(state=state, query=query, evidence=evidence)).output
        steps = changed(steps, target, {"question": query, "answer": evidence})
        answer = (await agents.answerer.at("answer")(state={"steps": steps, "answer": answer})).output
    return answer


def changed(steps: list[Step], target: str, step: Step) -> list[Step]:
    """The steps with `t<number>` replaced, or with one more."""
    names = [f"t{number}" for number in range(len(steps))]
    if target not in names:
        return [*steps, step]
    return [step if name == target else old for name, old in zip(names, steps, strict=True)]
