/**
 * What was said, made of the lines of a trace: each message with its way through the proxy, its answer and what was
 * lost. Nothing here draws.
 *
 * A message that a peer sends has a line `received`, often one `translated`, and a line `sent` where it goes out on the
 * other side. They are joined here: answers by the ids of their requests, everything else by its method and by what it
 * says, in order. What was only sent, the proxy has said itself; what was only received has ended there. A server that
 * several share has a session of its own; what it says to one of them is that one's, once it goes out there.
 */

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
 * @property {string} method Its own, or that of the request it answers.
 * @property {string} name The tool, prompt or resource.
 * @property {string} id As JSON; empty for a notification.
 * @property {number} received The number of the line in which it came; 0 for none.
 * @property {number} translated
 * @property {number} sent
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
 *
 * @typedef {object} Peer
 * @property {string} name
 * @property {string} version
 * @property {string} title
 * @property {string} offered The revision that was asked for.
 * @property {string} revision The one that was agreed on.
 * @property {number} connection
 * @property {string} ended Why its connection has ended.
 * @property {string} refusal With which words it refused to open a session; empty where it did not.
 *
 * @typedef {object} Session
 * @property {string} label
 * @property {Peer} client
 * @property {Peer[]} servers One after the other, where one was started again.
 * @property {number} upstream The connection on which its server was last told something.
 * @property {number} messages
 * @property {number} losses
 * @property {number} failures
 * @property {number} since
 * @property {Set<Message>} open Requests without an answer.
 * @property {Map<string, string>} tasks Their states, by their ids.
 */

import { isPlain } from "./difference.js";
import { bodyOf, kindOf, nameOf, timeOf, wordsOf } from "./frames.js";

/** @type {Record<Side, Side>} */
const OTHER = { client: "server", server: "client" };

/** How much text of lines is kept; then the oldest go. */
const MOST_CHARACTERS = 150_000_000;

/** The session of a server that several share. */
export const SHARED = "shared server";

