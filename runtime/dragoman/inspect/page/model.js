/**
 * What was said, made of the lines of a trace: each message with its way through the proxy, its answer and what was
 * lost. Nothing here draws.
 *
 * A message that a peer sends has a line `received`, often one `translated`, and a line `sent` where it goes out on the
 * other side; `joining.js` finds out which of them belong together. What was only sent, the proxy has said itself; what
 * was only received has ended there. Between a router and its servers a message has another two lines.
 */

import { find, isPlain } from "./difference.js";
import { kindOf, tidy, timeOf } from "./frames.js";
import { isMadeUp, Joining, keyOf } from "./joining.js";
import { hasLosses, isAnswer, lastWithoutId, makeMessage, nest } from "./messages.js";
import { isRouter, isShared, learn, makeSession, noteEnd, noteRefusal, Processes } from "./peers.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {import("./messages.js").Side} Side
 * @typedef {import("./peers.js").Session} Session
 */

/** @type {Record<Side, Side>} */
const OTHER = { client: "server", server: "client" };

/** How much text of lines is kept; then the oldest go. */
const MOST_CHARACTERS = 100_000_000;

/** HTTP's statuses that say nothing is wrong, where a server is asked whether it has a stream of its own. */
const NO_STREAM = [404, 405];

export class Conversation {
  constructor() {
    /** @type {Message[]} */
    this.messages = [];
    /** @type {Map<string, Session>} */
    this.sessions = new Map();
    /** @type {Map<number, string>} */
    this.lines = new Map();
    /** @type {Record<string, any> | null} */
    this.status = null;
    /** @type {number[]} how much memory the proxy had, in bytes, the last times that it said so */
    this.memory = [];
    /** @type {Set<Message>} what has changed since somebody looked, who takes them out */
    this.touched = new Set();
    this.missing = 0;
    this.forgotten = 0;
    /** How many messages say that something went wrong, and with how many something was lost. */
    this.failures = 0;
    this.losses = 0;
    this.isOver = false;
    this.processes = new Processes();
    this.joining = new Joining((n) => this.line(n));
    /** @type {Map<number, number>} the lines with the headers of WebSockets on which nothing was said yet, by connection */
    this.upgrades = new Map();
    this.characters = 0;
    this.most = MOST_CHARACTERS;
    this.last = 0;
  }

  /**
   * Take one line in.
   * @param {string} text
   * @param {number} [number] Its own, where the line does not say it.
   */
  add(text, number) {
    /** @type {any} */
    let line;
    try {
      line = JSON.parse(text);
    } catch {
      return;
    }
    if (line === null || typeof line !== "object") return;
    const n = typeof line.n === "number" ? line.n : (number ?? this.last + 1);
    this.last = n;
    this.lines.set(n, text);
    this.characters += text.length;
    tidy(line);
    this.processes.tellApart(line);
    const batch = Array.isArray(line.frame) && line.frame.length > 0 ? line.frame : [line.frame];
    for (const frame of batch) {
      try {
        this.#take({ ...line, frame: frame === undefined || isPlain(frame) ? frame : {} }, n, Math.ceil(text.length / batch.length));
      } catch (error) {
        // Whoever has written it: what comes after it is shown all the same.
        this.#note({ session: line.session, direction: "unreadable" }, n, String(error));
      }
    }
    while (this.characters > this.most && this.messages.length > 1) this.#forget();
  }

  /** @param {Record<string, any> | null} status How the proxy and its servers are. */
  tell(status) {
    this.status = status;
    if (typeof status?.memory === "number") this.memory = [...this.memory.slice(-299), status.memory];
  }

  /**
   * Give a line again.
   * @param {number} n
   * @returns {any}
   */
  line(n) {
    const text = this.lines.get(n);
    return text === undefined ? null : JSON.parse(text);
  }

