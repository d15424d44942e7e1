"""Adapts what the fuzzer sends and reports where a schema cannot say what the hub means."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import RejectedPositiveData

# The names of the agent whose key the fuzzer has.
OWN_NAMES = ("fuzzer@chorus", "fuzzer", "~fuzzer")

# Refusals of a well-formed request because of what is on the hub, with a status that the documents fix at 400: nobody
# offers the skill, the budget is below its cost, the credits do not suffice, the sender is not registered.
REFUSALS_BY_STATE = ("SKILL_MISMATCH", "BUDGET_INSUFFICIENT", "TRANSFER_FAILED", "ERR_SENDER_NOT_REGISTERED")

# Rules that OpenAPI has no words for, by the refusal: parameters that exclude each other, fields that are compared, a name that is in the path
# and in the body, and an object that must be a JSON Schema or the market's short form of one.
REFUSALS_BY_RULE = (
    "since and before are two questions",
    "since takes no filter and no before",
    "text and since are two questions",
    # A cursor is opaque: its form is no part of the contract.
    "after must be the `next` of the page before",
    # The directory goes on after an agent, the market search only from its own cursor; both are GET /discover.
    "after must be the cursor of another page",
    # Letters of every script are told from signs by tables, not by a pattern.
    "letters and digits, with",
    # Two fields are compared.
    "another than from_owner",
    "the place of one of options",
    "the same as the frame's",
    "another organisation than the one that grants",
    # How many parts of an A2A message are an envelope: the fuzzer does not count what an array contains.
    "exactly one data part of type",
    # A NUL anywhere in a value of any form.
    "a value without NUL characters",
    "skill_name is another one than in the path",
    # A field that must differ between the objects of a list.
    "skill_name is given twice",
    "is not the one in the path",
    # A revision of MCP that needs another header.
    "missing required Mcp-Method header",
    "input_schema of ",
    "output_schema of ",
)


def localize(url: str) -> str:
    """The URL with a closed local port for its host, or one without a host if it has none or a malformed one."""
    try:
        parts = urlsplit(url.strip())
        if parts.hostname:
            return urlunsplit(parts._replace(netloc="127.0.0.1:9"))
    except ValueError:
        pass
    return "http://"


def is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def adapt(value: Any, key: str = "") -> Any:
    """The value with the URLs and times in it adapted. What is neither is unchanged, so that it stays as invalid."""
    if isinstance(value, dict):
        return {key: adapt(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [adapt(item) for item in value]
    if not isinstance(value, str):
        return value
    # The hub calls the URLs that it is given, and nothing may leave this machine.
    if value.strip().lower().startswith(("http:", "https:")):
        return localize(value)
    # A frame is made today and an accord ends in the future; a schema does not know the time.
    if key in ("created_at", "expires_at") and is_time(value):
        return (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    return value


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    # Whether the request is valid is judged after this.
    case.body = adapt(case.body)
    # The fuzzer may neither unregister its own agent nor change its key: every later answer would be 401.
    if (case.method, case.path) == ("DELETE", "/agents/{id}") and case.path_parameters.get("id") in OWN_NAMES:
        case.path_parameters["id"] = "nobody@chorus"
    if case.path == "/agent/keys/rotate" and isinstance(case.body, dict):
        overlap = case.body.get("overlap_s", 0)
        if type(overlap) is int and 0 <= overlap <= 86_400:
            case.body["overlap_s"] = 86_400
    if case.path == "/register" and isinstance(case.body, dict) and case.body.get("agent_id") in OWN_NAMES:
        case.body["agent_id"] = "nobody@chorus"


def read_code(response: schemathesis.Response) -> str | None:
    """The error code of an answer, in the market's form or in that of the other routes."""
    try:
        answer = response.json()
        return str(answer.get("error_code") or answer["error"]["code"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext,
    failure: Exception,
    case: schemathesis.Case[Any],
    response: schemathesis.Response,
) -> bool:
    """Whether a failure is reported: not if a schema cannot tell that the request is refused."""
    # The body may be left out; the fuzzer counts that among its malformed requests.
    if isinstance(failure, AcceptedNegativeData) and case.path == "/heartbeat":
        return isinstance(case.body, (dict, list, str, int, float))
    if not isinstance(failure, RejectedPositiveData):
        return True
    has_reason = any(rule in response.text for rule in REFUSALS_BY_RULE)
    return not has_reason and read_code(response) not in REFUSALS_BY_STATE
