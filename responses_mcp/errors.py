"""The errors of this package. Each message is for a person: what happened, and what to change."""

from __future__ import annotations

from collections.abc import Sequence


class ResponsesMcpError(Exception):
    """Base of all errors raised on purpose by this package."""


class ConfigError(ResponsesMcpError):
    """The configuration is wrong. `problems` has a sentence for each thing to mend."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("The configuration has problems: " + " ".join(problems))
        self.problems = tuple(problems)


class BadArgument(ResponsesMcpError):
    """A question was asked in a way that cannot be sent. The message names the argument."""


class UpstreamError(ResponsesMcpError):
    """The Responses API did not give an answer.

    `status` is the HTTP status, or None when there was none; `type` and `code` are the API's own words for it, `param`
    its name for the part of the request that is to blame; `request_id` identifies the request to the API's operators.
    `retryable` tells whether asking again may help without risk of paying twice, `maybe_paid` whether it may help at
    that risk, and `retry_after` how many seconds the API asked to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,  # noqa: A002  # the API's own word
        code: str | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retryable: bool = False,
        maybe_paid: bool = False,
        retry_after: float | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.code = code
        self.param = param
        self.request_id = request_id
        self.retryable = retryable
        self.maybe_paid = maybe_paid
        self.retry_after = retry_after
        self.body = body

    def __str__(self) -> str:
        """Return the message, with the request id when there is one."""
        return f"{self.message} (request id {self.request_id})" if self.request_id else self.message


class AuthenticationFailed(UpstreamError):
    """There is no usable API key, or the API refused it."""


class RequestRefused(UpstreamError):
    """The API will not serve this request, however often it is asked."""


class RateLimited(UpstreamError):
    """Too many requests or tokens for now."""


class QuotaExhausted(UpstreamError):
    """The account has no budget left. Retrying cannot help."""


class ServiceFailed(UpstreamError):
    """The API failed on its own side."""


class ConnectionFailed(UpstreamError):
    """The API could not be reached, or the connection broke."""


class DeadlineExceeded(UpstreamError):
    """The call took longer than `request.timeout_ms`, or a try longer than its policy gives it."""


class UnusableReply(UpstreamError):
    """Something came back that is not an answer."""
