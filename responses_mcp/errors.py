"""The errors of this package. Each message is for a person: what happened, and what to change."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, Literal, TypeAlias, cast

PROGRAM: Final = "openai-responses-mcp"

_MEMORY: Final = (
    "There is no memory left, or no thread (ENOMEM); close other programs, or raise the limits of this one "
    "(`ulimit -v`, `ulimit -u`)."
)
_SPARE: Final = 8  # descriptors; SQLite opens four at once
_SHORTAGES: Final = {
    "EMFILE": "This process has no file descriptor left (EMFILE); raise its limit (`ulimit -n 4096` before the start), "
    "or lower request.max_connections (OPENAI_MAX_CONNECTIONS).",
    "ENFILE": "This machine has no file descriptor left (ENFILE); close other programs, or lower "
    "request.max_connections (OPENAI_MAX_CONNECTIONS).",
    "ENOMEM": _MEMORY,
    "ENOBUFS": _MEMORY,
}


class ResponsesMcpError(Exception):
    """Base of all errors raised on purpose by this package.

    `kind` is a code for what happened, such as `rate_limit` or `connection`. `masked` counts the secrets, by kind, that
    were masked in the question.
    """

    kind = "unknown"
    masked: Mapping[str, int] | None = None


class ConfigError(ResponsesMcpError):
    """The configuration is wrong. `problems` has a sentence for each thing to correct."""

    kind = "configuration"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("The configuration has problems: " + " ".join(problems))
        self.problems = tuple(problems)


class NotUnderTrio(ResponsesMcpError, RuntimeError):
    """Something was called outside of Trio. The message says how a program of another event loop does it."""


class ResearchClosed(ResponsesMcpError, RuntimeError):
    """A `Research` was used behind the block that had opened it."""


class BadArgument(ResponsesMcpError):
    """A question was asked in a way that cannot be sent. The message names the argument."""

    kind = "argument"


class LimitReached(ResponsesMcpError):
    """A call would pass what the settings allow to be spent. No request was made."""

    kind = "limit"


Progress: TypeAlias = Literal["refused", "doubtful", "accepted", "begun"]
"""How far a request had come when it failed: refused, accepted as far as is known, or with output.

