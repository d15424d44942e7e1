"""What needs no network: requests, answers, retries and JSON. The client only carries bytes for it."""

from __future__ import annotations

import json
import random
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast
from urllib.parse import quote, urlsplit

from . import limits
from ._error_codes import CREDIT_FIELDS
from .credits import Credits
from .errors import ChorusError, HubError, InvalidInput, UnexpectedAnswer, hub_error_class

Json = object
"""A value of JSON as `json.loads` returns it."""
QueryValue = str | int | Credits | None
RETRIED_STATUS = frozenset({429, 502, 503})
"""Only these are tried again (SDK-03): the hub says that the same request may succeed."""
FREE_FORM_FIELDS = frozenset({"input_data", "output_data", "input_schema", "output_schema"})
"""Fields whose content belongs to the agents, so that no number in them is an amount."""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request. `is_repeatable` says that sending it twice has the effect of sending it once."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    body: Json = None
    query: Mapping[str, QueryValue] = field(default_factory=dict[str, QueryValue])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    is_repeatable: bool = False

    def with_idempotency_key(self, key: str) -> ApiCall:
        return replace(self, headers={**self.headers, "Idempotency-Key": key}, is_repeatable=True)

    def target(self) -> str:
        pairs = [f"{name}={encode_segment(str(v))}" for name, v in self.query.items() if v is not None]
        return f"{self.path}?{'&'.join(pairs)}" if pairs else self.path

    def content(self) -> bytes | None:
        if self.method in ("GET", "DELETE") and self.body is None:
            return None
        return dump_json({} if self.body is None else self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response before its body is parsed."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def to_error(self) -> HubError:
        parsed = _parse_error_body(self.body)
        message = parsed.get("message") or f"the hub answered with status {self.status}"
        return hub_error_class(self.status)(
            message,
            code=parsed.get("code") or f"HTTP_{self.status}",
            status=self.status,
            request_id=self.headers.get("x-request-id"),
            retry_after=parse_retry_after(self.headers.get("retry-after")),
            field=parsed.get("field"),
        )

    def require_success(self) -> Answer:
        if not self.is_success():
            raise self.to_error()
        return self

    def bare(self) -> Json:
        """The whole body, for routes that do not wrap it in `data` (R-13)."""
        return load_json(self.require_success().body)

    def data(self) -> Json:
        body = as_object(self.bare())
        if body is None or "data" not in body:
            raise UnexpectedAnswer("the answer has no data")
        return body["data"]

    def next_cursor(self) -> str | None:
        """The encoded `after` of the next page, from the `Link` header or from the body (R-99)."""
        link = self.headers.get("link", "")
        match = re.fullmatch(r"<[^>]*[?&]after=([^&>]+)[^>]*>;.*rel=\"next\".*", link)
        if match:
            return match[1]
        metadata = as_object((as_object(load_json(self.body)) or {}).get("metadata"))
        cursor = (metadata or {}).get("next")
        return encode_segment(cursor) if isinstance(cursor, str) else None


def _parse_error_body(body: bytes) -> dict[str, str]:
    """An error: wrapped as in documents 001 and 002, bare as for frames, or the market's (R-13, FRM-83, R-65)."""
    try:
        parsed: Json = json.loads(body)
    except ValueError:
        return {}
    whole = as_object(parsed) or {}
    fields = as_object(whole.get("error")) or whole
    names = {"error_code": "code", "error_message": "message"}
    renamed = {names.get(name, name): value for name, value in fields.items()}
    return {name: value for name, value in renamed.items() if isinstance(value, str)}


def parse_retry_after(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"[0-9]{1,9}", text.strip()) else None


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with jitter, so that many clients do not return at once (TRN-48)."""

    first_s: float = limits.FIRST_BACKOFF_S
    max_s: float = limits.MAX_BACKOFF_S
    random: Callable[[], float] = random.random

    def delay_after(self, failures: int) -> float:
        """Between half and all of `first · 2^(failures-1)`, at most `max`."""
        doubled = min(self.first_s * 2.0 ** min(failures - 1, 20), self.max_s)
        return doubled * (0.5 + self.random() / 2.0)


def retry_delay(call: ApiCall, error: ChorusError, failures: int, backoff: Backoff) -> float | None:
    """How long to wait before the next attempt; None when the error is final (SDK-03)."""
    if not call.is_repeatable or failures >= limits.MAX_ATTEMPTS:
        return None
    wait = backoff.delay_after(failures)
    if not isinstance(error, HubError):
        return wait if error.retryable else None
    # Waiting does not free a place on a hub that is full.
    if error.status not in RETRIED_STATUS or error.code == "ERR_REGISTRY_FULL":
        return None
    if error.retry_after is None:
        return wait
    return max(wait, error.retry_after) if error.retry_after <= limits.MAX_RETRY_AFTER_S else None


def new_key() -> str:
    """128 random bits as hex, so that no two keys are equal."""
    return secrets.token_hex(16)


def dump_json(value: Json) -> bytes:
    """JSON in which credits are digits. No float prints every amount as it was written, so digits replace a marker
    that no other text can hold."""
    marker = secrets.token_hex(16)

    def write_special(special: Json) -> str:
        if isinstance(special, Credits):
            return f"{marker}{special}"
        raise InvalidInput(f"a {type(special).__name__} is no value of JSON")

    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=write_special)
        return re.sub(f'"{marker}([-0-9.]+)"', r"\1", text).encode()
    except (ValueError, TypeError, UnicodeEncodeError) as fault:
        raise InvalidInput(f"the value cannot be written as JSON: {fault}") from None


def as_object(value: Json) -> dict[str, Json] | None:
    """The value if it is an object of JSON."""
    return cast(dict[str, Json], value) if isinstance(value, dict) else None


def load_json(body: bytes | str) -> Json:
    try:
        parsed: Json = json.loads(body)
    except ValueError:
        raise UnexpectedAnswer("the answer is not JSON") from None
    return parsed


def load_market_json(body: bytes | str) -> Json:
    """JSON of the market: amounts become `Credits` by their digits, other numbers stay what they are."""
    plain = load_json(body)
    exact: Json = json.loads(body, parse_float=_RawNumber, parse_int=_RawNumber)
    return _with_credits(plain, exact)


class _RawNumber(str):
    """The digits of a number, as they stood in the text."""

    __slots__ = ()


def _with_credits(plain: Json, exact: Json) -> Json:
    if isinstance(plain, list):
        pairs = zip(cast(list[Json], plain), cast(list[Json], exact), strict=True)
        return [_with_credits(value, text) for value, text in pairs]
    fields = as_object(plain)
    digits_of = as_object(exact)
    if fields is None or digits_of is None:
        return plain
    out: dict[str, Json] = {}
    for name, value in fields.items():
        digits = digits_of[name]
        if name in FREE_FORM_FIELDS:
            out[name] = value
        elif name in CREDIT_FIELDS and isinstance(digits, _RawNumber):
            out[name] = Credits(str(digits))
        else:
            out[name] = _with_credits(value, digits)
    return out


def encode_segment(text: str) -> str:
    """Percent-encodes one path segment or query value, so that it is safe to append."""
    if text and set(text) == {"."}:
        return "%2E" * len(text)
    return quote(text, safe="-_.~@:")


def parse_base_url(hub: str) -> str:
    """The hub's URL, the prefix of every request URL."""
    try:
        parts = urlsplit(hub)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        parts, has_port = urlsplit(""), False
    is_plain = parts.scheme in ("http", "https") and bool(parts.hostname) and has_port
    is_bare = not (parts.username or parts.password or parts.query or parts.fragment)
    if not (is_plain and is_bare and hub.isascii() and hub.isprintable() and " " not in hub):
        raise InvalidInput("a hub's URL is http:// or https:// with a host, without user, query and fragment")
    return hub.rstrip("/")