/** What the ids of requests begin with that the proxy makes up. */
const OURS = "dragoman-";

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
    this.missing = 0;
    this.forgotten = 0;
    /** How many messages say that something went wrong, and with how many something was lost. */
    this.failures = 0;
    this.losses = 0;
    this.isOver = false;
    /** @type {Map<string, Message>} requests that a peer asked, by its connection and id */
    this.asked = new Map();
    /** @type {Map<string, Message>} requests that went out, by the connection and id there */
    this.put = new Map();
    /** @type {Message[]} what has come and not gone out */
    this.pending = [];
    /** @type {Map<number, number>} the processes, by their numbers, in the order in which they came */
    this.processes = new Map();
    /** @type {WeakMap<Message, {translated: number, said: string[]}>} */
    this.bodies = new WeakMap();
    /** @type {Message | null} the notification that went out last */
    this.told = null;
    /** @type {Map<string, Message>} calls that wait for input, by the state that comes back with it */
    this.states = new Map();
    this.characters = 0;
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
    this.#tellApart(line);
    const batch = Array.isArray(line.frame) && line.frame.length > 0 ? line.frame : [line.frame];
    for (const frame of batch) this.#take({ ...line, frame: frame === undefined || isPlain(frame) ? frame : {} }, n, Math.ceil(text.length / batch.length));
    while (this.characters > MOST_CHARACTERS && this.messages.length > 1) this.#forget();
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

  /**
   * Whether the frames of a message hold a text.
   * @param {Message} message @param {RegExp} text
   */
  says(message, text) {
    for (const n of [message.received, message.translated || message.sent]) {
      const line = this.lines.get(n);
      if (line !== undefined && text.test(line)) return true;
    }
    return false;
  }

  /**
   * Keep processes apart that have written to one file: each counts its connections and sessions from 1.
   * @param {any} line
   */
  #tellApart(line) {
    if (!this.processes.has(line.process)) this.processes.set(line.process, this.processes.size);
    const index = this.processes.get(line.process) ?? 0;
    if (index === 0) return;
    line.session = `${line.session ?? ""} (process ${line.process})`.trim();
    if (typeof line.connection === "number") line.connection += index * 1e6;
  }

  /** @param {any} line @param {number} n @param {number} size */
  #take(line, n, size) {
    const { direction, side } = line;
    if (side !== "client" && side !== "server") {
      if (direction === "dropped") this.#note(line, n, `${line.lines} lines are missing here`);
    } else if (direction === "translated") this.#translated(line, n);
    else if (line.malformed !== undefined) this.#malformed(line, n, size);
    else if (direction === "unsent") this.#unsent(line);
    else if (typeof line.reason === "string" || line.frame === undefined) this.#event(line, n);
    else if (direction === "received" || direction === "given up") {
      this.#received(line, n, size);
    } else if (direction === "sent") this.#sent(line, n, size);
    else this.#event(line, n);
  }

  /** @param {any} line @param {number} n @param {number} size */
  #received(line, n, size) {
    const frame = line.frame;
    const message = this.#make(line, n, size);
    message.received = n;
    message.receivedAt = message.time;
    message.fromConnection = line.connection;
    message.fromRevision = line.revision ?? "";
    if (message.kind === "result" || message.kind === "error") {
      const request = this.put.get(keyOf(line.connection, frame.id));
      this.#answers(message, request);
      if (request && typeof frame.result?.requestState === "string") this.states.set(frame.result.requestState, request);
      this.put.delete(keyOf(line.connection, frame.id));
    } else if (message.kind === "request") {
      this.asked.set(keyOf(line.connection, frame.id), message);
      this.#session(message).open.add(message);
      this.#nest(message, line);
      this.#resume(message, frame);
    } else if (message.from === "server") this.#nest(message, line);
    this.#learn(message, frame, line);
    this.pending.push(message);
    if (this.pending.length > 500) this.pending.shift();
  }

  /**
   * Let a message wait again: it was not sent, and goes out once more.
   * @param {any} line
   */
  #unsent(line) {
    const message = this.put.get(keyOf(line.connection, line.frame?.id));
    if (message === undefined) return;
    message.sent = 0;
    this.pending.unshift(message);
  }

  /** @param {any} line @param {number} n @param {number} size */
  #sent(line, n, size) {
    const frame = line.frame;
    const kind = kindOf(frame);
    const from = OTHER[/** @type {Side} */ (line.side)];
    const answers = kind === "result" || kind === "error";
    const request = answers ? this.asked.get(keyOf(line.connection, frame.id)) : undefined;
    const isMadeUp = typeof frame.id === "string" && frame.id.startsWith(OURS);
    let found = answers
      ? request &&
        this.#take_pending((one) => one.from === from && one.kind === kind && one.request !== null && (isOf(one.request, request) || isOf(request, one.request)))
      : isMadeUp
        ? undefined
        : this.#take_alike(line, from, kind);
    if (!found) {
      found = this.#make({ ...line, side: from }, n, size);
      found.isOurs = true;
      found.sentAt = found.time;
      if (request) this.#answers(found, request);
      else if (isMadeUp && kind === "request") found.isMadeUp = true;
      else if (kind === "request") this.#session(found).open.add(found);
      if (kind === "request") this.#resume(found, frame);
      if (kind === "request" && found.call === null) this.#nest(found, line);
      this.#learn(found, frame, line);
    } else if (frame.method === "initialize" || frame.result?.protocolVersion) this.#learn(found, frame, line);
    found.sent = n;
    found.sentAt = timeOf(line);
    if (from === "server") this.#move(found, line.session ?? "");
    if (kind === "notification") this.told = found;
    found.toConnection = line.connection;
    found.toRevision = line.revision ?? "";
    if (kind === "request") this.put.set(keyOf(line.connection, frame.id), found);
    if (from === "client") this.#session(found).upstream = line.connection;
    if (request && typeof frame.result?.requestState === "string") this.states.set(frame.result.requestState, request);
    if (request) {
      // What the one who asked is told is the answer, whatever came before it.
      found.request = request;
      if (request.answer === null || request.answer.sent === 0) request.answer = found;
      const unsent = this.pending.indexOf(request);
      if (unsent >= 0) this.pending.splice(unsent, 1);
      this.asked.delete(keyOf(line.connection, frame.id));
      this.#session(request).open.delete(request);
    }
  }

  /** @param {any} line @param {number} n */
  #translated(line, n) {
    const before = line.before ?? {};
    const kind = kindOf(before);
    const id = before.id === undefined ? "" : JSON.stringify(before.id);
    const alike = this.pending.filter(
      (one) => one.from === line.side && one.kind === kind && one.translated === 0 && (one.method === line.method || one.method === ""),
    );
    const isItself = (/** @type {Message} */ one) => one.id === id || one.request?.id === id;
    const isHere = (/** @type {Message} */ one) => [one.session, one.request?.session].includes(line.session ?? "");
    const answers = kind === "result" || kind === "error";
    const body = alike.length > 1 && !answers ? bodyOf(before) : "";
    const found = answers
      ? (alike.findLast((one) => isItself(one) && isHere(one)) ?? alike.findLast(isItself))
      : (alike.find((one) => isHere(one) && body !== "" && this.#bodies(one).includes(body)) ?? alike.findLast(isHere) ?? alike.at(-1));
    const message = found ?? this.#make({ ...line, frame: before }, n, 0);
    if (found === undefined && answers) {
      // Said from what is known already: an answer that one session got before another asked.
      const asked = [...this.asked.values()].filter((one) => one.session === message.session && one.from !== line.side && one.method === line.method);
      const request = asked.findLast((one) => one.id === id) ?? asked.at(-1);
      message.isOurs = true;
      this.#answers(message, request);
      this.pending.push(message);
    }
    message.translated = n;
    message.isChanged = true;
    message.losses = Array.isArray(line.losses) ? line.losses : [];
    message.isRefused = line.refused !== undefined;
    message.fromRevision ||= line.revision;
    message.toRevision ||= line.to;
    if (message.method === "") message.method = line.method ?? "";
    if (message.isRefused) {
      this.#failed(message);
      message.words ||= String(line.refused?.message ?? "");
    }
    const hidden = message.losses.filter((loss) => loss.kind === "hidden").length;
    if (hidden > 0) message.words = `${message.words}, ${hidden} hidden`;
    if (message.losses.some((loss) => !loss.cosmetic)) {
      this.#session(message).losses += 1;
      this.losses += 1;
    }
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
    if (line.direction === "closed") return;
    this.#note(line, n, typeof line.reason === "string" ? line.reason : "");
    const session = this.sessions.get(line.session ?? "");
    if (session === undefined) return;
    const peers = line.side === "client" ? [session.client] : session.servers;
    for (const peer of peers) if (peer.connection === line.connection) peer.ended = String(line.reason ?? line.direction);
  }

  /** @param {any} line @param {number} n @param {string} words */
  #note(line, n, words) {
    const message = this.#make({ side: "server", ...line, frame: {} }, n, 0);
    message.kind = "event";
    message.method = `${line.side ?? "trace"} ${line.direction}`;
    message.words = words;
    message.received = n;
    if (["broken", "session lost", "dropped"].includes(line.direction)) this.#failed(message);
  }

  /**
   * @param {any} line @param {number} n @param {number} size
   * @returns {Message}
   */
  #make(line, n, size) {
    const frame = line.frame ?? {};
    const kind = kindOf(frame);
    const time = timeOf(line);
    /** @type {Message} */
    const message = {
      number: (this.messages.at(-1)?.number ?? 0) + 1,
      kind,
      from: line.side,
      isOurs: false,
      isMadeUp: false,
      time,
      session: line.session ?? "",
      method: typeof frame.method === "string" ? frame.method : "",
      name: nameOf(frame),
      id: frame.id === undefined ? "" : JSON.stringify(frame.id),
      received: 0,
      translated: 0,
      sent: 0,
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
      bytes: typeof line.large === "number" ? line.large : size,
      request: null,
      answer: null,
      call: null,
      depth: 0,
    };
    this.messages.push(message);
    const session = this.#session(message);
    session.messages += 1;
    if (kind === "error" || frame.result?.isError === true) this.#failed(message);
    return message;
  }

  /** @param {Message} message */
  #failed(message) {
    if (message.isFailure) return;
    message.isFailure = true;
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
    if (request.isOurs) this.#session(request).open.delete(request);
    // That a server does not know what only we ask is no failure of anybody's.
    if (request.isMadeUp && message.isFailure) {
      message.isFailure = false;
      this.failures -= 1;
      this.#session(message).failures -= 1;
    }
  }

  /**
   * Find the call that a request goes on with, once its client has the answers to what was asked in it.
   * @param {Message} message @param {any} frame
   */
  #resume(message, frame) {
    const call = this.states.get(frame.params?.requestState);
    if (call !== undefined) {
      this.states.delete(frame.params.requestState);
      message.call = call;
      message.depth = call.depth + 1;
    }
  }

  /**
   * Find the call in which something is asked: the one that its stream names, else the only one that is open.
   * @param {Message} message @param {any} line
   */
  #nest(message, line) {
    if (message.from !== "server" || message.session === SHARED) return;
    let call = line.stream === undefined ? undefined : this.put.get(keyOf(line.connection, line.stream));
    if (call === undefined) {
      const open = [...this.#session(message).open].filter((one) => one.from === "client" && one !== message);
      if (open.length === 1) call = open[0];
    }
    if (call !== undefined) {
      message.call = call;
      message.depth = call.depth + 1;
    }
  }

  /** @param {(one: Message) => boolean} wanted */
  #take_pending(wanted) {
    const index = this.pending.findIndex(wanted);
    return index < 0 ? undefined : this.pending.splice(index, 1)[0];
  }

  /**
   * Take what goes out now: of several, the one that says the same, before or after its translation. What goes on with
   * a call is never guessed: it ends at the proxy as often as not.
   * @param {any} line @param {Side} from @param {Kind} kind
   * @returns {Message | undefined}
   */
  #take_alike(line, from, kind) {
    const session = line.session ?? "";
    const fitting = this.pending.filter((one) => one.from === from && one.kind === kind && one.method === line.frame.method);
    const [here, elsewhere] = [fitting.filter((one) => one.session === session), fitting.filter((one) => one.session !== session)];
    const near = [...here, ...elsewhere.filter((one) => one.session === SHARED || session.startsWith(SHARED) || session === "")];
    const body = near.length > 1 || near[0]?.call ? bodyOf(line.frame) : "";
    const found = near.find((one) => body !== "" && this.#bodies(one).includes(body)) ?? near.find((one) => one.call === null || from === "server");
    if (found !== undefined) return this.#take_pending((one) => one === found);
    const told = this.told;
    if (kind !== "notification" || told === null || told.isOurs || told.method !== line.frame.method || told.toConnection === line.connection) return undefined;
    // The same is told to each who shares the server.
    const copy = this.#make({ ...line, side: from }, told.received, 0);
    for (const field of /** @type {const} */ (["received", "receivedAt", "fromConnection", "fromRevision", "bytes"])) Object.assign(copy, { [field]: told[field] });
    return copy;
  }

  /**
   * Give what a message says, as it came and after translation.
   * @param {Message} message
   */
  #bodies(message) {
    let known = this.bodies.get(message);
    if (known === undefined || known.translated !== message.translated) {
      const said = [this.line(message.received)?.frame, this.line(message.translated)?.after].flat().filter(isPlain).map(bodyOf);
      this.bodies.set(message, (known = { translated: message.translated, said }));
    }
    return known.said;
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
      if (message.losses.some((loss) => !loss.cosmetic)) session.losses += sign;
    }
  }

  /** @param {Message} message @returns {Session} */
  #session(message) {
    let session = this.sessions.get(message.session);
    if (session === undefined) {
      session = {
        label: message.session,
        client: noPeer(),
        servers: [],
        upstream: 0,
        messages: 0,
        losses: 0,
        failures: 0,
        since: message.time,
        open: new Set(),
        tasks: new Map(),
      };
      this.sessions.set(message.session, session);
    }
    return session;
  }

  /**
   * Note what a frame says of who speaks: the opening of a session, or the members of `_meta` where there is none.
   * @param {Message} message @param {any} frame @param {any} line
   */
  #learn(message, frame, line) {
    const session = this.#session({ ...message, session: line.session ?? "" });
    const meta = frame.params?._meta ?? frame.result?._meta ?? {};
    const isHeard = line.direction === "received";
    if (message.from === "client" && isHeard) {
      const about = frame.method === "initialize" ? frame.params?.clientInfo : meta["io.modelcontextprotocol/clientInfo"];
      if (about) describe(session.client, about);
      const offered =
        frame.method === "initialize" ? frame.params?.protocolVersion : meta["io.modelcontextprotocol/protocolVersion"];
      if (typeof offered === "string") session.client.offered = offered;
      session.client.connection = line.connection;
      session.client.revision = line.revision || session.client.revision || (frame.method === "initialize" ? "" : offered ?? "");
    } else if (message.from === "server" && isHeard) {
      let server = session.servers.find((one) => one.connection === line.connection);
      if (server === undefined) {
        server = { ...noPeer(), connection: line.connection };
        session.servers.push(server);
      }
      const about = frame.result?.serverInfo ?? meta["io.modelcontextprotocol/serverInfo"];
      if (about) describe(server, about);
      if (message.kind === "error" && message.method === "initialize") server.refusal = message.words;
      else if (message.kind === "result") server.refusal = "";
      if (typeof frame.result?.protocolVersion === "string") server.revision = frame.result.protocolVersion;
      else if (Array.isArray(frame.result?.supportedVersions)) server.revision ||= frame.result.supportedVersions.at(-1);
      server.revision = line.revision || server.revision;
    }
    const task = frame.result?.task ?? (typeof frame.result?.taskId === "string" ? frame.result : frame.params?.taskId ? frame.params : null);
    if (message.from === "server" && typeof task?.taskId === "string" && typeof task.status === "string") {
      session.tasks.set(task.taskId, task.status);
    }
    if (line.direction === "sent" && line.side === "server" && typeof frame.params?.protocolVersion === "string") {
      let server = session.servers.find((one) => one.connection === line.connection);
      if (server === undefined) {
        server = { ...noPeer(), connection: line.connection };
        session.servers.push(server);
      }
      server.offered = frame.params.protocolVersion;
    }
    if (line.direction === "sent" && line.side === "client" && typeof frame.result?.protocolVersion === "string") {
      session.client.revision = frame.result.protocolVersion;
    }
  }

  #forget() {
    const gone = this.messages.splice(0, Math.ceil(this.messages.length / 20));
    for (const message of gone) {
      if (message.isFailure) this.failures -= 1;
      if (message.losses.some((loss) => !loss.cosmetic)) this.losses -= 1;
      for (const n of [message.received, message.translated, message.sent]) {
        this.characters -= this.lines.get(n)?.length ?? 0;
        this.lines.delete(n);
      }
      if (message.request) message.request.answer = null;
    }
    this.forgotten += gone.length;
  }
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
  if (message.losses.some((loss) => !loss.cosmetic)) return "lost";
  if (message.isOurs) return "emulated";
  if (message.sent === 0 && message.kind !== "malformed") {
    if (message.kind === "request" && message.answer === null && !isOver) return "under way";
    return "kept";
  }
  return message.isChanged ? "translated" : "unchanged";
}

