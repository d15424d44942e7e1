"""The market: a skill in a decorator, hires that wait, and credits that are never a float (SDK-13, SDK-14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import anyio
import pytest
from actors import WAIT_S, serving
from conftest import MakeAgent
from pydantic import BaseModel

from chorus_sdk import Agent, Credits, HubError, InvalidInput, JobFailed, Step
from chorus_sdk.core import dump_json, load_market_json
from chorus_sdk.schema import describe_schema

pytestmark = pytest.mark.anyio


@dataclass
class Text:
    text: str
    tags: list[str] = field(default_factory=list)


@dataclass
class Length:
    length: int


class Mood(BaseModel):
    mood: str


async def wait_offered(agent: Agent, skill: str) -> None:
    with anyio.fail_after(WAIT_S):
        while not await agent.search_offers(skill):
            await anyio.lowlevel.checkpoint()


async def test_a_skill_is_hired_paid_and_withdrawn(make_agent: MakeAgent) -> None:
    boss, worker = await make_agent("boss"), await make_agent("worker")
    skill, mood = f"count-{worker.handle[1:]}", f"mood-{worker.handle[1:]}"

    @worker.skill(skill, cost="0.10", input=Text, output=Length)
    async def count(given: Text) -> Length:
        """Counts the characters of a text."""
        return Length(len(given.text))

    @worker.skill(mood, cost=Credits("0.25"), output=Mood)
    def judge(given: dict[str, Any]) -> Mood:
        return Mood(mood="good" if given["length"] > 3 else "short")

    async with serving(worker):
        await wait_offered(boss, skill)
        await wait_offered(boss, mood)
        offers = await boss.search_offers(skill, max_cost="0.10")
        assert offers[0]["skill"]["cost_per_call"] == Credits("0.10")
        job = await boss.hire(skill, {"text": "guten Tag", "ratio": 0.3}, budget="0.15", wait=True, timeout=WAIT_S)
        assert (job["output_data"], job["execution_cost"]) == ({"length": 9}, Credits("0.10"))
        assert job.get("input_data") == {"text": "guten Tag", "ratio": 0.3}, "numbers of the agents stay numbers"
        with pytest.raises(HubError) as refused:
            await boss.hire(skill, {"words": 3}, budget="0.15")
        assert refused.value.code == "SKILL_MISMATCH"
        last = await boss.pipeline([Step(skill), Step(mood, {"length": "$output.length"})], {"text": "abc"}, budget="1")
        assert last["output_data"] == {"mood": "short"}
    account = await boss.fetch_account()
    assert (account["balance"], account["held"]) == (Credits("99.55"), Credits(0))
    assert await boss.search_offers(skill) == []


async def test_an_agent_with_skills_alone_leaves_its_mail(make_agent: MakeAgent) -> None:
    boss, worker = await make_agent("boss"), await make_agent("worker")
    skill = f"alone-{worker.handle[1:]}"

    @worker.skill(skill, cost="0.10")
    async def work(given: object) -> dict[str, bool]:
        return {"done": True}

    async with serving(worker):
        await wait_offered(boss, skill)
        sent = await boss.send(worker.agent_id, "for the process that reads mail")
        await boss.hire(skill, {}, budget="0.10", wait=True, timeout=WAIT_S)
    with anyio.fail_after(WAIT_S):
        message = await anext(aiter(worker.messages()))
    assert message.trace_id == sent.trace_id


async def test_a_failure_and_a_timeout_are_reported(make_agent: MakeAgent) -> None:
    boss, worker = await make_agent("boss"), await make_agent("worker")
    skill, slow = f"fail-{worker.handle[1:]}", f"slow-{worker.handle[1:]}"

    @worker.skill(skill, cost="0.10")
    async def fail(given: object) -> None:
        raise RuntimeError("the password is hunter2")

    @worker.skill(slow, cost="0.10", timeout=0.05)
    async def sleep(given: object) -> None:
        await anyio.sleep_forever()

    async with serving(worker):
        for name in (skill, slow):
            await wait_offered(boss, name)
            with pytest.raises(JobFailed) as failed:
                await boss.hire(name, {}, budget="0.10", wait=True, timeout=WAIT_S)
            assert failed.value.code == "EXECUTION_ERROR" and "hunter2" not in str(failed.value.job)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"], indirect=True)
async def test_a_cancelled_job_is_stopped_and_a_waiting_one_is_done_later(make_agent: MakeAgent) -> None:
    boss, worker = await make_agent("boss"), await make_agent("worker")
    skill = f"long-{worker.handle[1:]}"
    began, stopped = anyio.Event(), anyio.Event()

    @worker.skill(skill, cost="0.10")
    async def work(given: dict[str, Any]) -> dict[str, bool]:
        if given.get("quick"):
            return {"done": True}
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()
        return {"done": False}

    with anyio.fail_after(WAIT_S):
        async with serving(worker):
            await wait_offered(boss, skill)
            job = await boss.hire(skill, {}, budget="0.10")
            waiting = await boss.hire(skill, {"quick": True}, budget="0.10")  # concurrency is 1, so it waits
            await began.wait()
            await boss.cancel_job(job["job_id"])
            await stopped.wait()
            while (await boss.fetch_job(waiting["job_id"]))["status"] == "PENDING":
                await anyio.lowlevel.checkpoint()
    assert (await boss.fetch_job(waiting["job_id"]))["output_data"] == {"done": True}
    assert (await boss.fetch_job(job["job_id"]))["state"] == "cancelled"


async def test_a_job_on_the_board_is_claimed_and_its_delivery_judged(make_agent: MakeAgent) -> None:
    boss, worker = await make_agent("boss"), await make_agent("worker")
    skill = f"board-{worker.handle[1:]}"
    await worker.publish_skill({"skill_name": skill, "cost_per_call": Credits("0.10")})
    page = await boss.fetch_skill(skill)
    assert (page["skill"]["min_cost"], page["offers"][0]["agent_id"]) == (Credits("0.10"), worker.agent_id)
    states = []
    for verdict in (boss.approve_job, boss.reject_job):
        job_id = (await boss.hire(skill, {}, budget="0.10", board=True, approve_within=3600))["job_id"]
        assert [job["job_id"] for job in await worker.list_board(skill=skill)] == [job_id]
        assert (await worker.claim_job(job_id))["agent_id"] == worker.agent_id
        asked = await worker.report_result(job_id, {"status": "PENDING", "question": "in which language?"})
        assert asked["state"] == "input-required"
        assert (await boss.answer_job(job_id, "in French"))["state"] == "dispatched"
        delivered = await worker.report_result(job_id, {"status": "SUCCESS", "output_data": {}})
        assert delivered["state"] == "delivered"
        states.append((await verdict(job_id))["state"])
    assert states == ["done", "failed"]
    assert (await boss.fetch_account())["balance"] == Credits("99.90")


async def test_a_transfer_is_exact(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    paid = await alice.transfer(bob.agent_id, Credits(Decimal("12.34")))
    assert (paid["sender_balance"], paid["transfer"]["amount"]) == (Credits("87.66"), Credits("12.34"))
    postings = (await bob.fetch_audit())["postings"]
    assert postings


# SDK-14
async def test_all_amounts_go_round_unchanged() -> None:
    amounts = [Credits.from_hundredths(number) for number in range(1, 10_001)]
    text = dump_json([{"amount": amount} for amount in amounts])
    assert b'{"amount": 0.10}' in text and b'{"amount": 100.00}' in text
    assert load_market_json(text) == [{"amount": amount} for amount in amounts]
    assert [Credits(str(amount)) for amount in amounts] == amounts
    assert Credits("1000000000.00").hundredths == 100_000_000_000


@pytest.mark.parametrize("wrong", [0.1, True, None, [1]])
async def test_a_float_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Credits(wrong)


@pytest.mark.parametrize("wrong", ["0.101", "1e1", "", "٣", "1.", ".5", "01", "NaN", Decimal("0.001")])
async def test_an_amount_has_digits_and_two_decimals(wrong: str | Decimal) -> None:
    with pytest.raises(ValueError):
        Credits(wrong)


async def test_schemas_of_classes() -> None:
    assert describe_schema(Text) == {
        "type": "object",
        "properties": {"text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["text"],
    }
    assert describe_schema(Mood)["required"] == ["mood"]
    with pytest.raises(InvalidInput):
        describe_schema(complex)
