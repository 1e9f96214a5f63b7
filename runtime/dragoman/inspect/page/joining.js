/**
 * Which message a line belongs to: nobody says it, so it is found by connections, ids, and by what is said.
 *
 * Answers are found by the ids of their requests, everything else by its method and by what it says, in order. A router
 * gives what it hands on another id, and tools another name: what goes to one of its servers is what went to the router
 * before. A server that several share has a session of its own; what it says to one of them is that one's, once it goes
 * out there.
 */

import { isPlain } from "./difference.js";
import { askedIn, bodyOf, kindOf } from "./frames.js";
import { isAnswer, isOf } from "./messages.js";
import { isShared } from "./peers.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {import("./messages.js").Side} Side
 */

/** What the ids of requests begin with that the proxy makes up, or its router. */
const OURS = /^dragoman[-/]/;

/** What a router asks each of its servers. */
const FOR_ALL = /\/list$|^initialize$|^server\/discover$|^logging\/setLevel$|^ping$|^subscriptions\//;

/** How much of each kind is kept to be found. */
const MOST = 500;

export class Joining {
  /** @param {(n: number) => any} lineOf Gives a line by its number. */
  constructor(lineOf) {
    this.lineOf = lineOf;
    /** @type {Map<string, Message>} requests that a peer asked, by its connection and id */
    this.asked = new Map();
    /** @type {Map<string, Message>} requests that went out, by the connection and id there */
    this.put = new Map();
    /** @type {Map<string, Message>} the last requests of both kinds, whether or not they were answered */
    this.lately = new Map();
    /** @type {Message[]} what has come and not gone out */
    this.pending = [];
    /** @type {Message[]} what went to the router, if there is one, and is not known to have gone further */
    this.routing = [];
    /** @type {Map<string, Message>} calls that wait for input, by the state that comes back with it */
    this.states = new Map();
    /** @type {Map<Message, string>} those of them that the proxy keeps until their clients come back, with what it asks */
    this.parked = new Map();
    /** @type {Message | null} the notification that went out last */
    this.told = null;
    /** @type {WeakMap<Message, {translated: number, said: string[]}>} */
    this.bodies = new WeakMap();
  }

  /** @param {Message} message */
  wait(message) {
    this.pending.push(message);
    if (this.pending.length > MOST) this.pending.shift();
  }

  /** @param {Message} message */
  route(message) {
    this.routing.push(message);
    if (this.routing.length > MOST) this.routing.shift();
  }

  /**
   * Note that a peer asks, or is asked, something.
   * @param {"asked" | "put"} kind @param {any} line @param {Message} message
   */
  remember(kind, line, message) {
    const key = keyOf(line);
    this[kind].set(key, message);
    this.lately.delete(`${kind} ${key}`);
    this.lately.set(`${kind} ${key}`, message);
    for (const oldest of this.lately.keys()) {
      if (this.lately.size <= MOST) break;
      this.lately.delete(oldest);
    }
  }

  /**
   * Note that a call waits for input, if its result says so.
   * @param {Message} call @param {any} result @param {boolean} isOurs Whether it is the proxy that asks.
   */
  park(call, result, isOurs) {
    if (typeof result?.requestState !== "string") return;
    this.states.set(result.requestState, call);
    if (isOurs) this.parked.set(call, askedIn(result));
  }

  /**
   * Find the call that goes on with this state, which is good for once.
   * @param {any} state
   */
  resume(state) {
    const call = this.states.get(state);
    this.states.delete(state);
    if (call !== undefined) this.parked.delete(call);
    return call;
  }

  /**
   * Note that a server is to work no more on a call: its client, which was asked something, has not come back.
   * @param {any} line
   */
  giveUp(line) {
    const call = this.carried(line, line.frame.params?.requestId);
    for (const one of this.parked.keys()) if (call !== undefined && isOf(call, one)) this.parked.delete(one);
  }

  /**
   * The parked calls of a session, the oldest first. That one is given up whose server is done crosses nowhere: of all
   * sessions there are not more than the proxy counts.
   * @param {string} session @param {number} [count]
   */
  parkedOf(session, count = Infinity) {
    return [...this.parked].slice(Math.max(0, this.parked.size - count)).filter(([call]) => call.session === session);
  }

