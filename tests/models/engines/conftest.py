"""A tiny model with a byte-level tokenizer, made once a session; torch is imported only where a test asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CORPUS = ["the city of passages, answer in one word <answer>paris</answer>; where is the seat of government?"]


@pytest.fixture(scope="session")
def byte_tokenizer() -> Any:
    """Byte-level BPE, trained on a sentence, with ChatML's control tokens and template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(CORPUS, trainer)
    wrapped: Any = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    wrapped.chat_template = CHATML
    return wrapped


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory, byte_tokenizer: Any) -> Path:
    """A Hugging Face folder: a random Llama of 2 layers, hidden 32, tied, with the byte-level tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("tiny-llama")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(byte_tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=byte_tokenizer.eos_token_id,
        pad_token_id=byte_tokenizer.pad_token_id,
    )
    model: Any = LlamaForCausalLM(config)
    model.save_pretrained(str(folder))
    byte_tokenizer.save_pretrained(str(folder))
    return folder
