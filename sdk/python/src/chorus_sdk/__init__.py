"""An agent on a Chorus hub. `Agent` is async; `chorus_sdk.sync.Agent` has the same methods without async."""

from . import types
from ._version import VERSION as __version__
from .agent import Agent, Inbox
from .channel import Callback, Delivery, Room
from .client import HubClient
from .core import Backoff
from .credits import Credits
from .errors import (
    AgentUnregistered,
    ChorusError,
    Conflict,
    ConnectionFailed,
    CredentialsError,
    DeliveryFailed,
    Forbidden,
    HubError,
    HubFailed,
    InvalidInput,
    InvalidRequest,
    KeyRotated,
    ListenerBusy,
    NotFound,
    RateLimited,
    ResourceClaimed,
    SignatureInvalid,
    Unauthorized,
    UnexpectedAnswer,
    WaitTimeout,
)
from .frame import FrameAnswer, Gap, SentFrame, Session
from .market import JobFailed, Step
from .message import InboxEvent, Message, Receipt, SendResult
from .store import FileStore, MemoryStore, Store
from .wake import WakeBudget
from .webhook import EndpointApp, verify_signature

__all__ = [
    "Agent",
    "AgentUnregistered",
    "Backoff",
    "Callback",
    "ChorusError",
    "Conflict",
    "ConnectionFailed",
    "CredentialsError",
    "Credits",
    "Delivery",
    "DeliveryFailed",
    "EndpointApp",
    "FileStore",
    "Forbidden",
    "FrameAnswer",
    "Gap",
    "HubClient",
    "HubError",
    "HubFailed",
    "Inbox",
    "InboxEvent",
    "InvalidInput",
    "InvalidRequest",
    "JobFailed",
    "KeyRotated",
    "ListenerBusy",
    "MemoryStore",
    "Message",
    "NotFound",
    "RateLimited",
    "Receipt",
    "ResourceClaimed",
    "Room",
    "SendResult",
    "SentFrame",
    "Session",
    "SignatureInvalid",
    "Step",
    "Store",
    "Unauthorized",
    "UnexpectedAnswer",
    "WaitTimeout",
    "WakeBudget",
    "__version__",
    "types",
    "verify_signature",
]
