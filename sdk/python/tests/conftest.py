"""One real hub for the tests that leave it alone; a test that harms a hub starts its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from chorus_sdk import Agent, testing
from chorus_sdk.testing import TestHub

_numbers = itertools.count(1)
MakeAgent = Callable[..., Awaitable[Agent]]


@pytest.fixture(scope="session")
def hub() -> Iterator[TestHub]:
    with testing.hub("--allow-private-endpoints=true") as running:
        yield running


@pytest.fixture
def own_hub() -> Iterator[TestHub]:
    """A hub that the test may kill."""
    with testing.hub() as running:
        yield running


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def name() -> Callable[[str], str]:
    """Names that no other test of the session has."""
    number = next(_numbers)
    return lambda base: f"{base}{number}@chorus"


@pytest.fixture
async def make_agent(hub: TestHub, name: Callable[[str], str]) -> AsyncIterator[MakeAgent]:
    """Registers agents at the shared hub and closes them afterwards."""
    made: list[Agent] = []

    async def make(base: str, **options: object) -> Agent:
        agent = await hub.agent(name(base), **options)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        await agent.close()