/**
 * Say how long the server took for a call, and how long we did; null where it is not known.
 * @param {Message} request
 * @returns {{server: number | null, ours: number | null}} in milliseconds
 */
export function timesOf(request) {
  const answer = request.answer;
  if (answer === null || request.sentAt === 0 || request.receivedAt === 0 || answer.receivedAt === 0) {
    const ended = answer?.sentAt ?? 0;
    return { server: null, ours: ended && request.receivedAt ? ended - request.receivedAt : null };
  }
  const there = request.sentAt - request.receivedAt;
  const back = answer.sentAt ? answer.sentAt - answer.receivedAt : 0;
  return { server: answer.receivedAt - request.sentAt, ours: Math.max(0, there + back) };
}

/**
 * Whether a request is the one that another goes on with, or that one itself.
 * @param {Message} request @param {Message} last
 */
function isOf(request, last) {
  /** @type {Message | null} */
  let one = last;
  while (one !== null && one !== request) one = one.call;
  return one === request;
}

/** @param {number} connection @param {unknown} id */
function keyOf(connection, id) {
  return `${connection} ${JSON.stringify(id)}`;
}

/** @returns {Peer} */
function noPeer() {
  return { name: "", version: "", title: "", offered: "", revision: "", connection: 0, ended: "", refusal: "" };
}

/** @param {Peer} peer @param {any} about */
function describe(peer, about) {
  for (const field of /** @type {const} */ (["name", "version", "title"])) {
    if (typeof about[field] === "string") peer[field] = about[field];
  }
}
