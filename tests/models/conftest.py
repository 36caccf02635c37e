"""A tiny random Llama with a word-level tokenizer and chat template, as a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

WORDS = ("red", "green", "blue", "one", "two", "three", "yes", "no", "left", "right", "apple", "pear", "plum", "fig")
CONTROL = ("<pad>", "<unk>", "<|im_start|>", "<|im_end|>", "system", "user", "assistant")
TEMPLATE = (
    "{% for message in messages %}<|im_start|> {{ message['role'] }} {{ message['content'] }} <|im_end|> {% endfor %}"
    "{% if add_generation_prompt %}<|im_start|> assistant{% endif %}"
)


def build_tiny_model(folder: Path, *, seed: int) -> Path:
    """Write it: 2 layers of width 32, tied embeddings, about 20,000 weights."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {word: index for index, word in enumerate((*CONTROL, *WORDS))}
    words: Any = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = WhitespaceSplit()
    tokenizer: Any = PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(str(folder))
    config: Any = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(seed)
    model: Any = LlamaForCausalLM(config)
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that several tests read and none writes."""
    return build_tiny_model(tmp_path_factory.mktemp("tiny"), seed=0)
