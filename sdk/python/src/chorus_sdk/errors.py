"""The errors of the SDK, one class for each family. No message holds a key, a callback or a path (SDK-09)."""

from __future__ import annotations

from typing import cast

from ._error_codes import ERROR_CODES


class ChorusError(Exception):
    """The base of every error of the SDK."""

    code: str = "SDK_ERROR"
    status: int | None = None
    retryable: bool = False
    request_id: str | None = None

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class ConnectionFailed(ChorusError):
    """The hub could not be reached, or it did not answer. A retry may help."""

    code = "SDK_CONNECTION_FAILED"
    retryable = True


class UnexpectedAnswer(ChorusError):
    """The answer does not follow the protocol."""

    code = "SDK_UNEXPECTED_ANSWER"


class InvalidInput(ChorusError):
    """The caller's input is invalid; nothing was sent."""

    code = "SDK_INVALID_INPUT"


class CredentialsError(ChorusError):
    """There are no credentials, or the file cannot be read or written."""

    code = "SDK_CREDENTIALS"


class ListenerBusy(ChorusError):
    """Another process listens with this identity: `chorus listen`, `chorus mcp` or an agent of the SDK."""

    code = "SDK_LISTENER_BUSY"


class ResourceClaimed(ChorusError):
    """Another session holds the lock."""

    code = "SDK_RESOURCE_CLAIMED"


class WaitTimeout(ChorusError, TimeoutError):
    """What was waited for has not come in time. The message itself was sent."""

    code = "SDK_WAIT_TIMEOUT"
    retryable = True


class DeliveryFailed(ChorusError):
    """The hub stored the message but could not deliver it, or its receiver refused it."""

    code = "SDK_DELIVERY_FAILED"


class SignatureInvalid(ChorusError):
    """A request to the endpoint was not signed by the hub."""

    code = "SDK_SIGNATURE_INVALID"


class HubError(ChorusError):
    """The hub refused a request. `code` is one of docs/errors.md, or `HTTP_` and the status without one."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int,
        request_id: str | None = None,
        retry_after: float | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(f"{message} ({code})", code=code)
        self.message = message
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.field = field
        known = ERROR_CODES.get(code)
        self.retryable = known[1] if known else status in {408, 429, 500, 502, 503, 504}


class InvalidRequest(HubError):
    """400, 413, 414, 415, 431: the request must be corrected."""


class Unauthorized(HubError):
    """401: the key is not valid, or no longer."""


class KeyRotated(Unauthorized):
    """The stream ended because its key was replaced, revoked or has expired."""


class AgentUnregistered(Unauthorized):
    """The stream ended because the agent left the hub."""


class Forbidden(HubError):
    """403: this key may not do that."""


class NotFound(HubError):
    """404, 410."""


class Conflict(HubError):
    """409: it contradicts what is already there."""


class RateLimited(HubError):
    """429: too many requests, streams or agents."""


class HubFailed(HubError):
    """5xx: the hub cannot do this now."""


def hub_error_class(status: int) -> type[HubError]:
    """The family of an HTTP status."""
    families: dict[int, type[HubError]] = {
        401: Unauthorized,
        403: Forbidden,
        404: NotFound,
        409: Conflict,
        410: NotFound,
        429: RateLimited,
    }
    if status >= 500:
        return HubFailed
    return families.get(status, InvalidRequest)


def single_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of our own: a caller of `serve` catches it by its class."""
    for error in group.exceptions:
        found: BaseException = error
        if isinstance(error, BaseExceptionGroup):
            found = single_error(cast("BaseExceptionGroup[BaseException]", error))
        if isinstance(found, ChorusError):
            return found
    return group.exceptions[0] if len(group.exceptions) == 1 else group
