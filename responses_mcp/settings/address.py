"""Which addresses may receive the API key: https, or http on loopback, or http where the user says so."""

from __future__ import annotations

from urllib.parse import urlsplit

from responses_mcp.settings.findings import Raw
from responses_mcp.settings.values import Refusal


def is_loopback(host: str) -> bool:
    """Tell whether a host name means this machine: localhost, 127.0.0.0/8 or ::1."""
    if host.lower() == "localhost":
        return True
    import ipaddress  # noqa: PLC0415 - only an http address gets here

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_base_url(text: str, *, allow_http: bool) -> str | Refusal:
    """Return the URL without a slash at its end, or why it cannot be used.

    A refusal never shows more than scheme and host: keys get pasted into paths, queries and user parts.
    """
    if "\\" in text or "@" in text.partition("?")[0]:
        return Refusal(
            ("a URL with credentials or a backslash (not shown)",),
            cure="put credentials into an environment variable and name it in openai.headers_env",
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return Refusal(("a URL that cannot be read (not shown)",))
    if parts.scheme not in {"http", "https"}:
        return Refusal(("no http or https URL (not shown)",))
    if not host or port == 0:
        return Refusal(("a URL without a usable host (not shown)",))
    shown = Raw(f"{parts.scheme}://{host}/…")
    if "?" in text or "#" in text:
        return Refusal((shown, " with a query or fragment"))
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        return Refusal(
            (shown, ", which would carry the key unencrypted"),
            cure="use https, or set openai.allow_http: true in the YAML file if that network is yours",
        )
    return text.rstrip("/")
