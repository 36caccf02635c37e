"""What a model's folder says: its context, its tokenizer, its chat template."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from unitymas.api.errors import Finding
from unitymas.api.load import read
from unitymas.check.run import check

pytestmark = pytest.mark.integration
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for file in QUICKSTART.glob("*.yaml"):
        shutil.copy(file, tmp_path)
    shutil.copytree(QUICKSTART / "model", tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    return tmp_path


def findings(project: Path) -> list[Finding]:
    return check(read([project]), needs=["tokenizer"])


def change(file: Path, **fields: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def test_the_quickstarts_model_is_right(project: Path):
    assert findings(project) == []


def test_a_folder_that_is_not_there_is_told_once(project: Path):
    shutil.rmtree(project / "model")
    assert [(finding.check, finding.kind, finding.path) for finding in findings(project)] == [
        ("sources", "TrainingRun", "spec.sources[0]")
    ]


def test_a_folder_without_a_model_is_told(project: Path):
    (project / "model" / "config.json").unlink()
    assert {(finding.check, finding.kind) for finding in findings(project)} == {("no-model", "ModelMapping")}


def test_a_reply_longer_than_the_models_own_context_is_told(project: Path):
    change(project / "model" / "config.json", max_position_embeddings=8)
    assert [(finding.check, finding.path) for finding in findings(project)] == [
        ("context", "spec.roles[0].sampling.maxTokens"),
        ("context", "spec.roles[1].sampling.maxTokens"),
    ]


def test_a_tokenizer_without_a_chat_template_is_told(project: Path):
    change(project / "model" / "tokenizer_config.json", chat_template=None)
    told = findings(project)
    assert {finding.check for finding in told} == {"chat-template"}
    assert "no chat template" in told[0].found


def test_a_chat_template_that_refuses_system_messages_is_told(project: Path):
    template = (
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system messages') }}{% endif %}"
        "{{ m['content'] }}{% endfor %}"
    )
    change(project / "model" / "tokenizer_config.json", chat_template=template)
    assert {finding.check for finding in findings(project)} == {"chat-template"}


def test_a_prompt_whose_own_text_never_fits_is_told(project: Path):
    change(project / "model" / "config.json", max_position_embeddings=12)
    workflow = next(file for file in project.glob("*.yaml") if "MultiAgentWorkflow" in file.read_text())
    workflow.write_text(re.sub(r"maxTokens: \d+", "maxTokens: 11", workflow.read_text()))
    assert [(finding.check, finding.kind, finding.path) for finding in findings(project)] == [
        ("context", "MultiAgentWorkflow", "spec.roles[0].prompt"),
        ("context", "MultiAgentWorkflow", "spec.roles[1].prompt"),
    ]
