/**
 * What is looked for: `method:tools/call session:2 lost:* "text" -method:ping`.
 *
 * Words stand side by side and all have to hold; a minus turns one around. A word without a name, or a text in
 * quotation marks, is looked for in the frames. `*` in a value stands for anything.
 */

import { markOf } from "./messages.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {import("./model.js").Conversation} Conversation
 * @typedef {(message: Message) => boolean} Test
 * @typedef {{tests: Test[], texts: {text: RegExp, isNot: boolean}[], faults: string[]}} Filter
 */

/** The names that a word may have, with what they look at; for the help, too. */
export const NAMES = {
  method: "the method: method:tools/call, method:tools/*",
  name: "the tool, prompt or resource: name:echo",
  session: "the session: session:2, session:*ada*",
  server: "one of several servers, by its name: server:git",
  from: "who says it: from:client, from:server, from:dragoman",
  kind: "request, result, error, notification, malformed, event",
  mark: "unchanged, translated, lost, refused, emulated, kept",
  lost: "what was lost, by its pointer: lost:*, lost:*/title",
  id: "the id of the request: id:3",
  revision: "a revision on either side: revision:2024-11-05",
  is: "is:failure, is:open, is:question, is:slow (a second or more)",
};

/** Where in a line what was said begins; before it stands when, on which connection, and the like. */
const CONTENT = /"(?:frame|before|malformed|reason|request)":/;

const WORD = /(-?)(?:([a-z]+):)?(?:"((?:[^"\\]|\\.)*)"?|(\S+))/giu;

/**
 * Read a filter.
 * @param {string} text
 * @param {() => boolean} isOver
 * @returns {Filter}
 */
export function readFilter(text, isOver = () => false) {
  /** @type {Filter} */
  const filter = { tests: [], texts: [], faults: [] };
  for (const [, minus, name, quoted, bare] of text.matchAll(WORD)) {
    const isNot = minus === "-";
    const value = quoted === undefined ? (bare ?? "") : quoted.replace(/\\(.)/g, "$1");
    if (name === undefined) {
      filter.texts.push({ text: literal(value), isNot });
      continue;
    }
    const test = makeTest(name.toLowerCase(), value, isOver);
    if (test === null) {
      // It may be part of a text, such as a URI.
      if (/^[a-z]+$/i.test(name) && value.startsWith("//")) filter.texts.push({ text: literal(`${name}:${value}`), isNot });
      else filter.faults.push(`there is nothing to look for called ${name}:`);
    } else filter.tests.push(isNot ? (message) => !test(message) : test);
  }
  return filter;
}

/**
 * Whether a message is what a filter looks for.
 * @param {Filter} filter @param {Message} message @param {Conversation} conversation
 */
export function matches(filter, message, conversation) {
  for (const test of filter.tests) if (!test(message)) return false;
  return filter.texts.every(({ text, isNot }) => says(conversation, message, text) !== isNot);
}

/**
 * Whether the frames of a message hold a text, or the headers that came with them.
 * @param {Conversation} conversation @param {Message} message @param {RegExp} text It begins to look where it is told.
 */
function says({ lines }, message, text) {
  const { received, translated, sent, routed, http } = message;
  /** @param {number} n */
  const holds = (n) => {
    const line = lines.get(n);
    if (line === undefined) return false;
    text.lastIndex = Math.max(0, line.search(CONTENT));
    return text.test(line);
  };
  // What was translated has the frame as it came, but for the name that it has before a router.
  return holds(translated || received || sent) || (translated !== 0 && routed !== 0 && holds(received)) || http.some(holds);
}

/**
 * @param {string} name @param {string} value @param {() => boolean} isOver
 * @returns {Test | null}
 */
function makeTest(name, value, isOver) {
  const like = pattern(value);
  switch (name) {
    case "method":
      return (message) => like(message.method);
    case "name":
      return (message) => like(message.name);
    case "session":
      return (message) => like(message.session) || like(message.session.replace(/^session /, "").replace(/ (of|\(process) .*$/, ""));
    case "server":
      return (message) => like(message.server);
    case "from":
      return (message) => like(message.isOurs ? "dragoman" : message.from);
    case "kind":
      return (message) => like(message.kind);
    case "mark":
      return (message) => like(markOf(message, isOver()));
    case "lost":
      return (message) => message.losses.some((loss) => like(loss.pointer));
    case "id":
      return (message) => like(message.id) || like(message.id.replace(/^"|"$/g, ""));
    case "revision":
      return (message) => like(message.fromRevision) || like(message.toRevision);
    case "is":
      return makeState(value.toLowerCase(), isOver);
    default:
      return null;
  }
}

/** @param {string} value @param {() => boolean} isOver @returns {Test | null} */
function makeState(value, isOver) {
  switch (value) {
    case "failure":
      return (message) => message.isFailure;
    case "open":
      return (message) => message.kind === "request" && message.answer === null && !isOver();
    case "question":
      return (message) => message.kind === "request" && message.from === "server";
    case "slow":
      return (message) => {
        const request = message.request ?? message;
        return request.answer !== null && (request.answer.receivedAt || request.answer.sentAt) - request.time >= 1000;
      };
    default:
      return null;
  }
}

/**
 * Look for this very text, in capitals or not, as JSON has it.
 * @param {string} text
 */
function literal(text) {
  return new RegExp(JSON.stringify(text).slice(1, -1).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "gi");
}

/** @param {string} value @returns {(text: string) => boolean} */
function pattern(value) {
  const wanted = value.toLowerCase();
  if (!wanted.includes("*")) return (text) => text.toLowerCase() === wanted;
  const parts = wanted.split("*");
  return (text) => {
    const given = text.toLowerCase();
    const [first = "", ...rest] = parts;
    const last = rest.pop() ?? "";
    if (!given.startsWith(first)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = given.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return given.length - last.length >= at && given.endsWith(last);
  };
}
