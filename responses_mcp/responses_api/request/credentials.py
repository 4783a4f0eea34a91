"""The headers that authenticate a request, and what is wrong with a key that cannot (spec 8)."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.errors import KeyUnusable
from responses_mcp.responses_api.response.web_pages import host_of
from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.address import is_loopback
from responses_mcp.settings.model import OpenAISettings

# With which servers a key is wrong, how it looks then, what is wrong with it, and the cure.
_WRONG: Final = (
    ("any", re.compile(r"\s"), "has white space or a line break in it", "Remove it."),
    ("any", re.compile(r"""^["'`]|["'`]$"""), "has quotation marks around it", "Remove them."),
    ("any", re.compile(r"[^!-~]|(;|,|\\[nr])$"), "has characters that no API key has", "Copy the key again."),
    ("api.openai.com", re.compile(r"^(sk-ant-|sk-or-|AIza|gsk_|xai-)"), "is that of another provider",
     "Put a key of OpenAI's into it, or name that provider in OPENAI_BASE_URL."),
)  # fmt: skip


def credential_headers(openai: OpenAISettings) -> dict[str, str]:
    """Return the headers with the key and with the values of `openai.headers_env`; names are lower-case.

    Raises `KeyUnusable` for a key that no server can accept, before it is sent anywhere, and for no key at all, unless
    the server is on this machine or other headers stand in for it. No secret is ever quoted.
    """
    headers: dict[str, str] = {}
    key, name, host = (openai.api_key or "").strip(), openai.api_key_env, host_of(openai.base_url).strip("[]")
    is_local = is_loopback(host)
    is_reference = is_unfilled(key) and ("$" in key or key[0] in "%{")
    if is_reference and is_local:
        key = ""  # Claude Code leaves the name of a variable that is not set, and here none has to be
    if key:
        if is_reference:
            cause = f"There is no API key: the environment variable {name} holds an unexpanded placeholder."
            raise KeyUnusable(cause, variable=name, unfilled=True)
        if is_unfilled(key) and not is_local:  # where a server may take any word
            cause = f"The API key in the environment variable {name} is an example."
            raise KeyUnusable(cause, variable=name, remedy="Put a key of your own into it.")
        for server, pattern, wrong, remedy in _WRONG:
            if server in ("any", host) and pattern.search(key):
                cause = f"The API key in the environment variable {name} {wrong}."
                raise KeyUnusable(cause, variable=name, remedy=remedy)
        headers["authorization"] = f"Bearer {key}"
    elif not openai.headers and not is_local:
        state = "is not set" if openai.api_key is None else "is empty"
        raise KeyUnusable(f"There is no API key: the environment variable {name} {state}.", variable=name)
    for header, value in openai.headers.items():
        if not (value.isascii() and value.isprintable()):  # loaded settings are fine, those made by hand may not be
            variable = openai.headers_env.get(header, "that openai.headers_env names for it")
            cause = f"The value of the header {header} cannot be sent: it has control or non-ASCII characters."
            raise KeyUnusable(cause, variable=variable, remedy=f"Correct the environment variable {variable}.")
        headers[header.lower()] = value
    return headers


def key_from(openai: OpenAISettings) -> str:
    """Return which environment variables a key comes from, or would, and what names them if they are others."""
    if openai.headers_env and not openai.api_key:
        return f"{' and '.join(openai.headers_env.values())}, which openai.headers_env names"
    named = "" if openai.api_key_env == OpenAISettings().api_key_env else ", which openai.api_key_env names"
    return f"{openai.api_key_env}{named}"
