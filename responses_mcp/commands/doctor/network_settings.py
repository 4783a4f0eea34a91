"""Proxies and certificates, as the environment has them; httpx and Python's TLS read the same variables."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from responses_mcp.commands.doctor.findings import Finding, fail, ok, warn, with_cure
from responses_mcp.errors import ConnectionFailed
from responses_mcp.responses_api.http.network import PORTS, port_of, route_to

_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_HASHED: Final = re.compile(r"[0-9a-f]{8}\.[0-9]+")
_AROUND_HOST: Final = re.compile(r"^[a-z]+://|(?::[0-9]+)?(?:/.*)?$")
_USELESS: Final = re.compile(r"[/*\s;\[]")

CA_VARIABLES_OF_OTHERS: Final = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Where a company's CA may be named for other programs."""


class Way(NamedTuple):
    """Where a connection goes first: to the server itself, or to the proxy that `variable` names."""

    host: str
    port: int
    variable: str | None = None

    def __str__(self) -> str:
        """Return host and port, and where they come from."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.variable is None else f"the proxy {host}:{self.port} ({self.variable})"


def check_proxy(url: str, *, trust_env: bool) -> tuple[list[Finding], Way | None]:
    """Say how `url` is reached; no way where the proxy cannot be used. Credentials of the proxy are not shown."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    direct = Way(host, parts.port or PORTS[parts.scheme])
    if not trust_env:
        return [ok("proxy", "none is used, because request.trust_env is false")], direct
    try:
        route = route_to(url)
    except ConnectionFailed as error:
        return [fail("proxy", *with_cure(error.message)), *_exceptions(host)], None
    if route.proxy is None:
        named = [spelled(name) for name in _PROXIES if _value(name)]
        found = f"{', '.join(named)} set, but not for {parts.scheme}://{host}" if named else "none is set"
        return [ok("proxy", found)], direct
    where = Way(route.proxy.raw_host.decode("ascii"), port_of(route.proxy), route.proxy_from)
    return [ok("proxy", f"{host} is reached through {where}"), *_exceptions(host)], where


def proxy_secrets() -> Iterator[str]:
    """Yield the passwords of proxies, so that they can be taken out of everything that is said."""
    for name in _PROXIES:
        credentials, at, _ = _value(name).rpartition("@")
        if at:
            user, _, password = credentials.rpartition("://")[2].partition(":")
            yield from (password, unquote(password)) if password else (user,)  # a token may stand alone


def _value(name: str) -> str:
    # Of the two spellings, Python prefers the small one.
    return os.environ.get(name.lower(), os.environ.get(name, ""))


def spelled(name: str) -> str:
    """Return the spelling of a variable that counts; on Windows both are one."""
    return name.lower() if os.name != "nt" and name.lower() in os.environ else name


def _exceptions(host: str) -> Iterator[Finding]:
    """Warn of entries of NO_PROXY that mean `host` and match none: Python knows neither patterns nor networks there."""
    entries = [entry.strip() for entry in _value("NO_PROXY").split(",")]
    useless = [entry for entry in entries if _USELESS.search(entry) and _means(entry, host)]
    if useless:
        yield warn(
            "proxy",
            f"these entries of {spelled('NO_PROXY')} match nothing: {', '.join(useless)}",
            "list host names and addresses with commas between; example.com stands for its subdomains too",
        )


def _means(entry: str, host: str) -> bool:
    """Tell whether an entry of NO_PROXY would be for a host if it were read as other programs do."""
    with suppress(ValueError):
        return ip_address(host) in ip_network(entry, strict=False)
    names = (_AROUND_HOST.sub("", name.lower()).strip("[]") for name in re.split(r"[;\s]", entry))
    return any(fnmatchcase(host, name) or host.endswith(f".{name.lstrip('.')}") for name in names if name)


def check_certificates(url: str, *, trust_env: bool) -> Finding:
    """Load the certificates that are trusted, where a variable names them; `url` is where they are wanted."""
    found = _certificates(trust_env=trust_env)
    # Without TLS they are not looked into.
    return found._replace(status="warn") if found.status == "FAIL" and url.startswith("http:") else found


def _certificates(*, trust_env: bool) -> Finding:
    if not trust_env:
        return ok("certificates", "those of the package certifi are trusted, because request.trust_env is false")
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file:
        why = _why_it_is_unusable(file)
        if why is not None:
            return fail(
                "certificates",
                f"SSL_CERT_FILE names {file}, from which no certificates can be read ({why})",
                "let it name a file of CA certificates in PEM form, or unset it",
            )
        return ok("certificates", f"those of SSL_CERT_FILE ({file}), and no other, are trusted")
    if folder:
        return _certificate_folders(folder)
    return ok("certificates", "those of the package certifi are trusted; SSL_CERT_FILE and SSL_CERT_DIR are not set")


def _why_it_is_unusable(file: str) -> str | None:
    try:
        if Path(file).is_fifo():  # reading it would wait for somebody to write
            return "it is a pipe"
        ssl.create_default_context(cafile=file)
    except ssl.SSLError as error:
        return error.reason or "it holds none"
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def _certificate_folders(folders: str) -> Finding:
    """Judge the folders of SSL_CERT_DIR, of which one that can be used is enough."""
    why = ""
    for folder in folders.split(os.pathsep):
        try:
            if any(_HASHED.fullmatch(each.name) for each in Path(folder).iterdir()):
                return ok("certificates", f"those of SSL_CERT_DIR ({folders}), and no other, are trusted")
        except OSError as error:
            why = why or f"which cannot be read ({error.strerror})"
    if why:
        return fail("certificates", f"SSL_CERT_DIR names {folders}, {why}", "correct the path, or unset it")
    return fail(
        "certificates",
        f"SSL_CERT_DIR names {folders}, where no file has the name that OpenSSL looks for",
        f'run "openssl rehash {folders.replace(os.pathsep, " ")}", or let SSL_CERT_FILE name a PEM file instead',
    )
