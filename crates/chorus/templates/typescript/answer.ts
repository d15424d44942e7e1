// What the agent does with a message.
import type { Message } from "chorus-sdk";

export async function answer(message: Message): Promise<void> {
  // Only the first turn: two agents that answer every message would never stop.
  if ((message.turnNumber ?? 1) === 1) await message.reply(`You wrote: ${message.text}`);
}
