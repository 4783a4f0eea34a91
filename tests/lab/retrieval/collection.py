"""Published collections, asked in every way that there is: `python -m tests.lab.retrieval --collection DIR`.

DIR is a collection or holds a folder for each. One has `root`, a manuals root, and `queries.jsonl`: `id`, `query`, and
`relevant`, which maps paths to grades. Where `root` has one manual the paths are those inside it; where it has several
they begin with the manual, as does the `id`, before a colon.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
import tempfile
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from responses_mcp.manuals.embeddings.word_vectors import WordVectors
from responses_mcp.testing import open_fake_api
from tests.lab.retrieval.watched import Watched, percentile, watched_server
from tests.manuals.plain_bm25 import FUNCTION_WORDS, PlainBM25
from tests.processes import COMMAND, environment

PROVIDERS = ("none", "wordllama", "api-fake")
CHOICES = ("longest", "rare", "none")  # of required terms
DEPTH = 50
LONGEST_QUERY = 10_000  # characters
MOST_ROWS = 20  # that manual_search gives
NOBODY_HAS = "zzqqxx"  # a required term without effect
WORD = re.compile("[A-Za-z0-9][A-Za-z0-9_.+-]*|[\u30a0-\u30ff]+|[\u3400-\u9fff々]+")
PATIENCE = {"time_ms": 300_000, "max_candidates": 2000}  # for a find that waits for the whole index

Row = dict[str, float]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the manual that it is about, and the paths that answer it with their grades."""

    text: str
    manual_id: str
    relevant: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Collection:
    """Files by the paths that the judgements call them, and questions."""

    root: Path
    files: Mapping[str, str]
    questions: Sequence[Question]
    manuals: Sequence[str]

    def path(self, manual_id: str, path: str) -> str:
        """Return what the judgements call a file of a manual."""
        return path if len(self.manuals) == 1 else f"{manual_id}/{path}"


