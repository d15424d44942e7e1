// Which `@name` of a text names no member of a channel: such a mention calls no agent, and nothing else would say so.

/** As the hub finds mentions: an `@` inside a word, as in an e-mail address, is none. */
const MENTION = /(?:^|[^\p{Alphabetic}\p{N}._-])@([\p{Alphabetic}\p{N}](?:[\p{Alphabetic}\p{N}._-]*[\p{Alphabetic}\p{N}])?)/gu;
/** A name at the very end of a text, which may still be being typed. */
const LAST_NAME = /@[\p{Alphabetic}\p{N}._-]*$/u;
const MAX_NAMED = 5;

/**
 * The mentions that name none of `memberNames`, each once, with their `@`. A name at the end counts only in a text that
 * `isComplete`.
 */
export function findUnknownMentions(text, memberNames, isComplete) {
  const known = new Set(memberNames.map((name) => name.toLowerCase()));
  const finished = isComplete ? text : text.replace(LAST_NAME, '');
  const unknown = [...finished.matchAll(MENTION)]
    .map(([, name]) => name)
    .filter((name) => {
      const isNew = !known.has(name.toLowerCase());
      known.add(name.toLowerCase());
      return isNew;
    });
  return unknown.slice(0, MAX_NAMED).map((name) => `@${name}`);
}
