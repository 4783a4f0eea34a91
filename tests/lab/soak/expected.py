"""What an answer must look like: one small judge for each kind of question."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from tests.lab.soak.ledger import Judge, Message, Wrong
from tests.lab.soak.plays import ANSWER, ARGUMENT, BROKEN, NUMBER, Play, ends, fault_of

FAILED, SEARCH_FAILED, LIMITED, PARAMS = -32001, -32002, -32003, -32602
COLLISION = "answer: lost to a connection that was closed just then"


def failure(message: Message) -> str | None:
    """Return the text of a tool's failure in either revision; None for a success."""
    if "error" in message:
        error = message["error"]
        data = error.get("data", {})
        return str(data.get("message") or data.get("details") or f"{error['code']} {error['message']}")
    result = message["result"]
    return str(result["content"][0]["text"]) if result["isError"] else None


def structured(message: Message) -> dict[str, Any]:
    """Return the object that a tool answered, which its text holds too."""
    result = message["result"]
    found: dict[str, Any] = result["structuredContent"]
    text = result["content"][0]["text"]
    if len(text) < 20_000 and json.loads(text) != found:
        raise Wrong("text and structured content differ")
    return found


def of_its_revision(message: Message, *, modern: bool) -> None:
    """Raise Wrong for a result or an error that belongs to the other revision."""
    if "result" in message and ("resultType" in message["result"]) != modern:
        raise Wrong(f"a result of the wrong revision (modern: {modern})")
    if modern and "error" in message and message["error"]["code"] in (FAILED, SEARCH_FAILED, LIMITED):
        raise Wrong("a failed tool is a result in this revision")


def answer_of(number: int, play: Play, *, search: bool, modern: bool, bad: bool = False) -> Judge:
    """Judge the answer of a tool that asks the API; `bad` if its arguments must be refused."""

    def judge(message: Message, seconds: float) -> str:
        of_its_revision(message, modern=modern)
        text = failure(message)
        fault = ANSWER if text is None else fault_of(text)
        if text is not None and any(int(other) != number for other in NUMBER.findall(text)):
            raise Wrong(f"a failure of another call than #{number}")
        possible = frozenset({ARGUMENT}) if bad else ends(play, search=search, seconds=seconds)
        if fault not in possible:
            raise Wrong(f"#{number} {play} cannot end so after {seconds:.2f} s, only {sorted(possible)}")
        if text is None:
            (_check_results if search else _check_answer)(structured(message), number, play)
        collided = fault == BROKEN and BROKEN not in ends(play, search=search, seconds=seconds, collision=False)
        return COLLISION if collided else f"answer: {fault}"

    return judge


def _check_answer(found: dict[str, Any], number: int, play: Play) -> None:
    if set(found) != {"answer", "used_search", "citations", "model"}:
        raise Wrong("not the members of an answer")
    if not found["answer"].startswith((f"The answer to #{number}:", f"The answer to #{number}.")):
        raise Wrong(f"not the answer to #{number}")
    plain = play[-1].kind == "plain"
    urls = [citation["url"] for citation in found["citations"]]
    if found["used_search"] == plain or urls != ([] if plain else [f"https://example.com/{number}"]):
        raise Wrong(f"not the sources of #{number}")


def _check_results(found: dict[str, Any], number: int, play: Play) -> None:
    urls = [result["url"] for result in found["results"]]
    wanted = f"https://example.com/{number}"
    if play[-1].kind != "plain" and urls[:1] != [wanted]:
        raise Wrong(f"not the results of #{number}")
    if play[-1].kind == "plain" and urls:
        raise Wrong(f"results of #{number}, which has none")


def result_with(label: str, check: Callable[[dict[str, Any]], bool] | None = None, *, modern: bool = False) -> Judge:
    """Judge an answer that is a result, for which `check` must be true."""

    def judge(message: Message, _: float) -> str:
        if "error" in message:
            raise Wrong(f"{label} failed")
        of_its_revision(message, modern=modern)
        if check is not None and not check(message["result"]):
            raise Wrong(f"not the result of {label}")
        return label

    return judge


def manual_with(
    label: str, check: Callable[[dict[str, Any]], bool], *, modern: bool, faults: Collection[str] = ()
) -> Judge:
    """Judge the answer of a manual tool: what `check` takes, or an error with one of the codes `faults`."""

    def judge(message: Message, _: float) -> str:
        of_its_revision(message, modern=modern)
        text = failure(message)
        if text is not None:
            code = json.loads(text)["code"]
            if code not in faults:
                raise Wrong(f"{label} failed with {code}")
            return f"{label}: {code}"
        if not check(structured(message)):
            raise Wrong(f"not the result of {label}")
        return label

    return judge


def error_with(label: str, code: int) -> Judge:
    """Judge an answer that is an error with a code."""

    def judge(message: Message, _: float) -> str:
        if "error" not in message or message["error"]["code"] != code:
            raise Wrong(f"{label} should be the error {code}")
        return label

    return judge
