"""Other models for the quickstart, made from its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from support.runs import QUICKSTART

MODEL = QUICKSTART / "model"


def larger_model(folder: Path) -> Path:
    """Random weights: twice as wide, three times as deep, with 3000 more words; everything else the quickstart's."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    shutil.copytree(MODEL, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    words: dict[str, int] = tokenizer["model"]["vocab"]
    words.update({f"word{number}": len(words) + number for number in range(3000)})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    config: Any = AutoConfig.from_pretrained(str(MODEL))
    config.update({"vocab_size": len(words), "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 6})
    torch.manual_seed(0)
    model: Any = AutoModelForCausalLM.from_config(config)
    model.save_pretrained(str(folder))
    return folder


def shuffled_vocabulary(folder: Path) -> Path:
    """The quickstart's model with other token ids: its words are numbered the other way round, its weights follow."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(MODEL, folder)
    tokenizer = json.loads((MODEL / "tokenizer.json").read_text("utf-8"))
    words: dict[str, int] = tokenizer["model"]["vocab"]
    control = {token["id"] for token in tokenizer["added_tokens"]}
    plain = sorted(set(words.values()) - control)
    new = {**{number: number for number in control}, **dict(zip(plain, reversed(plain), strict=True))}
    tokenizer["model"]["vocab"] = {word: new[number] for word, number in words.items()}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    weights = load_file(MODEL / "model.safetensors")
    old = sorted(new, key=lambda number: new[number])
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        if name in weights:
            weights[name] = weights[name][old].contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
