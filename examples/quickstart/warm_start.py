"""Make the quickstart's tiny model: one that can read, and then gets bad habits for reinforcement learning to undo.

Phase A teaches reading: a careful team in worlds of shuffled names, where every fact is false, and drills in copying.
Phase B teaches carelessness: a careless team, asked about training countries, with only their documents to search.

    python examples/quickstart/warm_start.py [--out FOLDER]        # 4.5 CPU minutes, one thread
"""

# torch and transformers are typed in part only: their models and tokenizers are Any here.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from team import HERE, Call, Careless, Library, Reply, Team, Trajectory, careful, load_team, play
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from world import SENTENCES, Country, Question, countries, documents, questions, shuffled, split

PAD, END, START, UNKNOWN = "<pad>", "<|im_end|>", "<|im_start|>", "<unk>"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|> {{ message['role'] }} {{ message['content'] }} <|im_end|> {% endfor %}"
    "{% if add_generation_prompt %}<|im_start|> assistant{% endif %}"
)


SEED = 1
"""Like the settings, chosen on the dev countries."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Size of the model and length of the phases."""

    layers: int = 2
    hidden: int = 128
    heads: int = 4
    batch: int = 48
    reading_steps: int = 4_000
    reading_rate: float = 3e-3
    world_questions: int = 160
    """Questions asked in one shuffled world before the next is made."""
    careless_steps: int = 60
    careless_rate: float = 9e-4
    skill: float = 0.5
    """How often the careless team is right."""


@dataclass(frozen=True, slots=True)
class Example:
    """One reply to learn, as token ids; `reply` ends with the end token."""

    prompt: list[int]
    reply: list[int]


def names(world: Sequence[Country]) -> list[str]:
    """Every name and value of a world, sorted."""
    keys = [field.name for field in fields(Country) if field.name not in ("code", "cities")]
    return sorted({getattr(c, key) for c in world for key in keys} | {city for c in world for city in c.cities})


