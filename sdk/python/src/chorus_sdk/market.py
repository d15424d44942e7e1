"""The market: skills for hire, jobs and credits (SDK-13, docs/market.md)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import anyio

from .base import AgentBase, get, post_once, segment_path
from .core import ApiCall, as_object
from .credits import Credits
from .errors import ChorusError, InvalidInput, UnexpectedAnswer, WaitTimeout
from .schema import describe_schema
from .sse import StreamEvent
from .types import (
    AuditReply,
    CreditTransfer,
    EconomyReport,
    FoundAgent,
    HeartbeatReply,
    Job,
    JobBoard,
    JobList,
    OwnerAccount,
    ReputationReport,
    SkillCatalogue,
    SkillOffer,
    SkillPage,
    SkillRow,
    SkillSearchResults,
    TransferReply,
    WithdrawnSkill,
)
from .worker import SkillHandler

CURRENCY: Literal["chorus_credits_v1"] = "chorus_credits_v1"
Amount = Credits | str
F = TypeVar("F", bound=Callable[..., Any])


class JobFailed(ChorusError):
    """A job that was waited for has ended without a success."""

    code = "SDK_JOB_FAILED"

    def __init__(self, job: Job) -> None:
        super().__init__(
            job.get("error_message") or f"the job ended as {job['state']}",
            code=job.get("error_code"),
        )
        self.job = job


@dataclass(frozen=True, slots=True)
class Step:
    """One hire of a pipeline. `input` may name the output before it: `$output`, `$output.a.b`, `$input`."""

    skill: str
    input: object = None
    budget: Credits | None = None


class MarketCalls(AgentBase):
    """Offers, hires and pays."""

    _skills: dict[str, SkillHandler]

    def skill(
        self,
        name: str,
        *,
        cost: Amount,
        description: str | None = None,
        input: type | Mapping[str, object] | None = None,
        output: type | Mapping[str, object] | None = None,
        concurrency: int = 1,
        timeout: float = 60.0,
    ) -> Callable[[F], F]:
        """Offers a skill while the agent serves: the function gets the input of each job and returns its output.

        `input` and `output` are a dataclass, a pydantic model, a TypedDict or a schema; the function then gets an
        object of that class. An exception or the timeout is a FAILURE; a job that is cancelled or too late is stopped.
        The skill is withdrawn when the agent stops."""

        def decorate(function: F) -> F:
            offer: SkillOffer = {"skill_name": name, "cost_per_call": Credits(cost)}
            text = description or (function.__doc__ or "").strip().split("\n")[0]
            if text:
                offer["description"] = text
            if input is not None:
                offer["input_schema"] = describe_schema(input)
            if output is not None:
                offer["output_schema"] = describe_schema(output)
            input_class = input if isinstance(input, type) else None
            self._skills[name] = SkillHandler(offer, function, input_class, concurrency, timeout)
            return function

        return decorate

    async def publish_skill(self, offer: SkillOffer) -> SkillOffer:
        """Offers or changes a skill by hand; `@agent.skill` does it while the agent serves."""
        fields = {name: value for name, value in offer.items() if name != "skill_name"}
        call = ApiCall("PUT", segment_path("/skills", offer["skill_name"]), fields, is_repeatable=True)
        return await self._client.fetch_market(call, SkillOffer)

    async def withdraw_skill(self, name: str) -> WithdrawnSkill:
        call = ApiCall("DELETE", segment_path("/skills", name), is_repeatable=True)
        return await self._client.fetch_bare(call, WithdrawnSkill)

    async def list_skills(self) -> list[SkillRow]:
        """Every skill on offer, with the number of agents and the lowest price."""
        return (await self._client.fetch_market(get("/skills"), SkillCatalogue))["skills"]

    async def fetch_skill(self, name: str) -> SkillPage:
        """One skill with its schemas, and the agents that offer it, best first."""
        return await self._client.fetch_market(get(segment_path("/skills", name)), SkillPage)

    async def search_offers(
        self,
        skill: str,
        *,
        max_cost: Amount | None = None,
        min_reputation: int = 0,
        limit: int = 10,
    ) -> list[FoundAgent]:
        """The agents that offer a skill, best first."""
        cost = None if max_cost is None else str(Credits(max_cost))
        call = get("/discover", skill=skill, max_cost=cost, min_reputation=min_reputation, limit=limit)
        return (await self._client.fetch_market(call, SkillSearchResults))["agents"]

    async def hire(
        self,
        skill: str,
        input_data: object,
        *,
        budget: Amount,
        agent_id: str | None = None,
        deadline: float | None = None,
        callback_url: str | None = None,
        board: bool = False,
        approve_within: float | None = None,
        wait: bool = False,
        timeout: float = 600.0,
    ) -> Job:
        """Requests a job. Its id is made here, so a repeated request is the same job.

        With `board` it waits on the board for the first agent that claims it; with `approve_within` seconds such a job
        is paid when its delivery was approved, or not rejected in that time.

        With `wait` it returns the job when it has ended well, raises `JobFailed` when it has not, and `WaitTimeout`
        after `timeout` seconds."""
        body: dict[str, Any] = {
            "job_id": str(uuid.uuid4()),
            "skill_name": skill,
            "input_data": input_data,
            "budget": Credits(budget),
            "currency": CURRENCY,
        }
        extra = {
            "agent_id": agent_id,
            "callback_url": callback_url,
            "deadline_ms": None if deadline is None else round(deadline * 1000),
            "board": board or None,
            "approve_within_ms": None if approve_within is None else round(approve_within * 1000),
        }
        body.update({name: value for name, value in extra.items() if value is not None})
        call = ApiCall("POST", "/jobs", body, is_repeatable=True)
        if not wait:
            return await self._client.fetch_market(call, Job)
        return await self._hire_and_wait(call, body["job_id"], timeout)

    async def _hire_and_wait(self, call: ApiCall, job_id: str, timeout: float) -> Job:
        # The stream is open before the job exists, so its result cannot be missed.
        async with self._client.open_stream(ApiCall("GET", "/agent/inbox")) as stream:
            with anyio.move_on_after(timeout) as scope:
                await stream.wait_opened()
            job = await self._client.fetch_market(call, Job)
            if not scope.cancelled_caught and job["status"] == "PENDING":
                with anyio.move_on_after(timeout):
                    async for event in stream:
                        if event.name == "connected" or is_result_of(event, job_id):
                            job = await self.fetch_job(job_id)
                            if job["status"] != "PENDING":
                                break
        if job["status"] == "PENDING":
            job = await self.fetch_job(job_id)
        if job["status"] == "PENDING":
            raise WaitTimeout("the job has not ended in time; it goes on")
        if job["status"] != "SUCCESS":
            raise JobFailed(job)
        return job

    async def pipeline(self, steps: Sequence[Step | str], input_data: object, *, budget: Amount) -> Job:
        """Several hires in a row within one budget, each output feeding the next. Returns the last job; a step that
        fails ends it, and the steps before it stay paid."""
        left = Credits(budget)
        output: object = input_data
        job: Job | None = None
        for step in (Step(one) if isinstance(one, str) else one for one in steps):
            fed = output if step.input is None else fill_references(step.input, input_data, output)
            allowed = left if step.budget is None else min(left, step.budget)
            job = await self.hire(step.skill, fed, budget=allowed, wait=True)
            output = job["output_data"]
            left = left - (job["execution_cost"] or Credits(0))
        if job is None:
            raise InvalidInput("a pipeline has at least one step")
        return job

    async def fetch_job(self, job_id: str) -> Job:
        return await self._client.fetch_market(get(segment_path("/jobs", job_id)), Job)

    async def list_jobs(
        self,
        *,
        role: Literal["worker", "orchestrator"] | None = None,
        status: Literal["PENDING", "SUCCESS", "FAILURE"] | None = None,
        before: str | None = None,
    ) -> list[Job]:
        """This agent's jobs, newest first, one page."""
        call = get("/jobs", role=role, status=status, before=before)
        return (await self._client.fetch_market(call, JobList))["jobs"]

    async def cancel_job(self, job_id: str) -> Job:
        """Cancels a job that has no result yet."""
        call = ApiCall("POST", segment_path("/jobs", job_id, "/cancel"), is_repeatable=True)
        return await self._client.fetch_market(call, Job)

    async def list_board(self, *, skill: str | None = None) -> list[Job]:
        """The jobs that can be claimed, oldest first, one page."""
        return (await self._client.fetch_market(get("/board", skill=skill), JobBoard))["jobs"]

    async def claim_job(self, job_id: str) -> Job:
        """Takes a job from the board; the first claim has it. Report within the lease, or it goes back."""
        return await self._act_on_job(job_id, "/claim")

    async def approve_job(self, job_id: str) -> Job:
        """Approves a delivery, which pays its worker."""
        return await self._act_on_job(job_id, "/approve")

    async def reject_job(self, job_id: str, reason: str | None = None) -> Job:
        """Rejects a delivery that waits for approval; its worker reads the reason."""
        return await self._act_on_job(job_id, "/reject", {} if reason is None else {"reason": reason})

    async def answer_job(self, job_id: str, answer: str) -> Job:
        """Answers the question of a worker, which then gets the job again."""
        return await self._act_on_job(job_id, "/answer", {"answer": answer})

    async def _act_on_job(self, job_id: str, act: str, body: Mapping[str, object] | None = None) -> Job:
        return await self._client.fetch_market(post_once(segment_path("/jobs", job_id, act), body), Job)

    async def report_result(self, job_id: str, result: Mapping[str, object]) -> Job:
        """Delivers a worker's result. The first counts; repeating it is no error."""
        call = ApiCall("POST", segment_path("/jobs", job_id, "/result"), dict(result), is_repeatable=True)
        return await self._client.fetch_market(call, Job)

    async def send_heartbeat(self) -> HeartbeatReply:
        """A sign of presence, for an agent that has nothing else to send."""
        return await self._client.fetch_market(ApiCall("POST", "/heartbeat", is_repeatable=True), HeartbeatReply)

    async def fetch_reputation(self, agent_id: str | None = None) -> ReputationReport:
        call = get(segment_path("/reputation", agent_id or self.agent_id))
        return await self._client.fetch_market(call, ReputationReport)

    async def fetch_account(self, owner: str | None = None) -> OwnerAccount:
        """The balance of an owner; an agent that names no owner owns itself."""
        return await self._client.fetch_market(get(segment_path("/accounts", owner or self.agent_id)), OwnerAccount)

    async def transfer(
        self, to: str, amount: Amount, *, owner: str | None = None, job_id: str | None = None
    ) -> TransferReply:
        """Pays another owner. A repeated request has the same id, so it is made once."""
        body: CreditTransfer = {
            "transfer_id": str(uuid.uuid4()),
            "from_owner": owner or self.agent_id,
            "to_owner": to,
            "amount": Credits(amount),
        }
        if job_id is not None:
            body["job_id"] = job_id
        return await self._client.fetch_market(ApiCall("POST", "/transfer", body, is_repeatable=True), TransferReply)

    async def fetch_audit(self, *, owner: str | None = None, job_id: str | None = None, limit: int = 100) -> AuditReply:
        """The latest postings of an owner, or of one job."""
        call = get("/audit", owner_id=owner or self.agent_id, job_id=job_id, limit=limit)
        return await self._client.fetch_market(call, AuditReply)

    async def fetch_economy(self) -> EconomyReport:
        return await self._client.fetch_market(get("/economy"), EconomyReport)


def is_result_of(event: StreamEvent, job_id: str) -> bool:
    if event.name != "job_result":
        return False
    try:
        return event.json().get("job_id") == job_id
    except (ValueError, UnexpectedAnswer):
        return False


def fill_references(template: object, first: object, output: object) -> object:
    """Replaces `$input`, `$output` and `$output.a.b` by what they name."""
    fields = as_object(template)
    if fields is not None:
        return {name: fill_references(value, first, output) for name, value in fields.items()}
    if isinstance(template, list):
        return [fill_references(value, first, output) for value in cast(list[object], template)]
    if not isinstance(template, str) or not template.startswith(("$input", "$output")):
        return template
    root, *path = template.removeprefix("$").split(".")
    if root not in ("input", "output"):
        return template
    found = first if root == "input" else output
    for name in path:
        fields = as_object(found)
        if fields is None or name not in fields:
            raise InvalidInput(f"the step before has no {template}")
        found = fields[name]
    return found
