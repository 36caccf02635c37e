"""Mappings: every role has a model, every model a use, and what is trained can be."""

from __future__ import annotations

from collections.abc import Iterator

from unitymas.api.errors import Finding
from unitymas.api.mapping import Model, ModelMappingSpec, RoleModel
from unitymas.api.run import TrainingRunSpec
from unitymas.api.workflow import WorkflowSpec
from unitymas.check.names import named, repeated


def trained_roles(mapping: ModelMappingSpec) -> list[str]:
    """The roles whose visits are trained on, in the mapping's order; those of unknown models left out."""
    known = {model.name for model in mapping.models}
    return [role for role in mapping.roles if mapping.model_of(role) in known and mapping.trains(role)]


def models(mapping: ModelMappingSpec) -> Iterator[Finding]:
    """Models have names of their own and are played; roles name models; adapters name a base with weights."""
    yield from repeated([model.name for model in mapping.models], "spec.models")
    known = {model.name: model for model in mapping.models}
    for role, given in mapping.roles.items():
        name, path = mapping.model_of(role), f"spec.roles.{role}" + (".model" if isinstance(given, RoleModel) else "")
        if name not in known:
            yield Finding("unknown-model", path, *named(name, list(known), "a model of spec.models"))
        elif _asks_to_train(given) and not known[name].trained:
            expected = f"false: model `{name}` is served only"
            yield Finding("frozen-model", f"spec.roles.{role}.train", "`true`", expected)
    for number, model in enumerate(mapping.models):
        yield from _adapter(model, f"spec.models[{number}].adapterOf", known)
    yield from _unused(mapping)


def _unused(mapping: ModelMappingSpec) -> Iterator[Finding]:
    """An endpoint costs nothing while nobody asks it; where a name is wrong, the one meant would look unused."""
    used = {mapping.model_of(role) for role in mapping.roles}
    used |= {model.adapter_of for model in mapping.models if model.adapter_of is not None}
    if used - {model.name for model in mapping.models}:
        return
    for number, model in enumerate(mapping.models):
        if model.name not in used and model.endpoint is None:
            found = f"`{model.name}`, which no role plays"
            yield Finding("unused-model", f"spec.models[{number}].name", found, "a model that spec.roles names")


def _asks_to_train(given: str | RoleModel) -> bool:
    return isinstance(given, RoleModel) and "train" in given.model_fields_set and given.train


def _adapter(model: Model, path: str, known: dict[str, Model]) -> Iterator[Finding]:
    if model.adapter_of is None:
        return
    bases = [name for name, base in known.items() if base.source is not None]
    if model.adapter_of not in bases:
        yield Finding("unknown-model", path, *named(model.adapter_of, bases, "a model with a source"))


def every_role(mapping: ModelMappingSpec, workflow: WorkflowSpec) -> Iterator[Finding]:
    """Every role of the workflow is mapped, and no other."""
    roles = [role.name for role in workflow.roles]
    for role in roles:
        if role not in mapping.roles:
            expected = f"a model for every role of the workflow: {', '.join(roles)}"
            yield Finding("unmapped-role", "spec.roles", f"no model for `{role}`", expected)
    for role in mapping.roles:
        if role not in roles:
            yield Finding("unknown-role", f"spec.roles.{role}", *named(role, roles, "a role of the workflow"))


def trained(mapping: ModelMappingSpec, run: TrainingRunSpec) -> Iterator[Finding]:
    """Something is trained; a critic is there for gae only, and for a model that is trained."""
    if not trained_roles(mapping):
        yield Finding("nothing-to-train", "spec.roles", "no role that trains a model", "at least one")
    estimator = run.algorithm.estimator
    for number, model in enumerate(mapping.models):
        if model.critic is None:
            continue
        path = f"spec.models[{number}].critic"
        if estimator != "gae":
            hint = "set spec.algorithm.estimator to gae, or leave the critic out"
            yield Finding("critic", path, f"a critic, with estimator {estimator}", "a critic with gae only", hint)
        elif not model.trained:
            yield Finding("critic", path, "a critic of a model that is served only", "a critic of a trained model")


def unbiased_sampling(workflow: WorkflowSpec, mapping: ModelMappingSpec) -> Iterator[Finding]:
    """No trained role samples from another distribution than its own: the importance ratio would be biased."""
    trained_ = trained_roles(mapping)
    for number, role in enumerate(workflow.roles):
        filters = (("topP", role.sampling.top_p, 1.0), ("topK", role.sampling.top_k, 0))
        for field, value, off in filters:
            if role.name in trained_ and value != off:
                path = f"spec.roles[{number}].sampling.{field}"
                expected = f"{off:g} for a role that is trained: a filter biases the importance ratio"
                yield Finding("biased-sampling", path, f"`{value:g}`", expected)
        if role.name in trained_ and role.sampling.temperature == 0:
            path = f"spec.roles[{number}].sampling.temperature"
            expected = "above 0 for a role that is trained: greedy replies are all alike, so nothing can be compared"
            hint = "evaluation is greedy without it (spec.evaluation.sampling)"
            yield Finding("biased-sampling", path, "`0`", expected, hint)
