"""What goes to the API and where: which addresses may receive the key, and extra headers, as `openai` sets them.

An address is https, or http on loopback, or http where the user says so. Headers are named by the file, and the
environment holds their values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from typing import Final
from urllib.parse import urlsplit

from responses_mcp.errors import program
from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.findings import Findings
from responses_mcp.settings.setting import ENV_NAME, BadValue

_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
_LOWER: Final = () if os.name == "nt" else tuple(map(str.lower, _PROXIES))  # on Windows they are the same variables

NETWORK_VARIABLES: Final = (*_PROXIES, *_LOWER, "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What httpx and Python's TLS read from the environment."""

_NAME: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}"

_OURS: Final = frozenset(
    {
        *("connection", "content-length", "content-type", "expect", "host", "keep-alive", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers that belong to the request itself; setting them would break its framing."""


def is_loopback(host: str) -> bool:
    """Tell whether a host name means this machine: localhost, 127.0.0.0/8 or ::1."""
    if host.lower() == "localhost":
        return True
    import ipaddress  # noqa: PLC0415 - only an http address gets here

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def drop_unfilled(environ: MutableMapping[str, str]) -> list[str]:
    """Take proxies and certificates out of an environment that still hold a placeholder, and return their names.

    A client has left them as its file has them, and no call would get through. In either case of letters Windows has
    but one.
    """
    return [name for name in NETWORK_VARIABLES if is_unfilled(environ.get(name, "")) and environ.pop(name)]


def checked_base_url(text: str, findings: Findings, *, allow_http: bool) -> str:
    """Return the URL without a slash at its end. Raises `BadValue` for one that cannot be used.

    The reason never shows more than scheme and host: keys get pasted into paths, queries and user parts.
    """
    if "\\" in text or "@" in text.partition("?")[0]:
        cure = "put credentials into an environment variable and name it in openai.headers_env"
        raise BadValue("a URL with credentials or a backslash (not shown)", cure=cure)
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        is_usable = parts.scheme in {"http", "https"} and parts.port != 0 and _is_host(host)
    except ValueError:
        raise BadValue("other text (not shown)") from None
    if not is_usable or "?" in text or "#" in text or findings.holds_secret(text):
        raise BadValue("other text (not shown)")
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        cure = "use https, or set openai.allow_http: true in the YAML file if that network is yours"
        got = f"{findings.described(f'http://{host}/…')}, which would carry the key unencrypted"
        raise BadValue(got, cure=cure)
    return text.rstrip("/")


def _is_host(host: str) -> bool:
    """Tell whether a host is an address or can be a name; every call would fail over one that is neither."""
    import ipaddress  # noqa: PLC0415 - few servers have an address of their own

    if ":" in host or re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9}){3}", host):
        ipaddress.ip_address(host)  # which raises ValueError
    else:
        host.encode("idna").decode("idna")  # as does this
    return bool(host)


def header_values(
    wanted: Mapping[str, object], environ: Mapping[str, str], findings: Findings, where: str
) -> dict[str, tuple[str, str]]:
    """Resolve `openai.headers_env`: name of each header to its variable as configured and its value, a secret.

    Every header that cannot be sent is a problem of its own and is left out.
    """
    found: dict[str, tuple[str, str]] = {}
    for header, variable in wanted.items():
        at = f"openai.headers_env.{findings.shown(header)}"
        name = variable if isinstance(variable, str) else ""
        value = environ.get(name, "").strip(" ")
        unfilled = any(is_unfilled(word) for word in value.split())
        if not re.fullmatch(_NAME, header) or findings.may_be_key(header) or header.lower() in _OURS:
            what = f"openai.headers_env: expected names of headers that may be set, got {findings.described(header)}"
            cure = "correct or remove it"
        elif not re.fullmatch(ENV_NAME.pattern, name) or findings.may_be_key(name):
            got = "other text (not shown)" if name else findings.described(variable)
            what = f"{at}: expected {ENV_NAME.expected}, got {got}"
            cure = "put the value into an environment variable and write its name here"
        elif not value or unfilled or not (value.isascii() and value.isprintable()):
            got = "none" if not value else "a placeholder left unfilled" if unfilled else "other characters (not shown)"
            what = f"{at}: expected a value of printable ASCII in the environment variable {name}, got {got}"
            passing = f"let the client's entry pass it on ({program('install', 'CLIENT', '--write')})"
            cure = f"set {name} where the client is started and {passing}, or remove the header"
        else:
            found[header] = name, value
            continue
        findings.problem(what, where, cure)
    return found
