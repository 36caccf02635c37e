"""Lengths: prompts and replies fit the models' contexts; models and their chat templates can be used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from unitymas.api.errors import BadInput, Finding
from unitymas.api.mapping import Model, ModelMappingSpec
from unitymas.api.records import ChatRole, Message, Segment
from unitymas.api.workflow import Role, WorkflowSpec
from unitymas.data.sources import Sources
from unitymas.expr.errors import ExpressionError
from unitymas.expr.template import Template

if TYPE_CHECKING:
    from unitymas.models.tokens import Tokens

AMPLE = 10**9
"""A budget that no prompt exceeds, in tokens."""


def declared(workflow: WorkflowSpec, mapping: ModelMappingSpec) -> Iterator[Finding]:
    """Replies leave room for a prompt in the contexts that the mapping gives."""
    for model in mapping.models:
        if model.context is not None:
            yield from _room(workflow, mapping, model, model.context)


def _room(workflow: WorkflowSpec, mapping: ModelMappingSpec, model: Model, context: int) -> Iterator[Finding]:
    for number, role in _played(workflow, mapping, model):
        most = role.sampling.max_tokens
        if most >= context:
            found = f"{most} tokens, with model `{model.name}`, whose context is {context}"
            path = f"spec.roles[{number}].sampling.maxTokens"
            yield Finding(
                "context", path, found, f"less than {context}: the prompt needs room too", kind="MultiAgentWorkflow"
            )


def _played(workflow: WorkflowSpec, mapping: ModelMappingSpec, model: Model) -> list[tuple[int, Role]]:
    return [
        (number, role)
        for number, role in enumerate(workflow.roles)
        if role.name in mapping.roles and mapping.model_of(role.name) == model.name
    ]


def model_folders(workflow: WorkflowSpec, mapping: ModelMappingSpec, sources: Sources) -> Iterator[Finding]:
    """What the folders of models in the run's sources say: their context, tokenizer and chat template.

    Models of the hub are left out: they may not be on this machine.
    """
    known = {source.name for source in sources.spec.sources}
    for number, model in enumerate(mapping.models):
        if not isinstance(model.source, str) or model.source not in known:
            continue
        try:
            folder = sources.path(model.source)
        except BadInput as error:
            yield from error.findings
            continue
        yield from _folder(folder, f"spec.models[{number}]", workflow, mapping, model)


def _folder(
    folder: Path, path: str, workflow: WorkflowSpec, mapping: ModelMappingSpec, model: Model
) -> Iterator[Finding]:
    config = folder / "config.json"
    if not config.is_file():
        expected = "a Hugging Face folder: config.json, weights, tokenizer"
        yield Finding("no-model", f"{path}.source", f"no {config}", expected)
        return
    own = _own_context(config)
    if own is not None and model.context is not None and model.context > own:
        yield Finding("context", f"{path}.context", f"{model.context}", f"at most {own}, as {config} says")
    elif own is not None and model.context is None:
        yield from _room(workflow, mapping, model, own)
    yield from _template(folder, path, _played(workflow, mapping, model), model, model.context or own)


def _own_context(config: Path) -> int | None:
    """Most tokens by the model's configuration; None where it does not say."""
    read = cast("dict[str, Any]", json.loads(config.read_text(encoding="utf-8")))
    length = read.get("max_position_embeddings", read.get("text_config", {}).get("max_position_embeddings"))
    return length if isinstance(length, int) else None


def _template(
    folder: Path, path: str, played: list[tuple[int, Role]], model: Model, context: int | None
) -> Iterator[Finding]:
    from unitymas.models.tokens import Tokens  # transformers: only where a tokenizer is looked at

    expected = "a fast tokenizer whose chat template takes the roles' messages"
    said = Message("user", (Segment("hello", variable=False),))
    chats = {(Message("system", said.segments), said) if role.system is not None else (said,) for _, role in played}
    try:
        tokens = Tokens.open(folder, model=model.name)
        for chat in sorted(chats, key=len):
            tokens.encode(chat, budget=AMPLE)
    except (ValueError, OSError) as error:
        yield Finding("chat-template", f"{path}.source", str(error), expected)
        return
    if context is None:
        return
    for number, role in played:
        yield from _literal(tokens, f"spec.roles[{number}].prompt", role, model.name, context)


def _literal(tokens: Tokens, path: str, role: Role, model: str, context: int) -> Iterator[Finding]:
    """A prompt's own text leaves room for the reply; only variables are ever cut."""
    room = context - role.sampling.max_tokens
    given: list[tuple[ChatRole, str]] = [("user", role.prompt)]
    if role.system is not None:
        given.insert(0, ("system", role.system))
    try:
        chat = [Message(name, (Segment(Template(text).always(), variable=False),)) for name, text in given]
    except ExpressionError:  # has its own finding
        return
    size = len(tokens.encode(chat, budget=AMPLE).ids)
    if size > room > 0:  # no room at all has its own finding
        found = f"{size} tokens without variables, with model `{model}`, whose context is {context}"
        expected = f"at most {room}: maxTokens is {role.sampling.max_tokens}"
        yield Finding("context", path, found, expected, kind="MultiAgentWorkflow")