  /**
   * Find the request whose headers a line has.
   * @param {any} line @param {unknown} id
   */
  carried(line, id) {
    return this.lately.get(`${line.side === "client" ? "asked" : "put"} ${line.connection} ${JSON.stringify(id)}`);
  }

  /**
   * Find the call on whose stream something comes or goes.
   * @param {any} line
   */
  ofStream(line) {
    if (line.stream === undefined) return undefined;
    const key = `${line.connection} ${JSON.stringify(line.stream)}`;
    return line.side === "client" ? this.asked.get(key) : this.put.get(key);
  }

  /** @param {Message | undefined} found */
  #take(found) {
    const index = found === undefined ? -1 : this.pending.indexOf(found);
    if (index >= 0) this.pending.splice(index, 1);
    return found;
  }

  /** @param {Message} message */
  drop(message) {
    this.#take(message);
  }

  /**
   * Find what the router hands on: to its client what a server said; to a server what went to the router.
   * @param {any} line
   * @returns {Message | undefined}
   */
  handedOn(line) {
    const kind = kindOf(line.frame);
    const session = line.session ?? "";
    if (line.side !== "server" || line.direction !== "received") return undefined;
    const own = this.pending.filter((one) => one.server !== "" && one.routed === 0 && one.session === session && one.kind === kind);
    if (isAnswer(kind)) {
      const request = this.put.get(keyOf(line));
      return own.find((one) => one.request !== null && one.request === request);
    }
    const alike = own.filter((one) => one.from === "server" && one.method === line.frame.method);
    const body = alike.length > 1 ? bodyOf(line.frame) : "";
    return alike.find((one) => body !== "" && this.bodiesOf(one).includes(body)) ?? alike[0];
  }

  /**
   * Find what goes to one of several servers now, among what went to the router.
   * @param {any} line Of direction `sent`, or `translated`.
   * @param {any} frame
   * @returns {Message | undefined}
   */
  routed(line, frame) {
    const kind = kindOf(frame);
    if (isAnswer(kind)) {
      // A question's: it has been answered on the router's side already.
      const question = this.asked.get(keyOf(line, frame.id));
      return question?.answer && question.answer.from === "client" && question.answer.server === "" ? question.answer : undefined;
    }
    if (FOR_ALL.test(frame.method)) return undefined;
    const ready = this.routing.filter(
      (one) => one.session === (line.session ?? "") && one.kind === kind && one.method === frame.method && (one.server === "" || (one.server === line.server && line.direction === "sent" && one.toConnection !== line.connection)),
    );
    if (ready.length < 2) return ready[0];
    const [name, said] = [frame.params?.name ?? frame.params?.uri, withoutName(frame)];
    const alike = ready.filter((one) => withoutName(this.lineOf(one.received || one.sent)?.frame) === said);
    return alike.find((one) => one.name.endsWith(String(name))) ?? alike[0] ?? ready[0];
  }

  /** @param {Message} message */
  wasRouted(message) {
    const index = this.routing.indexOf(message);
    if (index >= 0) this.routing.splice(index, 1);
  }

  /**
   * Find the request of a server's client in which the router asks each of its servers.
   * @param {any} line @param {string} method
   */
  fannedOut(line, method) {
    const open = this.routing.filter((one) => one.session === (line.session ?? "") && one.kind === "request" && one.answer === null);
    return open.findLast((one) => one.method === method) ?? (open.length === 1 ? open[0] : undefined);
  }

  /**
   * Take what goes out now, of what has come; nothing where the proxy says it itself.
   * @param {any} line @param {Side} from @param {Message | undefined} request What it answers.
   * @param {number | undefined} upstream The connection of the server that its session uses.
   * @param {(label: string) => number | undefined} upstreamOf
   * @returns {Message | undefined}
   */
  goesOut(line, from, request, upstream, upstreamOf) {
    const kind = kindOf(line.frame);
    if (isAnswer(kind)) {
      return request && this.#take(this.pending.find((one) => one.from === from && one.kind === kind && one.request !== null && (one.request === request || (one.server === "" && (isOf(one.request, request) || isOf(request, one.request))))));
    }
    if (isMadeUp(line.frame)) return this.#take(this.pending.find((one) => one.isOurs && one.kind === kind && one.id === JSON.stringify(line.frame.id)));
    const session = line.session ?? "";
    const fitting = this.pending.filter((one) => one.from === from && one.kind === kind && one.method === line.frame.method);
    /** @param {Message} one */
    const isHere = (one) => one.session === session;
    /** @param {Message} one */
    const isNear = (one) =>
      from === "server"
        ? isShared(one.session) && (upstream === undefined || upstream === 0 || one.fromConnection === upstream)
        : isShared(session) && (upstreamOf(one.session) || line.connection) === line.connection;
    const others = fitting.filter((one) => !isHere(one));
    const nearest = others.filter(isNear);
    const near = [...fitting.filter(isHere), ...(nearest.length > 0 ? nearest : others.filter((one) => isShared(one.session) || isShared(session)))];
    const body = near.length > 1 || near[0]?.call ? bodyOf(line.frame) : "";
    const found = near.find((one) => body !== "" && this.bodiesOf(one).includes(body)) ?? near.find((one) => one.call === null || from === "server");
    return this.#take(found);
  }

  /**
   * Whether a notification that goes out is the one that went to another client before.
   * @param {any} line
   */
  isTold(line) {
    const { told } = this;
    return told !== null && !told.isOurs && told.method === line.frame.method && told.toConnection !== line.connection;
  }

  /**
   * Find what was translated, among what has come.
   * @param {any} line
   * @returns {Message | undefined}
   */
  translated(line) {
    const before = line.before ?? {};
    const kind = kindOf(before);
    const id = before.id === undefined ? "" : JSON.stringify(before.id);
    if (line.server !== undefined && line.side === "client") return this.routed(line, before);
    const alike = this.pending.filter(
      (one) => one.from === line.side && one.kind === kind && one.translated === 0 && (one.method === line.method || one.method === "") && (line.server === undefined || one.server === line.server),
    );
    const isItself = (/** @type {Message} */ one) => one.id === id || one.request?.id === id;
    const isHere = (/** @type {Message} */ one) => [one.session, one.request?.session].includes(line.session ?? "");
    if (isAnswer(kind)) {
      const found = alike.findLast((one) => isItself(one) && isHere(one)) ?? alike.findLast(isItself);
      if (found !== undefined) return found;
      // Of a call that went on with another request, the server knows the first, and the client waits for the last.
      const last = [...this.asked.values()].findLast((one) => one.id === id && one.from !== line.side && isHere(one));
      return last && alike.find((one) => one.request !== null && (isOf(one.request, last) || isOf(last, one.request)));
    }
    const body = alike.length > 1 ? bodyOf(before) : "";
    const same = alike.filter((one) => body !== "" && this.bodiesOf(one).includes(body));
    return same.find(isHere) ?? same.find((one) => isShared(one.session)) ?? alike.findLast(isHere) ?? alike.at(-1);
  }

  /**
   * Give what a message says, as it came and after translation.
   * @param {Message} message
   */
  bodiesOf(message) {
    let known = this.bodies.get(message);
    if (known === undefined || known.translated !== message.translated) {
      const said = [this.lineOf(message.received)?.frame, this.lineOf(message.translated)?.after].flat().filter(isPlain).map(bodyOf);
      this.bodies.set(message, (known = { translated: message.translated, said }));
    }
    return known.said;
  }

  /**
   * Forget what is about messages that are not kept any more.
   * @param {number} first The number of the oldest that is.
   */
  forget(first) {
    for (const known of [this.asked, this.put, this.lately, this.states]) {
      for (const [key, message] of known) if (message.number < first) known.delete(key);
    }
    for (const call of this.parked.keys()) if (call.number < first) this.parked.delete(call);
    this.pending = this.pending.filter((one) => one.number >= first);
    this.routing = this.routing.filter((one) => one.number >= first);
  }
}

/** @param {any} line @param {unknown} [id] @returns {string} */
export function keyOf(line, id = line.number ?? line.frame?.id) {
  return `${line.connection} ${JSON.stringify(id)}`;
}

/** @param {any} frame */
export function isMadeUp(frame) {
  return typeof frame.id === "string" && OURS.test(frame.id);
}

/** @param {any} frame */
function withoutName(frame) {
  const { name, uri, _meta, ...rest } = frame?.params ?? {};
  return JSON.stringify(rest);
}
