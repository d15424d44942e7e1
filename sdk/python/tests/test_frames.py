"""Frames between the sessions of a handle: questions, handovers, decisions and locks (SDK-12)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from actors import WAIT_S, agent_at
from conftest import MakeAgent

from chorus_sdk import Gap, HubError, InvalidInput, ResourceClaimed, Session
from chorus_sdk.frame import FrameStream, scope_handle
from chorus_sdk.locks import covers_resource
from chorus_sdk.testing import TestHub
from chorus_sdk.types import Frame

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def watching(session: Session, filter: str | None = None) -> AsyncIterator[FrameStream]:
    async with session.watch(filter) as frames:
        await frames.opened()
        yield frames


async def next_frame(frames: FrameStream) -> Frame:
    with anyio.fail_after(WAIT_S):
        frame = await anext(frames)
    assert not isinstance(frame, Gap)
    return frame


async def test_sessions_hear_one_another(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    editor, tester = alice.session("cc-editor", "s1"), alice.session("cc-tester", "s2")
    async with watching(tester, "kind:agent_advisory") as frames:
        roster = await alice.fetch_roster()
        assert [row["session"] for row in roster["sessions"]] == ["s2"]
        await editor.broadcast("filtered out", event="merged")
        sent = await editor.advise("moving the token check", files=["src/auth.rs"])
        frame = await next_frame(frames)
    assert (frame["frame_id"], frame["sender_handle"]) == (sent.frame_id, alice.handle)
    assert frame["provenance_basis"] == "session:cc-editor@s1"
    assert sent.recipient_count == 1


async def test_only_a_session_that_says_so_computed_on_the_device(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FRM-15, R-104: most models run on a server, and `local-only` says that nothing left the device
    alice = await make_agent("alice")
    listener = alice.session("cc-listener", "s0")
    monkeypatch.delenv("CHORUS_COMPUTE", raising=False)
    sessions = [alice.session("cc-editor"), alice.session("cc-editor", compute="local-only")]
    monkeypatch.setenv("CHORUS_COMPUTE", "server-aggregate")
    sessions += [alice.session("cc-editor"), alice.session("cc-editor", compute="local-only")]
    monkeypatch.setenv("CHORUS_COMPUTE", "on the moon")
    with pytest.raises(InvalidInput, match="server-active, server-aggregate, local-only"):
        alice.session("cc-editor")
    said: list[str] = []
    async with watching(listener, "kind:agent_advisory") as frames:
        for session in sessions:
            await session.advise("reading")
            said.append((await next_frame(frames))["provenance_compute_location"])
    assert said == ["server-active", "local-only", "server-aggregate", "local-only"]


async def test_a_question_is_answered(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    asker, helper = alice.session("cc-editor"), alice.session("cc-helper", "h1")

    async def help_once(frames: FrameStream) -> None:
        await helper.answer(await next_frame(frames), "yes, the importer does")

    async with watching(helper, "kind:agent_query") as frames, anyio.create_task_group() as tasks:
        tasks.start_soon(help_once, frames)
        answers = await asker.ask("does anything use the old format?", window=WAIT_S, count=1)
    assert [(answer.session, answer.text) for answer in answers] == [("h1", "yes, the importer does")]
    assert await asker.ask("and now?", window=0.05) == []


async def test_a_decision_and_a_handover(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    worker, person = alice.session("cc-worker", "w"), alice.session("phone", "p")

    async def decide_once(frames: FrameStream) -> None:
        await person.answer(await next_frame(frames), "At night")

    async with watching(person, "kind:agent_binding_moment") as frames, anyio.create_task_group() as tasks:
        tasks.start_soon(decide_once, frames)
        decided = await worker.decide(
            "The migration is ready.",
            {
                "stem": "When shall it run?",
                "options": [{"label": "Now", "reasoning": "Sooner."}, {"label": "At night", "reasoning": "Quiet."}],
                "recommended_idx": 1,
            },
            offer="I can start it at any time.",
            timeout=WAIT_S,
        )
    assert decided is not None and decided.text == "At night"
    async with watching(person, "kind:agent_handover") as frames:
        offered = await worker.handover("The check is moved.", refs=["docs/plan.md"])
        await person.take_handover(await next_frame(frames))
        claim = await next_frame(frames)
    payload = claim["payload"]
    assert payload.get("next_session_id") == "p" and payload.get("pointer_refs") == [f"frame:{offered.frame_id}"]


async def test_a_lock_excludes_and_is_released_on_every_way_out(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    one, two = alice.session("cc-one"), alice.session("cc-two")
    with pytest.raises(RuntimeError, match="the work failed"):
        async with one.lock("src", intent="moving files"):
            with pytest.raises(ResourceClaimed):
                async with two.lock("src/auth.rs", wait=False):
                    pytest.fail("a claim on a folder covers its files")
            raise RuntimeError("the work failed")
    async with two.lock("src/auth.rs", wait=False) as lease:
        assert lease


async def test_a_lock_waits_and_is_extended(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    hasty = agent_at(alice.hub_url, alice)  # it extends at once, and not after half a minute
    one, two = hasty.session("cc-one"), alice.session("cc-two")
    order: list[str] = []
    async with watching(two, "kind:agent_lease_extend") as extensions, anyio.create_task_group() as tasks:

        async def take_second() -> None:
            async with two.lock("db"):
                order.append("two")

        with anyio.fail_after(WAIT_S):
            async with one.lock("db", ttl=60):
                tasks.start_soon(take_second)
                await next_frame(extensions)
                await next_frame(extensions)
                order.append("one")
    assert order == ["one", "two"]
    await hasty.close()


async def test_frames_to_other_handles_do_not_name_the_session(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    session = alice.session("cc-editor", "secret-session")
    with pytest.raises(HubError) as refused:
        await session.advise("hello", scope=bob.handle)
    assert refused.value.code == "scope-unauthorised"
    await bob.create_grant(alice.handle)
    async with watching(bob.session("cc-x")) as frames:
        await session.advise("hello", scope=bob.handle)
        frame = await next_frame(frames)
    assert "secret-session" not in str(frame)


async def test_stale_frames_are_dropped(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    late = datetime.now(UTC) + timedelta(minutes=2)
    sender, receiver = alice.session("cc-one"), alice.session("cc-two", clock=lambda: late)
    async with watching(receiver) as frames:
        await sender.send_frame("agent_advisory", {"advisory_text": "stale"}, ttl_ms=1000)
        await sender.send_frame("agent_advisory", {"advisory_text": "lasting"})
        frame = await next_frame(frames)
    assert frame["payload"].get("advisory_text") == "lasting"


async def test_without_a_time_to_live_a_frame_is_news_for_an_hour(make_agent: MakeAgent) -> None:
    """FRM-11. What says itself how long it is valid stays, and so does what has a time to live."""
    alice = await make_agent("alice")
    late = datetime.now(UTC) + timedelta(minutes=61)
    sender, receiver = alice.session("cc-one"), alice.session("cc-two", clock=lambda: late)
    async with watching(receiver) as frames:
        await sender.advise("old news")
        await sender.send_frame("agent_advisory", {"advisory_text": "for a day"}, ttl_ms=86_400_000)
        assert (await next_frame(frames))["payload"].get("advisory_text") == "for a day"
        await sender.handover("half done")
        assert (await next_frame(frames))["kind"] == "agent_handover"


async def test_a_restarted_hub_has_lost_frames_and_says_so(own_hub: TestHub) -> None:
    """Frames are in memory only, so a session that resumes hears of the gap as an event of its own."""
    alice = await own_hub.agent("alice")
    watcher = agent_at(own_hub.url, alice)
    one, two = alice.session("cc-one"), watcher.session("cc-two")
    async with watching(two) as frames:
        await one.advise("before")
        assert (await next_frame(frames))["payload"].get("advisory_text") == "before"
        own_hub.kill()
        await anyio.to_thread.run_sync(own_hub.start)
        with anyio.fail_after(WAIT_S):
            assert isinstance(await anext(frames), Gap)
        await one.advise("after")
        assert (await next_frame(frames))["payload"].get("advisory_text") == "after"
    await alice.close()
    await watcher.close()


@pytest.mark.parametrize(
    ("claimed", "resource", "expected"),
    [("src", "src/main.rs", True), ("src/", "src/main.rs", True), ("src", "srcs/main.rs", False), ("", "src", False)],
)
async def test_a_claim_on_a_folder_covers_its_files(claimed: str, resource: str, expected: bool) -> None:
    assert covers_resource(claimed, resource) is expected


async def test_the_handle_of_a_scope() -> None:
    scopes = ["~alice", "~alice/cc-*", "org:~acme/members/*", "accord:~peer/grant:ops"]
    assert [scope_handle(scope) for scope in scopes] == ["~alice", "~alice", "~acme", "~peer"]