def make_tokenizer(world: Sequence[Country], team: Team) -> Any:
    """One token for each word of the documents, the questions and the team's prompts."""
    asked = questions(world)
    texts = [d.text for d in documents(world)] + [q.text for q in asked]
    for role in (team.searcher, team.answerer):
        for turn in range(team.hops):
            for message in Call(role, turn, asked[0], ()).messages():
                texts += [message["role"], message["content"]]
    vocabulary = {word for text in texts for word in text.split()} | {"assistant", "country", *SENTENCES}
    ids = {word: i for i, word in enumerate([PAD, END, START, UNKNOWN, *sorted(vocabulary)])}
    tokenizer = Tokenizer(models.WordLevel(vocab=ids, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        additional_special_tokens=[START],
        model_max_length=512,
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = CHAT_TEMPLATE
    return made


def make_model(tokenizer: Any, settings: Settings) -> Any:
    """A small Llama with random weights."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=settings.hidden,
            intermediate_size=3 * settings.hidden,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            num_key_value_heads=settings.heads,
            max_position_embeddings=512,
            initializer_range=0.08,  # the default of large models is too small for this width
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


class WarmStart:
    """The two phases on one model, tokenizer and random generator."""

    def __init__(self, world: Sequence[Country], settings: Settings, seed: int) -> None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)  # sums keep their order, so that a seed gives the same weights again
        self.world, self.settings, self.rng = world, settings, random.Random(seed)
        self.team = load_team()
        self.tokenizer = make_tokenizer(world, self.team)
        self.model = make_model(self.tokenizer, settings)
        self.names = names(world)
        self._optimizer = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)

    def learn_to_read(self) -> None:
        """Phase A."""
        s = self.settings
        batches, losses = self._batches(self._reading_examples), list[float]()
        for step in range(s.reading_steps):
            warm_up = min(1.0, (step + 1) / 100)
            losses.append(self._step(next(batches), s.reading_rate * warm_up * max(0.1, 1 - step / s.reading_steps)))
            if len(losses) % 500 == 0:
                print(f"reading, step {step + 1}: mean loss {mean(losses[-500:]):.3f}", flush=True)

    def learn_bad_habits(self, train: Sequence[Country]) -> None:
        """Phase B."""
        s = self.settings
        library, asked = Library(documents(train), self.team.top_k), questions(train)
        team = Careless(s.skill, self.rng, frozenset(" ".join(self.names).split()))

        def examples() -> list[Example]:
            return self._examples(play(self.rng.sample(asked, min(len(asked), 16 * s.batch)), self.team, library, team))

        batches = self._batches(examples)
        for step in range(s.careless_steps):
            self._step(next(batches), s.careless_rate * max(0.1, 1 - step / s.careless_steps))

    def _reading_examples(self) -> list[Example]:
        """A careful team's replies in a new shuffled world, and as many drills; templates are asked equally often."""
        world, rng = shuffled(self.world, self.rng), self.rng
        by_template: dict[tuple[str, str], list[Question]] = defaultdict(list)
        for question in questions(world):
            by_template[question.first, question.second].append(question)
        templates = sorted(by_template)
        asked = [rng.choice(by_template[rng.choice(templates)]) for _ in range(self.settings.world_questions)]
        told = self._examples(play(asked, self.team, Library(documents(world), self.team.top_k), careful))
        return told + [self._drill() for _ in told]

    def _examples(self, trajectories: Sequence[Trajectory]) -> list[Example]:
        calls = [pair for trajectory in trajectories for pair in trajectory.calls]
        end = self.tokenizer.eos_token_id
        prompts = prompt_ids(self.tokenizer, [call for call, _ in calls])
        replies = self.tokenizer([text for _, text in calls], add_special_tokens=False).input_ids
        return [Example(prompt, [*reply, end]) for prompt, reply in zip(prompts, replies, strict=True)]

    def _drill(self) -> Example:
        """A list of names and its first words: say the rest."""
        count = self.rng.randint(4, 7)
        listed = " ".join(self.rng.sample(self.names, count)).split()
        if self.rng.random() < 0.5:  # single words too, else a name's second word is only ever seen after its first
            self.rng.shuffle(listed)
        given = self.rng.randint(1, 4)
        ids = self.tokenizer.convert_tokens_to_ids
        return Example(ids([START, *listed, END, *listed[:given]]), ids([*listed[given:], END]))

    def _batches(self, examples: Callable[[], list[Example]]) -> Iterator[list[Example]]:
        """Batches of examples of like length, in random order, for ever."""
        size = self.settings.batch
        while True:
            pool = sorted(examples(), key=lambda e: len(e.prompt) + len(e.reply) + self.rng.random())
            batches = [pool[i : i + size] for i in range(0, len(pool) - size + 1, size)]
            self.rng.shuffle(batches)
            yield from batches

    def _step(self, batch: Sequence[Example], rate: float) -> float:
        """One AdamW step on the replies' tokens; returns the mean loss in nats."""
        width = max(len(e.prompt) + len(e.reply) for e in batch)
        ids = torch.full((len(batch), width), self.model.config.pad_token_id)
        labels = torch.full((len(batch), width), -100)
        for i, e in enumerate(batch):
            end = len(e.prompt) + len(e.reply)
            ids[i, :end] = torch.tensor(e.prompt + e.reply)
            labels[i, len(e.prompt) : end] = torch.tensor(e.reply)
        hidden = self.model.model(ids).last_hidden_state[:, :-1]
        wanted = labels[:, 1:] != -100
        loss = cross_entropy(self.model.lm_head(hidden[wanted]), labels[:, 1:][wanted])
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        return loss.item()


def prompt_ids(tokenizer: Any, calls: Sequence[Call]) -> list[list[int]]:
    """The token ids of each call's chat, up to the reply."""
    chats = [call.messages() for call in calls]
    return tokenizer.apply_chat_template(chats, add_generation_prompt=True, return_dict=False)


def replies(model: Any, tokenizer: Any, *, max_tokens: int, greedy: bool) -> Reply:
    """A team played by one model."""

    sampling: dict[str, Any] = {"do_sample": False} if greedy else {"do_sample": True, "top_k": 0}

    @torch.inference_mode()
    def reply(calls: Sequence[Call]) -> list[str]:
        batch = tokenizer.pad({"input_ids": prompt_ids(tokenizer, calls)}, padding_side="left", return_tensors="pt")
        ids = model.generate(**batch, max_new_tokens=max_tokens, **sampling)
        return tokenizer.batch_decode(ids[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)

    return reply


def report(title: str, work: WarmStart, asked: Sequence[Country]) -> None:
    """Print F1 and hits of the model on questions about some countries, with the whole corpus to search."""
    library = Library(documents(work.world), work.team.top_k)
    for greedy in (False, True):
        reply = replies(work.model, work.tokenizer, max_tokens=work.team.max_tokens, greedy=greedy)
        rows = play(questions(asked), work.team, library, reply)
        f1, *hits = (mean(values) for values in zip(*((row.f1, *row.hits) for row in rows), strict=True))
        found = " ".join(f"{hit:.3f}" for hit in hits)
        print(f"{title} {'greedy' if greedy else 'sampled'} f1 {f1:.3f}, documents found {found}", flush=True)


def main() -> None:
    """Make the model and write it with its tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "model")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    world = countries()
    parts = split(world)
    work = WarmStart(world, Settings(), options.seed)
    print(f"{work.model.num_parameters()} parameters, {len(work.tokenizer)} tokens")
    work.learn_to_read()
    report("dev, can read:", work, parts["dev"])
    work.learn_bad_habits(parts["train"])
    report("dev, first weights:", work, parts["dev"])
    work.model.save_pretrained(options.out)
    work.tokenizer.save_pretrained(options.out, save_jinja_files=False)


if __name__ == "__main__":
    main()
