/**
 * What a message is: a frame on its way, with its answer, and what became of it.
 */

import { kindOf, nameOf, timeOf, wordsOf } from "./frames.js";

/**
 * @typedef {"client" | "server"} Side
 * @typedef {{pointer: string, kind: string, bytes: number, cosmetic: boolean}} Loss
 * @typedef {"request" | "notification" | "result" | "error" | "malformed" | "event"} Kind
 * @typedef {"unchanged" | "translated" | "lost" | "refused" | "emulated" | "kept" | "under way" | "event"} Mark
 *
 * @typedef {object} Message
 * @property {number} number Counted from 1, over all that the page has seen.
 * @property {Kind} kind
 * @property {Side} from Who sent it; of an event, at which side it was.
 * @property {boolean} isOurs Whether the proxy has said it itself.
 * @property {boolean} isMadeUp Whether nobody but the proxy wants to know what it asks.
 * @property {number} time When, in milliseconds since the epoch.
 * @property {string} session The label of its session; empty where there is one.
 * @property {string} server Which of several servers says it, or is told; empty where there is one.
 * @property {string} method Its own, or that of the request it answers.
 * @property {string} name The tool, prompt or resource.
 * @property {string} id As JSON; empty for a notification.
 * @property {number} received The number of the line in which it came; 0 for none.
 * @property {number} translated
 * @property {number} sent
 * @property {number} routed Where it went through the router between client and servers.
 * @property {number[]} http The lines with the headers of what carried it.
 * @property {number} receivedAt
 * @property {number} sentAt
 * @property {number} fromConnection
 * @property {number} toConnection
 * @property {string} fromRevision
 * @property {string} toRevision
 * @property {Loss[]} losses
 * @property {boolean} isRefused
 * @property {boolean} isChanged
 * @property {boolean} isFailure Whether it says that something went wrong.
 * @property {string} words What is to be read of it at a glance.
 * @property {number} bytes
 * @property {Message | null} request What it answers.
 * @property {Message | null} answer
 * @property {Message | null} call The call in which it is asked.
 * @property {number} depth
 */

/**
 * Make a message of the line in which it is met first.
 * @param {any} line @param {number} number @param {number} bytes
 * @returns {Message}
 */
export function makeMessage(line, number, bytes) {
  const frame = line.frame ?? {};
  return {
    number,
    kind: kindOf(frame),
    from: line.side,
    isOurs: false,
    isMadeUp: false,
    time: timeOf(line),
    session: line.session ?? "",
    server: line.server ?? "",
    method: typeof frame.method === "string" ? frame.method : "",
    name: nameOf(frame),
    id: frame.id === undefined ? "" : JSON.stringify(frame.id),
    received: 0,
    translated: 0,
    sent: 0,
    routed: 0,
    http: [],
    receivedAt: 0,
    sentAt: 0,
    fromConnection: 0,
    toConnection: 0,
    fromRevision: "",
    toRevision: "",
    losses: [],
    isRefused: false,
    isChanged: false,
    isFailure: false,
    words: wordsOf(frame),
    bytes: typeof line.large === "number" ? line.large : bytes,
    request: null,
    answer: null,
    call: null,
    depth: 0,
  };
}

/**
 * Say what became of a message.
 * @param {Message} message
 * @param {boolean} isOver Whether nothing more comes.
 * @returns {Mark}
 */
export function markOf(message, isOver = false) {
  if (message.kind === "event") return "event";
  if (message.isRefused) return "refused";
  if (hasLosses(message)) return "lost";
  if (message.isOurs) return "emulated";
  if (message.sent === 0) {
    if (message.kind === "request" && message.answer === null && !isOver) return "under way";
    return "kept";
  }
  return message.isChanged ? "translated" : "unchanged";
}

/** @param {Message} message */
export function hasLosses(message) {
  return message.losses.some((loss) => !loss.cosmetic);
}

/**
 * Say how long who was asked took for an answer, and how long we did; null where it is not known. Of what we answered
 * for another, or in another request, it is known only how long it was waited for.
 * @param {Message} request
 * @returns {{asked: number | null, ours: number | null, whole: number | null}} in milliseconds
 */
export function timesOf(request) {
  const answer = request.answer;
  if (answer === null || request.sentAt === 0 || request.receivedAt === 0 || answer.receivedAt === 0) {
    return { asked: null, ours: null, whole: answer?.sentAt && request.receivedAt ? answer.sentAt - request.receivedAt : null };
  }
  const there = request.sentAt - request.receivedAt;
  const back = answer.sentAt ? answer.sentAt - answer.receivedAt : 0;
  return { asked: Math.max(0, answer.receivedAt - request.sentAt), ours: Math.max(0, there + back), whole: null };
}

/**
 * Whether a request is the one that another goes on with, or that one itself.
 * @param {Message} request @param {Message} last
 */
export function isOf(request, last) {
  /** @type {Message | null} */
  let one = last;
  while (one !== null && one !== request) one = one.call;
  return one === request;
}

/**
 * Find what was said last on a connection and is no request: a POST has but one message.
 * @param {Message[]} near @param {any} line
 */
export function lastWithoutId(near, line) {
  return near.findLast((one) => one.kind !== "request" && one.kind !== "event" && one.from === "client" && one.http.length === 0 && (line.side === "client" ? one.fromConnection : one.toConnection) === line.connection);
}

/** @param {Kind} kind */
export function isAnswer(kind) {
  return kind === "result" || kind === "error";
}

/**
 * Put a message into the call in which it is said.
 * @param {Message} message @param {Message | undefined | null} call
 */
export function nest(message, call) {
  if (call === undefined || call === null || isOf(message, call)) return;
  message.call = call;
  message.depth = Math.min(call.depth + 1, 8);
}

/**
 * Say where a message stands, or would stand, among others in their order.
 * @param {Message[]} messages @param {number} number
 */
export function placeOf(messages, number) {
  let [low, high] = [0, messages.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (/** @type {Message} */ (messages[middle]).number < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