  /** @param {any} line @param {number} n @param {number} size */
  #take(line, n, size) {
    const { direction, side } = line;
    if (side !== "client" && side !== "server") {
      if (direction === "dropped") this.#note(line, n, `${line.lines} lines are missing here`);
    } else if (direction === "translated") this.#translated(line, n);
    else if (direction === "http") this.#http(line, n);
    else if (line.malformed !== undefined) this.#malformed(line, n, size);
    else if (direction === "unsent") this.#unsent(line);
    else if (typeof line.reason === "string" || line.frame === undefined) this.#event(line, n);
    else if (direction === "received" || direction === "given up") this.#received(line, n, size);
    else if (direction === "sent") this.#sent(line, n, size);
    else this.#event(line, n);
  }

  /** @param {any} line @param {number} n @param {number} size */
  #received(line, n, size) {
    const frame = line.frame;
    const handed = line.server === undefined ? this.joining.handedOn(line) : undefined;
    if (handed !== undefined) {
      handed.routed = n;
      if (handed.kind === "request") this.joining.remember("asked", line, handed);
      if (isAnswer(handed.kind)) this.joining.put.delete(keyOf(line));
      return;
    }
    const message = this.#make(line, n, size);
    message.received = n;
    message.receivedAt = message.time;
    message.fromConnection = line.connection;
    const upgrade = this.upgrades.get(line.connection);
    if (upgrade !== undefined) message.http.push(upgrade);
    this.upgrades.delete(line.connection);
    message.fromRevision = line.revision ?? "";
    message.isOurs = line.direction === "given up" || isRouter(this.#sessionAt(message.session, message.time), line);
    if (isAnswer(message.kind)) {
      const request = this.joining.put.get(keyOf(line));
      this.#answers(message, request);
      if (request) this.joining.park(request, frame.result, false);
      this.joining.put.delete(keyOf(line));
    } else if (message.kind === "request") {
      this.joining.remember("asked", line, message);
      this.#session(message).open.add(message);
      this.#nestInCall(message, line);
      this.#resume(message, frame);
    } else if (message.from === "server") this.#nestInCall(message, line);
    learn(this.#session(message), message, frame, line);
    this.joining.wait(message);
  }

  /**
   * Let a message wait again: it was not sent, and goes out once more.
   * @param {any} line
   */
  #unsent(line) {
    const message = this.joining.put.get(keyOf(line));
    if (message === undefined) return;
    message.sent = 0;
    this.touched.add(message);
    this.joining.pending.unshift(message);
  }

  /** @param {any} line @param {number} n @param {number} size */
  #sent(line, n, size) {
    const frame = line.frame;
    const kind = kindOf(frame);
    const { joining } = this;
    const from = OTHER[/** @type {Side} */ (line.side)];
    const request = isAnswer(kind) ? joining.asked.get(keyOf(line)) : undefined;
    if (line.server !== undefined) {
      const routed = joining.routed(line, frame);
      if (routed !== undefined) {
        this.#goOn(routed, line, n);
        return;
      }
    }
    const upstream = this.sessions.get(line.session)?.upstream;
    let found = joining.goesOut(line, from, request, upstream, (label) => this.sessions.get(label)?.upstream);
    if (found === undefined && kind === "notification" && joining.isTold(line)) found = this.#copyTold(line, from);
    if (found === undefined) {
      found = this.#say(line, from, n, size, request);
    } else if (frame.method === "initialize" || frame.result?.protocolVersion) learn(this.#sessionAt(line.session, found.time), found, frame, line);
    found.sent = n;
    found.sentAt = timeOf(line);
    this.touched.add(found);
    if (from === "server") this.#move(found, line.session);
    if (kind === "notification") joining.told = found;
    found.toConnection = line.connection;
    found.toRevision = line.revision || found.toRevision;
    found.server ||= line.server ?? "";
    if (line.side === "client") nest(found, found.call ?? joining.ofStream(line));
    if (kind === "request") joining.remember("put", line, found);
    if (from === "client") {
      this.#session(found).upstream = line.connection;
      if (line.server === undefined) joining.route(found);
      if (frame.method === "notifications/cancelled") joining.giveUp(line);
    }
    if (!request) return;
    joining.park(request, frame.result, found.isOurs);
    this.#settle(request, found, line);
  }

  /**
   * What the one who asked is told is the answer, whatever came before it.
   * @param {Message} request @param {Message} found @param {any} line
   */
  #settle(request, found, line) {
    found.request = request;
    if (request.answer === null || request.answer.sent === 0) request.answer = found;
    this.touched.add(request);
    noteRefusal(this.#session(request), request, found);
    this.joining.drop(request);
    // A router's server is still to get the answer to its question: `#goOn` looks for it.
    if (request.server === "" || request.from === "client") this.joining.asked.delete(keyOf(line));
    this.#session(request).open.delete(request);
  }

  /**
   * Note that the router has handed a message on to one of its servers.
   * @param {Message} message @param {any} line @param {number} n
   */
  #goOn(message, line, n) {
    message.routed = message.sent;
    message.server = line.server;
    this.touched.add(message);
    message.sent = n;
    message.sentAt = timeOf(line);
    message.toConnection = line.connection;
    message.toRevision = line.revision ?? "";
    this.joining.wasRouted(message);
    if (message.kind === "request") this.joining.remember("put", line, message);
    if (isAnswer(message.kind)) this.joining.asked.delete(keyOf(line));
  }

  /**
   * Make a message that the proxy says itself.
   * @param {any} line @param {Side} from @param {number} n @param {number} size @param {Message | undefined} request
   */
  #say(line, from, n, size, request) {
    const found = this.#make({ ...line, side: from }, n, size);
    found.isOurs = true;
    found.sentAt = found.time;
    if (request) this.#answers(found, request);
    else if (isMadeUp(line.frame) && found.kind === "request") found.isMadeUp = true;
    else if (found.kind === "request") this.#session(found).open.add(found);
    if (found.kind === "request") this.#resume(found, line.frame);
    if (found.kind === "request" && found.call === null) this.#nestInCall(found, line);
    if (line.server !== undefined) nest(found, found.call ?? this.joining.fannedOut(line, found.method));
    learn(this.#sessionAt(line.session, found.time), found, line.frame, line);
    return found;
  }

  /**
   * The same is told to each who shares a server.
   * @param {any} line @param {Side} from
   */
  #copyTold(line, from) {
    const told = /** @type {Message} */ (this.joining.told);
    const copy = this.#make({ ...line, side: from }, told.received, 0);
    for (const field of /** @type {const} */ (["received", "receivedAt", "fromConnection", "fromRevision", "bytes"])) Object.assign(copy, { [field]: told[field] });
    return copy;
  }

  /** @param {any} line @param {number} n */
  #translated(line, n) {
    const before = line.before ?? {};
    const { joining } = this;
    let message = joining.translated(line);
    if (message === undefined) {
      message = this.#make({ ...line, frame: before }, n, 0);
      message.isOurs = true;
      if (isAnswer(message.kind)) {
        // Said from what is known already: an answer that one session got before another asked.
        const { session, id } = message;
        const asked = [...joining.asked.values()].filter((one) => one.session === session && one.from !== line.side && one.method === line.method);
        this.#answers(message, asked.findLast((one) => one.id === id) ?? asked.at(-1));
      } else if (line.server !== undefined) {
        message.isMadeUp = isMadeUp(before);
        nest(message, joining.fannedOut(line, message.method));
      }
      joining.wait(message);
    }
    message.translated = n;
    this.touched.add(message);
    message.isChanged = true;
    message.losses = (Array.isArray(line.losses) ? line.losses : []).filter(isPlain).map((/** @type {any} */ loss) => ({ ...loss, pointer: String(loss.pointer), kind: String(loss.kind), bytes: Number(loss.bytes) || 0 }));
    message.isRefused = line.refused !== undefined;
    message.fromRevision ||= line.revision;
    message.toRevision ||= line.to;
    if (message.method === "") message.method = String(line.method ?? "");
    if (message.isRefused) {
      this.#failed(message);
      message.words ||= String(line.refused?.message ?? "");
    }
    const hidden = message.losses.filter((loss) => loss.kind === "hidden");
    if (hidden.length > 0) message.words = `${message.words}, ${hidden.length} hidden: ${hidden.map((loss) => String(find(before, loss.pointer)?.name ?? loss.pointer)).join(", ")}`;
    if (hasLosses(message)) {
      this.#session(message).losses += 1;
      this.losses += 1;
    }
  }

  /**
   * Keep the headers of an exchange with the request that it carried; what is worth a look of its own gets a row.
   * @param {any} line @param {number} n
   */
  #http(line, n) {
    const { method, status, ids } = line;
    if (status === 101 && line.side === "client") {
      this.upgrades.set(line.connection, n);
      return;
    }
    const requests = (Array.isArray(ids) ? ids : []).map((id) => this.joining.carried(line, id)).filter((one) => one !== undefined);
    const carried = requests.length > 0 || method !== "POST" ? requests : [lastWithoutId(this.messages.slice(-50), line)].filter((one) => one !== undefined);
    for (const one of carried) one.http.push(n);
    for (const one of carried) this.touched.add(one);
    const isWrong = !(status >= 100 && status < 400) && !(method !== "POST" && NO_STREAM.includes(status));
    if (!isWrong && (requests.length > 0 || method === "POST")) return;
    const words = `${method} ${status || "without an answer"}${line.response?.["www-authenticate"] ? `: ${line.response["www-authenticate"]}` : ""}${method === "GET" && NO_STREAM.includes(status) ? ": it offers no stream of its own" : ""}`;
    const note = this.#note(line, n, words);
    note.http.push(n);
    nest(note, requests[0]);
    if (requests[0] !== undefined) this.#move(note, requests[0].session);
    if (isWrong) this.#failed(note);
  }

  /** @param {any} line @param {number} n @param {number} size */
  #malformed(line, n, size) {
    const message = this.#make({ ...line, frame: {} }, n, size);
    message.kind = "malformed";
    message.method = "not a frame";
    message.words = String(line.malformed);
    this.#failed(message);
    message.isOurs = line.direction === "sent";
    if (message.isOurs) message.sent = n;
    else message.received = n;
  }

  /** @param {any} line @param {number} n */
  #event(line, n) {
    this.upgrades.delete(line.connection);
    if (line.direction !== "closed" && !isRouter(this.#sessionAt(line.session, timeOf(line)), line)) this.#note(line, n, typeof line.reason === "string" ? line.reason : "");
    const session = this.sessions.get(line.session);
    if (session !== undefined) noteEnd(session, line, this.#isLeaving(line));
  }

  /** @param {any} line @param {number} n @param {string} words */
  #note(line, n, words) {
    const message = this.#make({ side: "server", ...line, frame: {} }, n, 0);
    message.kind = "event";
    message.method = `${line.server ?? line.side ?? "trace"} ${line.direction}`;
    message.words = words;
    message.received = n;
    const calls = [...this.#session(message).open].filter((one) => one.from === "client" && one.toConnection === line.connection);
    if (calls.length === 1 && line.direction !== "http") nest(message, calls[0]);
    if (["broken", "session lost", "dropped"].includes(line.direction)) this.#failed(message);
    if (line.direction === "ended" && line.side === "server" && !this.#isLeaving(line)) this.#failed(message);
    return message;
  }

  /**
   * Whether a server ends because its client has gone.
   * @param {any} line
   */
  #isLeaving(line) {
    const session = this.sessions.get(line.session);
    if (session === undefined) return false;
    if (isShared(session.label)) return [...this.sessions.values()].every((one) => isShared(one.label) || one.client.ended !== "" || one.client.isClosed);
    return session.client.ended !== "" || session.client.isClosed;
  }

  /**
   * @param {any} line @param {number} n @param {number} size
   * @returns {Message}
   */
  #make(line, n, size) {
    const message = makeMessage(line, (this.messages.at(-1)?.number ?? 0) + 1, size);
    this.messages.push(message);
    this.#session(message).messages += 1;
    if (message.kind === "error" || line.frame?.result?.isError === true) this.#failed(message);
    return message;
  }

  /** @param {Message} message */
  #failed(message) {
    if (message.isFailure) return;
    message.isFailure = true;
    this.touched.add(message);
    this.failures += 1;
    this.#session(message).failures += 1;
  }

  /** @param {Message} message @param {Message | undefined} request */
  #answers(message, request) {
    if (request === undefined) return;
    message.request = request;
    message.method = request.method;
    message.name = request.name;
    message.depth = request.depth;
    message.call = request.call;
    if (request.answer === null) request.answer = message;
    this.touched.add(request);
    if (request.isOurs) this.#session(request).open.delete(request);
    // That a server does not know what only we ask is no failure of anybody's.
    if (request.isMadeUp) this.#excuse(message);
    // That a request is refused and the error that says so are one failure, as are a status of HTTP and ours about it.
    if (request.isRefused && message.kind === "error") this.#excuse(request);
    if (message.kind === "error") for (const one of this.messages.slice(-50)) if (one.kind === "event" && one.call === request && one.http.length > 0) this.#excuse(one);
  }

  /** @param {Message} message */
  #excuse(message) {
    if (!message.isFailure) return;
    message.isFailure = false;
    this.touched.add(message);
    this.failures -= 1;
    this.#session(message).failures -= 1;
  }

  /**
   * Find the call that a request goes on with, once its client has the answers to what was asked in it.
   * @param {Message} message @param {any} frame
   */
  #resume(message, frame) {
    nest(message, this.joining.resume(frame.params?.requestState));
  }

  /**
   * Find the call in which something is asked: the one that its stream names, else the only one that is open.
   * @param {Message} message @param {any} line
   */
  #nestInCall(message, line) {
    if (message.from !== "server") return;
    const call = this.joining.ofStream(line);
    if (call !== undefined || isShared(message.session)) {
      nest(message, call);
      return;
    }
    const open = [...this.#session(message).open].filter((one) => one.from === "client" && one !== message && one.method !== "subscriptions/listen");
    if (open.length === 1) nest(message, open[0]);
  }

  /**
   * Let a message be another session's.
   * @param {Message} message @param {string} label
   */
  #move(message, label) {
    if (message.session === label) return;
    for (const [name, sign] of /** @type {[string, number][]} */ ([[message.session, -1], [label, 1]])) {
      message.session = name;
      const session = this.#session(message);
      session.messages += sign;
      if (message.isFailure) session.failures += sign;
      if (hasLosses(message)) session.losses += sign;
    }
  }

  /** @param {Message} message @returns {Session} */
  #session(message) {
    return this.#sessionAt(message.session, message.time);
  }

  /** @param {string} label @param {number} since @returns {Session} */
  #sessionAt(label, since) {
    let session = this.sessions.get(label);
    if (session === undefined) this.sessions.set(label, (session = makeSession(label, since)));
    return session;
  }

  /** Let the oldest go, with the lines that only they need, and sessions that are over and have nothing else. */
  #forget() {
    const gone = this.messages.splice(0, Math.ceil(this.messages.length / 20));
    for (const message of gone) {
      if (message.isFailure) this.failures -= 1;
      if (hasLosses(message)) this.losses -= 1;
      if (message.request) message.request.answer = null;
      const session = this.#session(message);
      this.touched.delete(message);
      session.messages -= 1;
      session.open.delete(message);
      if (session.messages <= 0 && (session.client.ended !== "" || session.client.isClosed)) this.sessions.delete(session.label);
    }
    const first = this.messages[0];
    const bound = first === undefined ? Infinity : first.received || first.translated || first.sent;
    for (const [n, text] of this.lines) {
      if (n >= bound) break;
      this.characters -= text.length;
      this.lines.delete(n);
    }
    this.joining.forget(first?.number ?? Infinity);
    this.forgotten += gone.length;
  }
}