It is doubtful where a gateway answers: nobody bills the request, but the API behind may work on it.
"""


class UpstreamError(ResponsesMcpError):
    """The Responses API did not give an answer.

    `status` is the HTTP status, or None when there was none; `type` and `code` are the API's own words for it, `param`
    its name for the part of the request that is to blame, and `params` all such names; `request_id` identifies the
    request to the API's operators.
    `retryable` tells whether asking again may help without risk of paying twice, `maybe_paid` whether it may help at
    that risk, and `retry_after` how many seconds the API asked to wait. `usage` is what the call used all the same, as
    `Usage.as_json` has it; None if it made no request. `said` are the words of the API in the message, which may repeat
    the question, and `unquoted` is the message without them; None where it quotes none. `words` are all of them.
    `progress` is how far the request had come.
    """

    param: str | None = None
    params: tuple[str, ...] = ()
    body: str | None = None
    usage: Mapping[str, object] | None = None
    said: str | None = None
    unquoted: str | None = None
    words: str = ""
    progress: Progress = "accepted"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,  # noqa: A002  # the API's own word
        code: str | None = None,
        request_id: str | None = None,
        retryable: bool = False,
        maybe_paid: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.retryable, self.maybe_paid = message, retryable, maybe_paid
        self.status, self.type, self.code = status, type, code
        self.request_id, self.retry_after = request_id, retry_after
        if maybe_paid and self.progress == "refused":
            self.progress = "accepted"

    def advance(self, progress: Progress) -> None:
        """Take how far the request had come. Once the API has begun to answer, a repeated request may be paid twice."""
        if self.progress != "begun":
            self.progress = progress
        if self.progress == "begun":
            self.retryable, self.maybe_paid = False, True

    def __str__(self) -> str:
        """Return the message, with the request id when there is one."""
        return f"{self.message} (request id {self.request_id})" if self.request_id else self.message


class AuthenticationFailed(UpstreamError):
    """There is no usable API key, or the API refused it."""

    kind = "key"


class KeyUnusable(AuthenticationFailed):
    """There is no key that could be sent, so nothing was.

    `cause` is what is wrong, and `variable` the environment variable that the key comes from. `remedy` is what to do
    about a value that is there; None means that the variable is not filled in. `unfilled` tells that it holds a
    reference to a variable, which the client could not fill in. The message is for who embeds this package; whoever
    shows the error to somebody else words the cure for them.
    """

    progress: Progress = "refused"

    def __init__(self, cause: str, *, variable: str, remedy: str | None = None, unfilled: bool = False) -> None:
        unset = "Set it before the settings are loaded, or give `OpenAISettings` an `api_key`."
        given = f"{remedy} The same goes for what `OpenAISettings` was given."
        super().__init__(f"{cause} {unset if remedy is None else given}")
        self.cause, self.variable, self.remedy, self.unfilled = cause, variable, remedy, unfilled
        self.command = f'$env:{variable} = "…"' if os.name == "nt" else f"export {variable}=…"


class RequestRefused(UpstreamError):
    """The API will not serve this request, however often it is asked."""

    kind = "request"


class RateLimited(UpstreamError):
    """Too many requests or tokens for now."""

    kind = "rate_limit"
    progress: Progress = "refused"


class QuotaExhausted(UpstreamError):
    """The account has no budget left. Retrying cannot help."""

    kind = "quota"


class ServiceFailed(UpstreamError):
    """The API failed on its own side."""

    kind = "server"


class ConnectionFailed(UpstreamError):
    """The API could not be reached, or the connection broke."""

    kind = "connection"
    progress: Progress = "refused"


class DeadlineExceeded(UpstreamError):
    """The call took longer than `request.timeout_ms`, or a try longer than its policy gives it."""

    kind = "timeout"


class UnusableReply(UpstreamError):
    """Something came back that is not an answer."""

    kind = "reply"


def program(*arguments: str) -> str:
    """Return a command of this program as a person can paste it."""
    import shlex  # noqa: PLC0415  # a start should not wait for these
    import subprocess  # noqa: PLC0415

    words = [PROGRAM, *arguments]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def installing(extra: str) -> str:
    """Return how an extra of this package is installed, in words."""
    package = f'"{PROGRAM}[{extra}] @ git+https://github.com/uchimanajet7/openai-responses-mcp"'
    return f"run `pipx install --force {package}` (or uv tool install or pip install, without --force)"


def exhausted(error: BaseException) -> str | None:
    """Return what this process or machine has run out of, with the cure, if that is what `error` comes from."""
    for each in causes(error):
        name = errno.errorcode.get(getattr(each, "errno", None) or 0, "").removeprefix("WSA")
        if isinstance(each, MemoryError) or str(each) == "can't start new thread":
            name = "ENOMEM"
        if name in _SHORTAGES:
            return _SHORTAGES[name]
    # SQLite, OpenSSL and name look-ups do not say so, and have given back by now what they had got.
    with ExitStack() as spare:
        try:
            for _ in range(_SPARE):
                spare.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError as none_left:
            return _SHORTAGES.get(errno.errorcode.get(none_left.errno or 0, ""))
    return None


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, what is within it, and what it comes from; some libraries hide a cause in the context."""
    pending, seen = [error], set[int]()
    while pending:
        if id(each := pending.pop()) not in seen:
            seen.add(id(each))
            yield each
            pending += (part for part in (each.__cause__, each.__context__) if part is not None)
            if isinstance(each, BaseExceptionGroup):
                pending += cast("BaseExceptionGroup[BaseException]", each).exceptions
