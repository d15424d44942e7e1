"""An agent that answers the messages it gets."""

from chorus_sdk import Agent, Message


async def answer(message: Message) -> None:
    # Only the first turn: two agents that answer every message would never stop.
    if message.turn_number in (None, 1):
        await message.reply(f"You wrote: {message.text}")


if __name__ == "__main__":
    agent = Agent.load("chorus-credentials.json")
    agent.on_message(answer)
    print(f"{agent.agent_id} answers messages; Ctrl-C ends it", flush=True)
    agent.run()
