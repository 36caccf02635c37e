"""Chats to token ids and back, for one model: what a passage says never becomes a control token."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, cast

import jinja2
from transformers import AutoTokenizer

from unitymas.api.records import Message, Segment

PLACEHOLDER = "\ue000{}\ue001"
"""Stands for a message's content while the template is applied: private-use characters, which no template holds."""
PLACED = re.compile("\ue000(\\d+)\ue001")
PROBES = (("user",), ("user", "assistant", "user"))
"""Chats that every template must take; a system message is looked at when one is used, for some templates have none."""
CACHED_TEXTS = 4096


@dataclass(frozen=True, slots=True)
class Encoded:
    """A prompt as token ids."""

    ids: tuple[int, ...]
    truncated: int
    """Tokens of variables that were left out."""


class Tokens:
    """One model's tokenizer and chat template.

    `tokenizer`: a fast tokenizer of Hugging Face. `model`: its name, for messages. `eos`: further ids that end a
    reply, besides the tokenizer's own. Raises ValueError when there is no usable chat template or no end token.

    Template text is tokenised with control tokens; each segment is tokenised on its own and without them, so ids
    can differ from those of the whole text where a merge would cross a boundary.
    """

    def __init__(self, tokenizer: Any, *, model: str, eos: Collection[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._model = model
        own = () if tokenizer.eos_token_id is None else (cast(int, tokenizer.eos_token_id),)
        self.eos = frozenset(own) | frozenset(eos)
        """Ids that end a reply."""
        self._require(bool(self.eos), "no end token", "set eos_token in tokenizer_config.json")
        self.pad = min(self.eos) if tokenizer.pad_token_id is None else cast(int, tokenizer.pad_token_id)
        """Fills up batches; masked, so its value never matters."""
        self._require(tokenizer.is_fast, "a slow tokenizer", "add tokenizer.json (a fast tokenizer)")
        self._plain = copy.deepcopy(tokenizer.backend_tokenizer)
        self._plain.encode_special_tokens = True  # read control tokens as ordinary text
        self._control = _control_tokens(tokenizer) | {id_: cast(str, tokenizer.decode([id_])) for id_ in self.eos}
        spellings = sorted(filter(None, self._control.values()), key=len, reverse=True)
        self._spelt = re.compile("|".join(map(re.escape, spellings)) or "(?!)")
        self._literal = lru_cache(CACHED_TEXTS)(self._text)
        self._frame = lru_cache(256)(self._render)
        self._require(bool(tokenizer.chat_template), "no chat template", "add chat_template.jinja beside the tokenizer")
        for roles in PROBES:
            self._frame(roles)

    @classmethod
    def open(cls, folder: Path, *, model: str) -> Tokens:
        """The tokenizer of a Hugging Face folder, with the end tokens of its generation_config.json."""
        config = folder / "generation_config.json"
        given: object = json.loads(config.read_text()).get("eos_token_id") if config.exists() else None
        ends = cast("list[int]", given if isinstance(given, list) else [] if given is None else [given])
        loader = cast(Any, AutoTokenizer)
        return cls(loader.from_pretrained(str(folder), local_files_only=True), model=model, eos=ends)

    def encode(self, messages: Sequence[Message], *, budget: int) -> Encoded:
        """The prompt up to the reply, in at most `budget` tokens.

        Where it is longer, the middles of the longest variables are cut, all to one length; literal text and the
        template stay whole. Raises ValueError when those alone are too long, or the template cannot say the chat.
        """
        frame = self._frame(tuple(message.role for message in messages))
        parts: list[tuple[tuple[int, ...], bool]] = []
        for piece in frame:
            parts += [(piece, False)] if isinstance(piece, tuple) else self._segments(messages[piece].segments)
        lengths = [len(ids) for ids, variable in parts if variable]
        fixed = sum(len(ids) for ids, variable in parts if not variable)
        if fixed > budget:
            raise ValueError(
                f"model {self._model}: the prompt has {fixed} tokens without its variables; at most {budget} fit "
                "(context less maxTokens): shorten the prompt, or lower maxTokens"
            )
        cap = common_length(lengths, budget - fixed)
        ids = tuple(id_ for part, variable in parts for id_ in (_ends(part, cap) if variable else part))
        return Encoded(ids, fixed + sum(lengths) - len(ids))

    def decode(self, ids: Sequence[int], *, stop: Sequence[str] = ()) -> str:
        """The text of a reply: without control tokens, and up to the first of the stop strings."""
        kept = [int(id_) for id_ in ids if id_ not in self.eos]
        text = cast(str, self._tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        return text[: min((at for at in map(text.find, stop) if at >= 0), default=len(text))]

    def save(self, folder: Path) -> None:
        """Write the tokenizer, with its chat template, as a Hugging Face folder has it."""
        self._tokenizer.save_pretrained(str(folder))

    def _segments(self, segments: Sequence[Segment]) -> Iterator[tuple[tuple[int, ...], bool]]:
        """Ids of each segment, with whether it may be cut; literals that touch are tokenised as one."""
        for variable, group in groupby(segments, key=lambda segment: segment.variable):
            if variable:
                yield from ((self._text(segment.text), True) for segment in group)
            else:
                yield self._literal("".join(segment.text for segment in group)), False

    def _text(self, text: str) -> tuple[int, ...]:
        """Ids of text in which nothing is a control token."""
        ids = cast("list[int]", self._plain.encode(text, add_special_tokens=False).ids)
        if self._control.keys().isdisjoint(ids):
            return tuple(ids)
        # A vocabulary can hold a control token as an ordinary word: break the word after its first character.
        breaks = [0, *(match.start() + 1 for match in self._spelt.finditer(text)), len(text)]
        pieces = (text[start:end] for start, end in pairwise(breaks))
        broken = (id_ for piece in pieces for id_ in self._plain.encode(piece, add_special_tokens=False).ids)
        return tuple(id_ for id_ in broken if id_ not in self._control)

    def _render(self, roles: tuple[str, ...]) -> tuple[tuple[int, ...] | int, ...]:
        """The template around a chat of these roles: ids of its own text, and indices of messages between them."""
        chat = [{"role": role, "content": PLACEHOLDER.format(i)} for i, role in enumerate(roles)]
        said = ", ".join(roles)
        try:
            text = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        except jinja2.TemplateError as error:
            raise ValueError(
                f"model {self._model}: its chat template takes no chat of {said}: {error}; "
                "change the roles' messages, or the template"
            ) from error
        parts = PLACED.split(cast(str, text))
        self._require(
            sorted(map(int, parts[1::2])) == list(range(len(roles))),
            f"a chat template that does not say each message of a chat of {said} exactly once",
            "use one that puts message['content'] as it is",
        )
        encode = self._tokenizer.encode
        return tuple(
            int(part) if i % 2 else tuple(cast("list[int]", encode(part, add_special_tokens=False) if part else []))
            for i, part in enumerate(parts)
        )

    def _require(self, held: bool, found: str, hint: str) -> None:
        if not held:
            raise ValueError(f"model {self._model}: found {found}; {hint}")


def common_length(lengths: Sequence[int], room: int) -> int:
    """The largest length to which all longer ones must be cut, so that the sum is at most `room` (which is >= 0)."""
    if sum(lengths) <= room:
        return max(lengths, default=0)
    cap = 0
    for i, length in enumerate(ordered := sorted(lengths)):
        cap = room // (len(ordered) - i)
        if length > cap:
            break
        room -= length
    return cap


def _ends(ids: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Head and tail, `length` tokens in all; the head has the odd one."""
    if len(ids) <= length:
        return ids
    tail = length // 2
    return ids[: length - tail] + ids[len(ids) - tail :]


def _control_tokens(tokenizer: Any) -> dict[int, str]:
    """Ids and spellings of the tokens that text must never become; `unk` is what unknown words are, so it may."""
    added = cast("dict[int, Any]", tokenizer.added_tokens_decoder)
    return {id_: str(token) for id_, token in added.items() if token.special and id_ != tokenizer.unk_token_id}