def read_collection(folder: Path, limit: int) -> Collection:
    """Read a collection, with at most `limit` of its questions, evenly spread; 0 means all.

    Exits with a sentence about what is not as it should be.
    """
    root = folder / "root"
    if not (root.is_dir() and (folder / "queries.jsonl").is_file()):
        sys.exit(f"{folder} is no collection: it needs a folder root and a file queries.jsonl.")
    manuals = sorted(each.name for each in root.iterdir() if each.is_dir() and not each.name.startswith("."))
    if not manuals:
        sys.exit(f"{root} has no manuals: put the files into a folder in it.")
    base = root / manuals[0] if len(manuals) == 1 else root
    files = {
        file.relative_to(base).as_posix(): file.read_text(encoding="utf-8", errors="replace")
        for file in sorted(each for manual in manuals for each in (root / manual).rglob("*.md"))
    }
    questions: list[Question] = []
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8-sig").splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                questions.append(_question(json.loads(line), manuals, files))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                sys.exit(f"{folder / 'queries.jsonl'}, line {number}: {error!r}")
    if not questions:
        sys.exit(f"{folder / 'queries.jsonl'} has no questions.")
    if 0 < limit < len(questions):
        questions = [questions[number * len(questions) // limit] for number in range(limit)]
    return Collection(root, files, questions, manuals)


def _question(row: Mapping[str, Any], manuals: Sequence[str], files: Mapping[str, str]) -> Question:
    manual = manuals[0] if len(manuals) == 1 else row["id"].partition(":")[0]
    if manual not in manuals:
        raise ValueError(f"its id begins with no manual of root, which has {', '.join(manuals[:5])}")
    if lost := [path for path, grade in row["relevant"].items() if grade > 0 and path not in files]:
        raise ValueError(f"{lost[0]} is no .md file of root")
    if not 0 < len(row["query"].strip()) <= LONGEST_QUERY:
        raise ValueError(f"a query has 1 to {LONGEST_QUERY} characters")
    return Question(row["query"], manual, row["relevant"])


def quality(ranked: Sequence[str], relevant: Mapping[str, int]) -> Row:
    """Return nDCG@10 with exponential gain, recall at 10 and 50, MRR@10, and whether one of the first three is right."""
    grades = [relevant.get(path, 0) for path in ranked[:DEPTH]]
    right = [grade > 0 for grade in grades]
    wanted = sum(grade > 0 for grade in relevant.values())

    def gain(sorted_grades: Sequence[int]) -> float:
        return sum((2**grade - 1) / math.log2(place + 2) for place, grade in enumerate(sorted_grades[:10]))

    ideal = gain(sorted(relevant.values(), reverse=True))
    return {
        "nDCG@10": gain(grades) / ideal if ideal else 0.0,
        "R@10": sum(right[:10]) / wanted if wanted else 0.0,
        "R@50": sum(right) / wanted if wanted else 0.0,
        "MRR@10": 1 / (right.index(True) + 1) if any(right[:10]) else 0.0,
        "hit@3": float(any(right[:3])),
    }


class Terms:
    """Chooses required terms as a caller might, who knows the files (`rare`) or does not (`longest`)."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
        self._files: dict[str, int] = {}

    def chosen(self, choice: str, question: str) -> list[str]:
        if choice == "none":
            return [NOBODY_HAS]
        found = [word.rstrip(".-+") for word in WORD.findall(unicodedata.normalize("NFKC", question))]
        telling = [word for word in found if word.casefold() not in FUNCTION_WORDS and (len(word) > 1 or word > "z")]
        words = list(dict.fromkeys(telling)) or [NOBODY_HAS]
        if choice == "longest":
            return sorted(words, key=len, reverse=True)[:2]
        return sorted(words, key=self._rarity)[:2]

    def _rarity(self, word: str) -> tuple[bool, int]:
        word = word.casefold()
        if word not in self._files:
            self._files[word] = sum(word in text for text in self._texts)
        return self._files[word] == 0, self._files[word]


Ask = Callable[[Question], Awaitable[tuple[list[str], float]]]  # the ranked paths, and the seconds


async def asked(collection: Collection, ask: Ask) -> Row:
    """Ask every question; return the means, and the 50th and 95th percentile of the times in milliseconds."""
    each: list[Row] = []
    times: list[float] = []
    for question in collection.questions:
        paths, seconds = await ask(question)
        each.append(quality(list(dict.fromkeys(paths)), question.relevant))
        times.append(1000 * seconds)
    warm = times[1:] or times
    means = {name: statistics.fmean(one[name] for one in each) for name in each[0]}
    return means | {"p50": statistics.median(warm), "p95": percentile(warm, 0.95)}


async def ask_plain(collection: Collection) -> Row:
    """Ask plain BM25, in this process; its memory is not told."""
    bm25 = PlainBM25({path: f"{re.sub('[/_.-]', ' ', path)}\n{text}" for path, text in collection.files.items()})

    async def ask(question: Question) -> tuple[list[str], float]:
        began = trio.current_time()
        ranked = bm25.ranked(question.text)
        seconds = trio.current_time() - began
        await trio.lowlevel.checkpoint()
        inside = collection.path(question.manual_id, "")
        return [path for path in ranked if path.startswith(inside)], seconds

    return await asked(collection, ask)


async def ask_find(server: Watched, collection: Collection, terms: Terms, choice: str) -> Row:
    """Ask `manual_find`, with the required terms of a choice."""

    async def ask(question: Question) -> tuple[list[str], float]:
        asked = {
            "query": question.text,
            "manual_id": question.manual_id,
            "required_terms": terms.chosen(choice, question.text),
            "use_cache": False,
            "budget": PATIENCE,
            "inline_hits": {"limit": 5},
        }
        found, seconds = await server.call("manual_find", asked)
        page = {"trace_id": found["trace_id"], "kind": "integrated_top", "limit": DEPTH}
        hits, _ = await server.call("manual_hits", page)
        return [collection.path(question.manual_id, item["ref"]["path"]) for item in hits["items"]], seconds

    return await asked(collection, ask) | {"MiB": server.memory()[0] or math.nan}


async def ask_search(server: Watched, collection: Collection) -> Row:
    """Ask `manual_search`, of the manual that the question is about; it gives 20 rows, so R@50 is R@20."""

    async def ask(question: Question) -> tuple[list[str], float]:
        asked = {"query": question.text, "manual_id": question.manual_id, "limit": MOST_ROWS}
        found, seconds = await server.call("manual_search", asked)
        refs = [each["ref"] for each in found["results"]]
        return [collection.path(each["manual_id"], each["path"]) for each in refs], seconds

    return await asked(collection, ask) | {"MiB": server.memory()[0] or math.nan}


@asynccontextmanager
async def provided(provider: str) -> AsyncGenerator[dict[str, str]]:
    """Yield the environment that chooses a provider of vectors; `api-fake` is served meanwhile."""
    if provider != "api-fake":
        yield {"MANUALS_EMBEDDINGS_PROVIDER": provider}
        return
    model = WordVectors()
    async with open_fake_api(embed=lambda texts: model._embed(list(texts))) as api:
        yield {
            "MANUALS_EMBEDDINGS_PROVIDER": "api",
            "MANUALS_EMBEDDINGS_MODEL": "wordllama",
            "OPENAI_BASE_URL": api.base_url,
            "OPENAI_API_KEY": "sk-test-0123456789abcdef",
        }


async def make_index(home: Path, provider: str, env: Mapping[str, str]) -> None:
    """Make the index, and its vectors where there is a provider; what the command says goes to stderr."""
    options = [] if provider == "none" else ["--embed", "--yes"]
    command = [*COMMAND, "manuals", "index", *options]
    await trio.run_process(command, env=environment(home, **env), cwd=home, stdout=sys.stderr, stdin=b"")


async def rows_of(collection: Collection, provider: str) -> dict[str, Row]:
    """Ask a served process in every way; without a provider those by words, else those that compare meanings."""
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with provided(provider) as chosen:
            env = {**chosen, "MANUALS_ROOT": str(collection.root), "MANUALS_INDEX_DIR": str(Path(folder, "index"))}
            await make_index(Path(folder), provider, env)
            async with watched_server(**env) as server:
                listed, _ = await server.ask("tools/list")
                tools = {tool["name"] for tool in listed["result"]["tools"]}
                await server.call("manual_ls", {})
                terms = Terms(list(collection.files.values()))
                meaning = "" if provider == "none" else f" + {provider}"
                for choice in CHOICES if provider == "none" else ("none",):
                    rows[f"find, {choice}{meaning}"] = await ask_find(server, collection, terms, choice)
                if "manual_search" in tools:
                    rows[f"search{meaning}"] = await ask_search(server, collection)
                else:
                    print("the server lists no manual_search", file=sys.stderr)
    return rows


def line(name: str, figures: Row) -> str:
    """Return a line of the table: shares with three places, milliseconds and MiB with one."""
    places = dict.fromkeys(("p50", "p95", "MiB"), 1)
    cells = (f"{value:>9.{places.get(key, 3)}f}" for key, value in figures.items())
    return f"{name:<24}" + "".join(cells)


def measure(folder: Path, names: Sequence[str], providers: Sequence[str], limit: int, report: Path | None) -> None:
    """Print a table a collection; write all figures to `report`, if there is one."""
    found: dict[str, dict[str, Row]] = {}
    folder = folder.absolute()  # a server is started in another
    if (folder / "root").is_dir():  # it is one itself
        folder, names = folder.parent, [folder.name]
    names = names or sorted(each.parent.name for each in folder.glob("*/queries.jsonl"))
    if not names:
        sys.exit(f"{folder} holds no collection: a folder with root and queries.jsonl.")
    if report is not None:
        report.write_text("{}", encoding="utf-8")  # now, or all of it would be lost
    for name in names:
        collection = read_collection(folder / name, limit)
        print(f"\n{name}: {len(collection.files)} files, {len(collection.questions)} questions", flush=True)
        found[name] = {}
        trio.run(ask_everything, collection, providers, found[name])
        if report is not None:
            report.write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")


async def ask_everything(collection: Collection, providers: Sequence[str], rows: dict[str, Row]) -> None:
    """Put the rows of every way into `rows`, and print each as soon as it is there."""
    rows["plain BM25"] = await ask_plain(collection)
    print(" " * 24 + "".join(f"{key:>9}" for key in [*rows["plain BM25"], "MiB"]))
    print(line("plain BM25", rows["plain BM25"]), flush=True)
    for provider in dict.fromkeys(["none", *providers]):
        more = await rows_of(collection, provider)
        print("\n".join(line(way, figures) for way, figures in more.items()), flush=True)
        rows |= more
