"""Which addresses may receive the key: https, or http on loopback, or http where the user says so; and proxies."""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping
from typing import Final
from urllib.parse import urlsplit

from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.findings import Findings
from responses_mcp.settings.setting import BadValue

_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
_LOWER: Final = () if os.name == "nt" else tuple(map(str.lower, _PROXIES))  # on Windows they are the same variables

NETWORK_VARIABLES: Final = (*_PROXIES, *_LOWER, "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What httpx and Python's TLS read from the environment."""


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
    host = scheme = ""
    try:
        parts = urlsplit(text)
        host, scheme = parts.hostname or "", parts.scheme
        is_usable = scheme in {"http", "https"} and parts.port != 0 and _is_host(host) and text.isprintable()
    except ValueError:
        is_usable = False
    if not is_usable or not re.fullmatch(r"[^\s?#]{1,256}", text) or findings.holds_secret(text):
        raise BadValue("other text (not shown)")
    if scheme == "http" and not allow_http and not is_loopback(host):
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
