"""Runs the jobs of the skills that an agent offers (SDK-13)."""

from __future__ import annotations

import inspect
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from .errors import ChorusError, HubError
from .message import InboxEvent
from .schema import build_input, print_output
from .types import SkillOffer

if TYPE_CHECKING:
    from .agent import Agent

log = logging.getLogger("chorus_sdk")
EXECUTION_ERROR = "EXECUTION_ERROR"


@dataclass(frozen=True, slots=True)
class SkillHandler:
    """A function and the offer under which it works."""

    offer: SkillOffer
    function: Callable[..., Any]
    input_class: type | None
    concurrency: int
    timeout: float


class SkillWorker:
    """Every job is started once, reported once, and stopped when the hub has ended it."""

    def __init__(self, agent: Agent, skills: dict[str, SkillHandler]) -> None:
        self._agent = agent
        self._skills = skills
        self._queue: dict[str, deque[str]] = {name: deque() for name in skills}
        self._known: set[str] = set()
        self._running: dict[str, anyio.CancelScope] = {}
        self._slots = {name: handler.concurrency for name, handler in skills.items()}
        self._changed = anyio.Event()
        self._is_stopping = False
        self.finished = anyio.Event()

    async def publish(self) -> None:
        for handler in self._skills.values():
            await self._agent.publish_skill(handler.offer)

    async def withdraw(self) -> None:
        """A job that waits for a worker that is gone costs reputation, so the offers end with the worker."""
        for name in self._skills:
            try:
                await self._agent.withdraw_skill(name)
            except ChorusError as error:
                log.warning("the skill could not be withdrawn: %s", error.code)

    async def on_connected(self) -> None:
        """Jobs that came while the stream was away are still pending; those that ended meanwhile are stopped."""
        if not self._skills:
            return
        pending = await self._agent.list_jobs(role="worker", status="PENDING")
        waiting = {job["job_id"] for job in pending}
        for job_id in [one for one in self._running if one not in waiting]:
            self._drop(job_id)
        for job in reversed(pending):
            self._enqueue(job["job_id"], job["skill_name"])

    def on_event(self, event: InboxEvent) -> None:
        job_id = event.data.get("job_id")
        if not isinstance(job_id, str):
            return
        if event.name == "job":
            self._enqueue(job_id, str(event.data.get("skill_name")))
        elif event.name == "job_result" and event.data.get("state") in ("cancelled", "expired"):
            self._drop(job_id)

    def _enqueue(self, job_id: str, skill: str) -> None:
        if skill in self._skills and job_id not in self._known:
            self._known.add(job_id)
            self._queue[skill].append(job_id)
            self._changed.set()

    def _drop(self, job_id: str) -> None:
        for queue in self._queue.values():
            if job_id in queue:
                queue.remove(job_id)
        scope = self._running.get(job_id)
        if scope is not None:
            scope.cancel()

    def stop(self) -> None:
        """Running jobs are finished; queued ones stay pending at the hub."""
        self._is_stopping = True
        self._changed.set()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            while not self._is_stopping:
                for name, queue in self._queue.items():
                    while queue and self._slots[name] > 0:
                        self._slots[name] -= 1
                        tasks.start_soon(self._run_job, self._skills[name], name, queue.popleft())
                await self._changed.wait()
                self._changed = anyio.Event()
        self.finished.set()

    async def _run_job(self, handler: SkillHandler, name: str, job_id: str) -> None:
        scope = anyio.CancelScope()
        self._running[job_id] = scope
        try:
            with scope:
                await self._work(handler, job_id)
        finally:
            del self._running[job_id]
            self._known.discard(job_id)
            self._slots[name] += 1
            self._changed.set()

    async def _work(self, handler: SkillHandler, job_id: str) -> None:
        try:
            job = await self._agent.fetch_job(job_id)
            # A replayed event may be about a job that has ended.
            if job["status"] != "PENDING":
                return
            result = await self._execute(handler, job.get("input_data"))
            await self._agent.report_result(job_id, result)
        except HubError as error:
            log.warning("the result of job %s was refused: %s", job_id, error.code)
        except ChorusError as error:
            log.warning("job %s could not be reported (%s); it is pending again", job_id, error.code)

    async def _execute(self, handler: SkillHandler, data: object) -> dict[str, object]:
        began = time.monotonic()
        try:
            with anyio.fail_after(handler.timeout):
                output = await _call_function(handler.function, build_input(handler.input_class, data))
            outcome: dict[str, object] = {"status": "SUCCESS", "output_data": print_output(output)}
        except TimeoutError:
            outcome = _failure("the skill took too long")
        except Exception:
            log.exception("a skill failed")
            outcome = _failure("the skill failed")
        return {**outcome, "execution_time_ms": round((time.monotonic() - began) * 1000)}


async def _call_function(function: Callable[..., Any], data: object) -> object:
    if inspect.iscoroutinefunction(function):
        return cast(object, await function(data))
    # A thread cannot be stopped: when the job is cancelled, its result is dropped.
    return cast(object, await anyio.to_thread.run_sync(function, data, abandon_on_cancel=True))


def _failure(message: str) -> dict[str, object]:
    return {"status": "FAILURE", "error_code": EXECUTION_ERROR, "error_message": message}
