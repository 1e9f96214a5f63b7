/**
 * What is given to others: the lines as NDJSON, as HAR, or as one HTML file; without what the user takes out.
 */

import { timesOf } from "./messages.js";

/**
 * @typedef {import("./model.js").Conversation} Conversation
 * @typedef {import("./messages.js").Message} Message
 */

export const REDACTED = "[redacted]";

/**
 * Make what takes out values: members with one of these names, and these texts wherever they stand.
 * @param {string[]} names In any spelling of capitals.
 * @param {string[]} texts
 * @returns {<T>(value: T) => T}
 */
export function makeRedaction(names, texts) {
  const wanted = new Set(names.map((name) => name.trim().toLowerCase()).filter(Boolean));
  const hidden = texts.filter(Boolean);
  /** @param {any} value @returns {any} */
  const redact = (value) => {
    if (typeof value === "string") return hidden.reduce((text, one) => text.replaceAll(one, REDACTED), value);
    if (Array.isArray(value)) return value.map(redact);
    if (value === null || typeof value !== "object") return value;
    /** @type {[string, any][]} */
    const members = Object.entries(value).map(([name, member]) => [redact(name), wanted.has(name.toLowerCase()) ? REDACTED : redact(member)]);
    return Object.fromEntries(members);
  };
  return redact;
}

/**
 * Give the lines of messages, in their order, without their numbers.
 * @param {Conversation} conversation @param {Message[]} messages @param {<T>(value: T) => T} redact
 * @returns {any[]}
 */
export function linesOf(conversation, messages, redact) {
  const numbers = new Set(messages.flatMap((one) => [one.received, one.translated, one.routed, one.sent, ...one.http]));
  numbers.delete(0);
  return [...numbers]
    .sort((one, other) => one - other)
    .map((number) => conversation.line(number))
    .filter((line) => line !== null)
    .map(({ n, ...line }) => redact(line));
}

/** @param {any[]} lines */
export function writeNdjson(lines) {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** @param {string} text */
function bytesOf(text) {
  return new TextEncoder().encode(text).length;
}

/**
 * Write calls as HAR 1.2, which tools for HTTP read: each request with its answer is an entry.
 * @param {Conversation} conversation @param {Message[]} messages @param {<T>(value: T) => T} redact
 * @param {string} server @param {string} version
 */
export function writeHar(conversation, messages, redact, server, version) {
  const url = /^https?:/.test(server) ? server : `https://server.invalid/${encodeURIComponent(server)}`;
  const entries = messages
    .filter((one) => one.kind === "request")
    .map((request) => {
      const asked = redact(conversation.line(request.sent || request.received)?.frame ?? {});
      const answer = request.answer;
      const line = answer === null ? null : conversation.line(answer.received || answer.sent);
      const answered = line === null ? null : redact(line.frame ?? {});
      const [sent, received] = [JSON.stringify(asked), answered === null ? "" : JSON.stringify(answered)];
      const times = timesOf(request);
      const carried = request.http.map((n) => conversation.line(n)).filter((one) => one !== null);
      const http = redact(carried.findLast((one) => one.side === "server") ?? carried.at(-1) ?? null);
      const wait = times.asked ?? times.whole ?? 0;
      const ours = times.ours ?? 0;
      return {
        startedDateTime: new Date(request.time).toISOString(),
        time: wait + ours,
        request: {
          method: http?.method ?? "POST",
          url,
          httpVersion: "HTTP/1.1",
          cookies: [],
          headers: listHeaders(http?.request, [
            ["content-type", "application/json"],
            ["mcp-protocol-version", request.toRevision || request.fromRevision],
          ]),
          queryString: [],
          postData: { mimeType: "application/json", text: sent },
          headersSize: -1,
          bodySize: bytesOf(sent),
        },
        response: {
          status: http?.status ?? (answer === null ? 0 : 200),
          statusText: answer === null ? "" : "OK",
          httpVersion: "HTTP/1.1",
          cookies: [],
          headers: listHeaders(http?.response, [["content-type", "application/json"]]),
          content: { size: bytesOf(received), mimeType: "application/json", text: received },
          redirectURL: "",
          headersSize: -1,
          bodySize: answered === null ? -1 : bytesOf(received),
        },
        cache: {},
        timings: { send: ours, wait, receive: 0 },
        comment: [request.from === "server" ? "a question of the server" : "", request.session].filter(Boolean).join(", "),
      };
    });
  return JSON.stringify({ log: { version: "1.2", creator: { name: "dragoman", version }, entries } });
}

/**
 * @param {Record<string, string> | undefined} headers @param {[string, string][]} otherwise
 */
function listHeaders(headers, otherwise) {
  return (headers ? Object.entries(headers) : otherwise).map(([name, value]) => ({ name, value }));
}

/**
 * Put lines into the page as one file.
 * @param {string} bundle From the viewer, with a place for them.
 * @param {object} recorded
 */
export function writeHtml(bundle, recorded) {
  // Nothing in it may end the element that holds it, or begin a comment there.
  const text = JSON.stringify(recorded).replaceAll("<", "\\u003c");
  const end = "</"; // the page is itself in a script of such a file, which may not hold the end of one
  return bundle.replace(["<!", "--data-->"].join(""), () => `<script type="application/json" id="recorded">${text}${end}script>`);
}
