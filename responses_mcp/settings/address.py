"""Which addresses may receive the key: https, or http on loopback, or http where the user says so; and proxies."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Final
from urllib.parse import urlsplit

from responses_mcp.secrets import is_unfilled

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


def is_unencrypted(url: str) -> bool:
    """Tell whether everybody on the way can read what is sent to a URL, such as the key."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")
