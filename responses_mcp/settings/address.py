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
from responses_mcp.settings.setting import BadValue, env_name


def network_variables(*, windows: bool) -> tuple[str, ...]:
    """Return what httpx and Python's TLS read from the environment.

    Of the proxies both spellings, but on Windows, where they are one variable.
    """
    proxies = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
    spelled = (each for name in proxies for each in ((name,) if windows else (name, name.lower())))
    return (*spelled, "SSL_CERT_FILE", "SSL_CERT_DIR")


NETWORK_VARIABLES: Final = network_variables(windows=os.name == "nt")

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
    if text[:1] in ("'", '"'):
        raise BadValue("a URL in quotation marks (not shown)", cure="remove the quotation marks")
    if "\\" in text or "@" in text.partition("?")[0]:
        cure = "put credentials into an environment variable and name it in openai.headers_env"
        raise BadValue("a URL with credentials or a backslash (not shown)", cure=cure)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise BadValue("a URL that cannot be read (not shown)") from None
    if parts.scheme not in {"http", "https"}:
        host = re.split(r"[:/]", text, maxsplit=1)[0]
        cure = "" if "://" in text else f"begin it with {'http' if is_loopback(host) else 'https'}://"
        cure = f"write :// behind {host}" if host in {"http", "https"} else cure
        raise BadValue("one that does not begin with https:// (not shown)", cure=cure)
    if port == 0 or not _usable_host(host):
        raise BadValue("a URL without a usable host (not shown)")
    shown = findings.described(f"{parts.scheme}://{host}/…")
    if "?" in text or "#" in text:
        raise BadValue(f"{shown} with a query or fragment")
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        cure = "use https, or set openai.allow_http: true in the YAML file if that network is yours"
        raise BadValue(f"{shown}, which would carry the key unencrypted", cure=cure)
    return text.rstrip("/")


def _usable_host(host: str) -> bool:
    """Tell whether a host is an address or can be a name; every call would fail over one that is neither."""
    import ipaddress  # noqa: PLC0415 - few servers have an address of their own

    try:
        if ":" in host or re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9}){3}", host):
            ipaddress.ip_address(host)
        else:
            host.encode("idna").decode("idna")
    except ValueError:
        return False
    return bool(host)


def header_values(
    wanted: Mapping[str, object], environ: Mapping[str, str], findings: Findings, where: str
) -> dict[str, tuple[str, str]]:
    """Resolve `openai.headers_env`: name of each header to its variable as configured and its value, a secret.

    Every header that cannot be sent is a problem of its own and is left out.
    """
    found: dict[str, tuple[str, str]] = {}
    for header, variable in wanted.items():
        name = variable if isinstance(variable, str) else ""
        value = environ.get(name, "").strip(" ")
        at = f"openai.headers_env.{findings.shown(header)}: expected"
        of_value = f"{at} a value in the environment variable {name}, got"
        if not re.fullmatch(_NAME, header) or findings.may_be_key(header):
            what = f"openai.headers_env: expected header names, got {findings.described(header)}"
            cure = "correct the name"
        elif header.lower() in _OURS:
            what, cure = f"{at} a header that may be set, got one that the request itself needs", "remove it"
        elif header.lower() in {each.lower() for each in found}:
            what, cure = f"{at} each header once, got it again in other letter case", "remove one of the two"
        elif not env_name(name, findings):
            got = "other text (not shown)" if name else findings.described(variable)
            what = f"{at} the name of an environment variable, got {got}"
            cure = "put the value into an environment variable and write its name here"
        elif not value:
            passing = f"let the client's entry pass it on ({program('install', 'CLIENT', '--write')})"
            what = f"{of_value} none"
            cure = f"set {name} where the client is started and {passing}, or remove the header"
        elif not value.isascii() or not value.isprintable():
            what, cure = f"{of_value} one with control or non-ASCII characters (not shown)", f"correct {name}"
        elif any(is_unfilled(word) for word in value.split()):
            cure = f"set {name} where the client is started, or put the value itself in its place"
            what = f"{of_value} a placeholder left unfilled"
        else:
            found[header] = name, value
            continue
        findings.problem(what, where, cure)
    return found
