"""The headers that authenticate a request, and what is wrong with a key that cannot (spec 8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from responses_mcp.errors import KeyUnusable
from responses_mcp.settings.address import is_loopback, is_placeholder
from responses_mcp.settings.model import OpenAISettings

# As pages and files write a key that is to be replaced. No key of OpenAI's has any of it; a gateway's may be any word.
_EXAMPLE: Final = re.compile(
    r"^(sk-)?(your|insert|paste)[-_ ]|^(sk-)?my[-_](openai[-_])?(api[-_])?key$|^<.*>$|\.{3}|…|\*{3}|"
    r"^(sk-)?(proj-)?x{4,}|^sk-?$|^change[-_]?me$|^todo$|^(openai[-_])?api[-_]?key$",
    re.IGNORECASE,
)
_OF_OTHERS: Final = ("sk-ant-", "sk-or-", "AIza", "gsk_", "xai-")  # providers whose keys say so
_NAMED: Final = re.compile(r"(?:export\s+)?[A-Z][A-Z0-9_]*KEY=.")  # a line of a file, pasted as a whole

_OF_CODE: Final = (";", ",", "\\n", "\\r")  # what stands behind a key in a program, as it is written there

_OPENAI: Final = "api.openai.com"
_REFERENCE: Final = re.compile(r"[a-z]+://")  # of a program that keeps secrets


def credential_headers(openai: OpenAISettings) -> dict[str, str]:
    """Return the headers with the key and with the values of `openai.headers_env`; names are lower-case.

    Raises `KeyUnusable` for a key that no server can accept, before it is sent anywhere, and for no key at
    all, unless the server is on this machine or other headers stand in for it. No secret is ever quoted.
    """
    headers: dict[str, str] = {}
    key, name = openai.api_key, openai.api_key_env
    key = (key or "").strip()
    if is_placeholder(key) and _on_this_machine(openai.base_url):
        key = ""  # Claude Code leaves the name of a variable that is not set, and here none has to be
    if key:
        _check(key, name)
        if _EXAMPLE.search(key) and not _on_this_machine(openai.base_url):  # where any key may do
            said = f"The environment variable {name} holds an example, not a key."
            raise KeyUnusable(said, variable=name, remedy="Put a key of your own into it.")
        if key.startswith(_OF_OTHERS) and urlsplit(openai.base_url).hostname == _OPENAI:
            said = f"The API key in the environment variable {name} is that of another provider."
            remedy = "Put a key of OpenAI's into it, or name that provider in OPENAI_BASE_URL."
            raise KeyUnusable(said, variable=name, remedy=remedy)
        headers["authorization"] = f"Bearer {key}"
    elif not openai.headers and not _on_this_machine(openai.base_url):
        state = "is not set" if openai.api_key is None else "is empty"
        raise KeyUnusable(f"There is no API key: the environment variable {name} {state}.", variable=name)
    headers.update(_checked_extra(openai.headers, openai.headers_env))
    return headers


def key_from(openai: OpenAISettings) -> str:
    """Return which environment variables a key comes from, or would, and what names them if they are others."""
    if openai.headers_env and not openai.api_key:
        return f"{' and '.join(openai.headers_env.values())}, which openai.headers_env names"
    named = "" if openai.api_key_env == OpenAISettings().api_key_env else ", which openai.api_key_env names"
    return f"{openai.api_key_env}{named}"


def _check(key: str, name: str) -> None:
    if is_placeholder(key):
        raise KeyUnusable(
            f"There is no API key: the environment variable {name} holds an unexpanded placeholder.",
            variable=name,
            unfilled=True,
        )
    if _NAMED.match(key):
        problem, remedy = "begins with the name of a variable", "Take that away, and the = behind it."
    elif _REFERENCE.match(key):
        problem = "tells where a secret lies, and is none"
        remedy = "Start this through the program that puts the secret in its place, such as `op run`."
    elif key.startswith("Bearer "):
        problem, remedy = "begins with Bearer", "Take that word away; it is added."
    elif any(character.isspace() for character in key):
        problem, remedy = "has white space or a line break in it", "Remove it."
        if _EXAMPLE.search(key):  # which would be one still
            problem, remedy = "is an example", "Put a key of your own into it."
    elif key[0] in "\"'`" or key[-1] in "\"'`":
        problem, remedy = "has quotation marks around it", "Remove them."
    elif not (key.isascii() and key.isprintable()) or key.endswith(_OF_CODE):
        problem, remedy = "has characters that no API key has", "Copy the key again."
    else:
        return
    raise KeyUnusable(f"The API key in the environment variable {name} {problem}.", variable=name, remedy=remedy)


def _checked_extra(headers: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of `openai.headers_env`; loaded settings are fine here, those made by hand may not be."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            variable = variables.get(name, "that openai.headers_env names for it")
            raise KeyUnusable(
                f"The value of the header {name} cannot be sent: it has control or non-ASCII characters.",
                variable=variable,
                remedy=f"Correct the environment variable {variable}.",
            )
    return {name.lower(): value for name, value in headers.items()}


def _on_this_machine(base_url: str) -> bool:
    try:
        return is_loopback(urlsplit(base_url).hostname or "")
    except ValueError:
        return False
