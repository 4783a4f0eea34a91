"""The headers that authenticate a request, and what is wrong with a key that cannot (spec 8)."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from responses_mcp.errors import AuthenticationFailed
from responses_mcp.settings.address import is_loopback, is_placeholder
from responses_mcp.settings.model import OpenAISettings


def credential_headers(openai: OpenAISettings) -> dict[str, str]:
    """Return the headers with the key and with the values of `openai.headers_env`; names are lower-case.

    Raises `AuthenticationFailed` for a key that no server can accept, before it is sent anywhere, and for no key at
    all, unless the server is on this machine or other headers stand in for it. No secret is ever quoted.
    """
    headers: dict[str, str] = {}
    key, name = openai.api_key, openai.api_key_env
    if key is not None and key.strip():
        _check(key, name)
        headers["authorization"] = f"Bearer {key}"
    elif not openai.headers and not _on_this_machine(openai.base_url):
        state = "is empty" if key is not None else "is not set"
        raise AuthenticationFailed(
            f"There is no API key: the environment variable {name} {state}. Set it in the `env` of this server's "
            "entry in your MCP client's configuration, then restart the server."
        )
    headers.update(_checked_extra(openai.headers, openai.headers_env))
    return headers


def _check(key: str, name: str) -> None:
    problem = None
    if is_placeholder(key):
        problem = (
            "holds an unexpanded placeholder, not a key: your MCP client does not expand variables there; "
            "put the key itself into the `env` of this server's entry"
        )
    elif any(character.isspace() for character in key):
        problem = "has white space or a line break in it: remove it"
    elif key[0] in "\"'`" or key[-1] in "\"'`":
        problem = "has quotation marks around it: remove them"
    elif not (key.isascii() and key.isprintable()):
        problem = "has characters that no API key has: copy the key again"
    if problem is not None:
        raise AuthenticationFailed(
            f"The API key in the environment variable {name} {problem}. Then restart the server."
        )


def _checked_extra(headers: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of `openai.headers_env`; loaded settings are fine here, those made by hand may not be."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            variable = variables.get(name, "that openai.headers_env names for it")
            raise AuthenticationFailed(
                f"The value of the header {name} cannot be sent: it has control or non-ASCII characters. "
                f"Correct the environment variable {variable}, then restart the server."
            )
    return {name.lower(): value for name, value in headers.items()}


def _on_this_machine(base_url: str) -> bool:
    try:
        return is_loopback(urlsplit(base_url).hostname or "")
    except ValueError:
        return False
