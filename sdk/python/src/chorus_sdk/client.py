"""HTTP calls to a hub and streams that resume, for any event loop that anyio knows."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar, cast
from weakref import WeakSet

import anyio
import httpx2

from . import limits
from ._version import VERSION
from .core import Answer, ApiCall, Backoff, as_object, load_market_json, parse_base_url, retry_delay
from .errors import ChorusError, ConnectionFailed, UnexpectedAnswer
from .sse import ResumeState, SseReader, StreamEvent

log = logging.getLogger("chorus_sdk")
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
Verify = ssl.SSLContext | str | bool


class HubClient:
    """A client of one hub with one key."""

    def __init__(
        self,
        hub_url: str,
        key: str | None,
        *,
        backoff: Backoff | None = None,
        sleep: Sleep = anyio.sleep,
        verify: Verify = True,
        call_timeout: float = limits.CALL_TIMEOUT_S,
        silence_timeout: float = limits.STREAM_SILENCE_S,
    ) -> None:
        self.base_url = parse_base_url(hub_url)
        self.backoff = backoff or Backoff()
        self.sleep = sleep
        self.call_timeout = call_timeout
        self.silence_timeout = silence_timeout
        self._is_version_checked = False
        self._streams: WeakSet[EventStream] = WeakSet()
        self._authorization = f"Bearer {key}" if key else None
        # A redirect would send the key to another host.
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(call_timeout, connect=limits.CONNECT_TIMEOUT_S),
            follow_redirects=False,
            headers={"User-Agent": f"chorus-sdk-python/{VERSION}"},
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            verify=verify if isinstance(verify, (bool, ssl.SSLContext)) else ssl.create_default_context(cafile=verify),
            trust_env=True,
        )

    def __repr__(self) -> str:
        return f"HubClient({self.base_url!r})"

    def replace_key(self, key: str) -> None:
        self._authorization = f"Bearer {key}"

    async def close(self) -> None:
        for stream in list(self._streams):
            await stream.close()
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def build_headers(self, call: ApiCall, accept: str) -> dict[str, str]:
        headers = {"Accept": accept, **call.headers}
        if self._authorization and "Authorization" not in call.headers:
            headers["Authorization"] = self._authorization
        if call.content() is not None:
            headers["Content-Type"] = "application/json"
        return headers

    async def send_once(self, call: ApiCall, url: str | None = None) -> Answer:
        """Sends one call and returns the answer with any status."""
        headers = self.build_headers(call, "application/json")
        if url is not None:  # a callback: the key belongs to the hub alone
            headers.pop("Authorization", None)
        target = url if url is not None else self.base_url + call.target()
        try:
            with anyio.fail_after(self.call_timeout):
                request = self._http.stream(call.method, target, headers=headers, content=call.content())
                async with request as response:
                    return await read_answer(response)
        except (httpx2.TransportError, TimeoutError) as fault:
            raise self._transport_error(fault) from None
        except httpx2.InvalidURL:
            raise UnexpectedAnswer("the address of the request is not a URL") from None

    async def send_call(self, call: ApiCall, url: str | None = None) -> Answer:
        """Sends one call; a repeatable one is tried again as SDK-03 says. Returns a 2xx answer."""
        failures = 0
        while True:
            try:
                return (await self.send_once(call, url)).require_success()
            except ChorusError as error:
                failures += 1
                wait = retry_delay(call, error, failures, self.backoff)
                if wait is None:
                    raise
                log.debug("call failed (%s), next attempt in %.1f s", error.code, wait)
            await self.sleep(wait)

    async def fetch_data(self, call: ApiCall, _shape: type[T]) -> T:
        """The `data` of the answer; `_shape` is its type in the contract."""
        return cast(T, (await self.send_call(call)).data())

    async def fetch_bare(self, call: ApiCall, _shape: type[T]) -> T:
        return cast(T, (await self.send_call(call)).bare())

    async def fetch_market(self, call: ApiCall, _shape: type[T]) -> T:
        return cast(T, load_market_json((await self.send_call(call)).body))

    def open_stream(self, call: ApiCall, since: str | None = None) -> EventStream:
        stream = EventStream(self, call, since)
        self._streams.add(stream)
        return stream

    async def check_version(self) -> None:
        """Warns once about a hub that is older than this SDK (SDK-21)."""
        if self._is_version_checked:
            return
        self._is_version_checked = True
        try:
            document = as_object((await self.send_once(ApiCall("GET", "/.well-known/chorus.json"))).bare())
        except ChorusError:
            return
        version = (document or {}).get("server_version")
        if isinstance(version, str) and minor_version(version) < minor_version(VERSION):
            log.warning("the hub is version %.20s and this SDK is %s: update the hub", version, VERSION)

    def transport_error(self, fault: Exception) -> ConnectionFailed:
        return self._transport_error(fault)

    def _transport_error(self, fault: Exception) -> ConnectionFailed:
        if isinstance(fault, (TimeoutError, httpx2.TimeoutException)):
            return ConnectionFailed("the hub did not answer in time")
        # The text of some faults holds the URL, which may be a secret.
        return ConnectionFailed(f"the hub cannot be reached: {type(fault).__name__}")

    async def open_response(self, call: ApiCall) -> httpx2.Response:
        """The open response of a stream."""
        request = self._http.build_request(
            call.method,
            self.base_url + call.target(),
            headers=self.build_headers(call, "text/event-stream"),
            content=call.content(),
            timeout=httpx2.Timeout(self.call_timeout, connect=limits.CONNECT_TIMEOUT_S, read=self.silence_timeout),
        )
        try:
            response = await self._http.send(request, stream=True)
        except httpx2.TransportError as fault:
            raise self._transport_error(fault) from None
        kind = response.headers.get("content-type", "")
        if response.status_code == 200 and kind.startswith("text/event-stream"):
            return response
        try:
            with anyio.fail_after(self.call_timeout):
                answer = await read_answer(response)
        except (httpx2.TransportError, TimeoutError) as fault:
            raise self._transport_error(fault) from None
        finally:
            await response.aclose()
        answer.require_success()
        raise UnexpectedAnswer("the answer is not an event stream")

    async def stream_upload(self, url: str, lines: AsyncIterator[bytes], kind: str) -> Answer:
        """Posts a body as it is written, without a key and without a repetition."""
        try:
            headers = {"Content-Type": kind, "Accept": "application/json"}
            timeout = httpx2.Timeout(None, connect=limits.CONNECT_TIMEOUT_S)
            request = self._http.stream("POST", url, headers=headers, content=lines, timeout=timeout)
            async with request as response:
                return await read_answer(response)
        except httpx2.TransportError as fault:
            raise self._transport_error(fault) from None


async def read_answer(response: httpx2.Response) -> Answer:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > limits.MAX_ANSWER_BYTES:
            raise UnexpectedAnswer(f"the answer is longer than {limits.MAX_ANSWER_BYTES} bytes")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, bytes(body))


def minor_version(version: str) -> tuple[int, int]:
    parts = [int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit()]
    return (parts[0], parts[1]) if len(parts) == 2 else (0, 0)


class EventStream:
    """An endless stream of events. It replays, goes live and connects again by itself; only a final error ends it."""

    def __init__(self, client: HubClient, call: ApiCall, since: str | None) -> None:
        self._client = client
        self._call = call
        self._state = ResumeState(since, client.backoff)
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._reader = SseReader()
        self.on_reopen_without_cursor: Callable[[str], Awaitable[list[StreamEvent]]] | None = None

    @property
    def last_cursor(self) -> str | None:
        return self._state.last_cursor

    @property
    def opened_at(self) -> str | None:
        """When the hub opened the stream for the first time, by the hub's clock."""
        return self._state.connected_at

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        while True:
            event = self._state.next_event()
            if event is not None:
                return event
            if self._chunks is None:
                await self._connect()
            else:
                await self._read_more(self._chunks)

    async def wait_opened(self) -> None:
        """Connects, and returns when the hub says that the stream is open. Events that came with it are kept."""
        while not self._state.is_opened:
            if self._chunks is None:
                await self._connect()
            else:
                await self._read_more(self._chunks)

    async def _connect(self) -> None:
        call = self._call
        if self._state.last_cursor is not None:
            headers = {**call.headers, "Last-Event-ID": self._state.last_cursor}
            call = ApiCall(call.method, call.path, call.body, call.query, headers)
        elif self._state.connected_at is not None and self.on_reopen_without_cursor is not None:
            self._state.feed(await self.on_reopen_without_cursor(self._state.connected_at))
        try:
            response = await self._client.open_response(call)
        except ChorusError as error:
            is_waited_out = error.retryable or (error.status or 0) >= 500
            if not is_waited_out:
                raise
            await self._pause(error)
            return
        self._response = response
        self._reader = SseReader()
        self._chunks = response.aiter_raw()

    async def _read_more(self, chunks: AsyncIterator[bytes]) -> None:
        fault: Exception | None = None
        is_read = False
        try:
            chunk = await anext(chunks, None)
            if chunk is not None:
                self._state.feed(self._reader.read_chunk(chunk))
                is_read = True
        except (httpx2.TransportError, httpx2.StreamError) as broken:
            fault = self._client.transport_error(broken)
        finally:
            # A cancelled read has broken its connection: the next call resumes by the last id handed out.
            if not is_read:
                await self._disconnect()
        if not is_read:
            await self._pause(fault)

    async def _pause(self, fault: Exception | None) -> None:
        self._state.raise_if_final()
        wait = self._state.delay_after_failure(fault)
        log.info("the stream ended (%s), connecting again in %.1f s", fault or "closed by the hub", wait)
        await self._client.sleep(wait)

    async def _disconnect(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await response.aclose()

    async def close(self) -> None:
        self._state.drop_pending()
        await self._disconnect()

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
