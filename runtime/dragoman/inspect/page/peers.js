/**
 * Who talks to whom: sessions, their clients and servers, and how each of them is.
 */

import { isPlain } from "./difference.js";

/**
 * @typedef {import("./messages.js").Message} Message
 *
 * @typedef {object} Peer
 * @property {string} name
 * @property {string} version
 * @property {string} title
 * @property {string} server What the router calls it; empty where there is one server.
 * @property {string} offered The revision that was asked for.
 * @property {string} revision The one that was agreed on.
 * @property {number} connection
 * @property {string} transport Over which its first message came, where that is not what the page says of all.
 * @property {string} ended Why its connection has ended.
 * @property {boolean} isClosed Whether it was Dragoman who closed it.
 * @property {boolean} isLeaving Whether it ended because its session was over.
 * @property {string} trouble Why it could not be reached the last time.
 * @property {boolean} isAnswering Whether that is what it has answered, with a status of HTTP.
 * @property {string} refusal With which words it refused to open a session; empty where it did not.
 * @property {string} declared The names of its capabilities; empty where they are not known yet.
 *
 * @typedef {object} Session
 * @property {string} label
 * @property {Peer} client
 * @property {Peer[]} servers Each connection to one, in the order in which they were opened.
 * @property {number} upstream The connection on which its server was last told something.
 * @property {number} messages
 * @property {number} losses
 * @property {number} failures
 * @property {number} since
 * @property {Set<Message>} open Requests without an answer.
 * @property {Map<string, string>} tasks Their states, by their ids.
 * @property {string[]} refused The last questions of its server that we have answered with an error, and with which.
 *
 * @typedef {{said: "open" | "ended" | "as recorded" | "its server is gone" | "no server", why: string}} State
 */

/** Keeps processes apart that have written to one file: each counts its connections and sessions from 1. */
export class Processes {
  constructor() {
    /** @type {Map<number, number>} their places in the order in which they came, by their numbers */
    this.places = new Map();
  }

  /** @param {any} line */
  tellApart(line) {
    if (!this.places.has(line.process)) this.places.set(line.process, this.places.size);
    const place = this.places.get(line.process) ?? 0;
    if (place === 0) return;
    line.session = `${line.session} (process ${line.process})`.trim();
    if (line.connection !== undefined) line.connection += place * 1e6;
  }
}

/** What the session of a server that several share is called; with principals, each has one: `shared server of ada`. */
export const SHARED = "shared server";

/** @param {string} label */
export function isShared(label) {
  return label.startsWith(SHARED);
}

/** @param {string} label @param {number} since @returns {Session} */
export function makeSession(label, since) {
  return { label, client: noPeer(0), servers: [], upstream: 0, messages: 0, losses: 0, failures: 0, since, open: new Set(), tasks: new Map(), refused: [] };
}

/** @param {number} connection @param {string} [server] @returns {Peer} */
function noPeer(connection, server = "") {
  return { name: "", version: "", title: "", server, offered: "", revision: "", connection, transport: "", ended: "", isClosed: false, isLeaving: false, trouble: "", isAnswering: false, refusal: "", declared: "" };
}

/**
 * Give the server at the other end of a connection; one that is met for the first time is a new one.
 * @param {Session} session @param {any} line
 */
function serverAt(session, line) {
  let server = session.servers.find((one) => one.connection === line.connection);
  if (server === undefined) {
    server = noPeer(line.connection, line.server ?? "");
    session.servers.push(server);
  }
  return server;
}

/**
 * Say which capabilities a peer has declared, in its own words: `elicitation (form, url), roots`.
 * @param {any} capabilities
 */
export function sayDeclared(capabilities) {
  const inner = (/** @type {any} */ value) => (isPlain(value) ? Object.keys(value).filter((name) => value[name] !== false) : []);
  const names = inner(capabilities).filter((name) => name !== "experimental" || inner(capabilities[name]).length > 0);
  return names.map((name) => [name, ...(inner(capabilities[name]).length > 0 ? [`(${inner(capabilities[name]).join(", ")})`] : [])].join(" ")).join(", ").slice(0, 400) || "no capabilities";
}

/** @param {Peer} peer @param {any} about */
function describe(peer, about) {
  for (const field of /** @type {const} */ (["name", "version", "title"])) {
    if (typeof about[field] === "string") peer[field] = about[field];
  }
}

/**
 * Note what a frame says of who speaks: the opening of a session, or the members of `_meta` where there is none.
 * @param {Session} session @param {Message} message @param {any} frame @param {any} line
 */
export function learn(session, message, frame, line) {
  const meta = frame.params?._meta ?? frame.result?._meta ?? {};
  if (line.direction === "received" && message.from === "client") learnClient(session, message, frame, line, meta);
  else if (line.direction === "received" && !isRouter(session, line)) learnServer(serverAt(session, line), message, frame, line, meta);
  else if (line.direction === "given up") Object.assign(serverAt(session, line), { trouble: message.words, isAnswering: typeof frame.error?.data?.httpStatus === "number" });
  const task = frame.result?.task ?? (typeof frame.result?.taskId === "string" ? frame.result : frame.params?.taskId ? frame.params : null);
  if (message.from === "server" && typeof task?.taskId === "string" && typeof task.status === "string") {
    session.tasks.set(task.taskId, task.status);
  }
  if (line.direction === "sent" && line.side === "server" && !isRouter(session, line)) {
    const offered = frame.params?.protocolVersion ?? meta["io.modelcontextprotocol/protocolVersion"];
    if (typeof offered === "string") serverAt(session, line).offered = offered;
  }
  if (line.direction === "sent" && line.side === "client" && typeof frame.result?.protocolVersion === "string") {
    session.client.revision = frame.result.protocolVersion;
  }
}

/** @param {Session} session @param {Message} message @param {any} frame @param {any} line @param {any} meta */
function learnClient(session, message, frame, line, meta) {
  const { client } = session;
  const opens = frame.method === "initialize";
  const about = opens ? frame.params?.clientInfo : meta["io.modelcontextprotocol/clientInfo"];
  if (about) describe(client, about);
  const capabilities = opens ? (frame.params?.capabilities ?? {}) : meta["io.modelcontextprotocol/clientCapabilities"];
  if (capabilities) client.declared = sayDeclared(capabilities);
  const offered = opens ? frame.params?.protocolVersion : meta["io.modelcontextprotocol/protocolVersion"];
  if (typeof offered === "string") client.offered = offered;
  client.connection = line.connection;
  if (message.http.length > 0) client.transport = "websocket"; // those of HTTP have their headers when they are answered
  client.revision = line.revision || client.revision || (opens || typeof offered !== "string" ? "" : offered);
}

/** @param {Peer} server @param {Message} message @param {any} frame @param {any} line @param {any} meta */
function learnServer(server, message, frame, line, meta) {
  const about = frame.result?.serverInfo ?? meta["io.modelcontextprotocol/serverInfo"];
  if (about) describe(server, about);
  if (message.kind === "error" && message.method === "initialize") server.refusal = message.words;
  else if (message.kind === "result") server.refusal = server.trouble = "";
  const { protocolVersion, supportedVersions, capabilities } = frame.result ?? {};
  if (capabilities) server.declared = sayDeclared(capabilities);
  if (typeof protocolVersion === "string") server.revision = protocolVersion;
  else if (Array.isArray(supportedVersions)) server.revision ||= String(supportedVersions.at(-1) ?? "");
  server.revision = line.revision || server.revision;
}

/**
 * Note that a question of the server went no further, and was answered by us with an error.
 * @param {Session} session @param {Message} request @param {Message} answer
 */
export function noteRefusal(session, request, answer) {
  if (!answer.isOurs || answer.kind !== "error" || request.from !== "server" || request.sent !== 0) return;
  request.isRefused = true;
  const said = `${request.method}: ${answer.words}`;
  session.refused = [...session.refused.filter((one) => one !== said), said].slice(-5);
}

/**
 * Whether a line is about the connection to the router, which is no server.
 * @param {Session} session @param {any} line
 */
export function isRouter(session, line) {
  return line.side === "server" && line.server === undefined && session.servers.some((one) => one.server !== "");
}

/**
 * Note that a connection is over.
 * @param {Session} session @param {any} line @param {boolean} isLeaving Whether its session was over before.
 */
export function noteEnd(session, line, isLeaving) {
  if (isRouter(session, line)) return;
  const peer = line.side === "client" ? session.client : serverAt(session, line);
  if (line.side === "client" && peer.connection !== line.connection && peer.connection !== 0) return;
  if (line.direction === "closed") peer.isClosed = true;
  if (peer.ended === "" && line.side === "server") peer.isLeaving = isLeaving;
  if (line.direction === "ended" || line.direction === "broken") peer.ended ||= String(line.reason || line.direction);
}

/**
 * The servers of a session as they are now: of each the connection that was opened last, with how often it was lost.
 * @param {Session} session @param {Iterable<Session>} sessions
 * @returns {{server: Peer, losses: string[]}[]}
 */
export function serversOf(session, sessions) {
  let peers = session.servers;
  if (peers.some((one) => one.server !== "")) peers = peers.filter((one) => one.server !== "");
  if (peers.length === 0) {
    const shared = [...sessions].filter((one) => isShared(one.label));
    const own = shared.find((one) => one.servers.some((peer) => peer.connection === session.upstream)) ?? shared.find((one) => ownerOf(one) === ownerOf(session)) ?? (shared.length === 1 ? shared[0] : undefined);
    peers = own?.servers ?? [];
  }
  /** @type {Map<string, {server: Peer, losses: string[]}>} */
  const found = new Map();
  for (const peer of peers) {
    const before = found.get(peer.server);
    const losses = before?.losses ?? [];
    if (peer.ended !== "" && !peer.isLeaving) losses.push(peer.ended);
    found.set(peer.server, { server: peer, losses });
  }
  return [...found.values()];
}

/** @param {Session} session */
function ownerOf({ label }) {
  return label.includes(" of ") ? label.slice(label.indexOf(" of ") + 4) : "";
}

/**
 * Say how a session is, and why.
 * @param {Session} session @param {Iterable<Session>} sessions @param {boolean} isOver
 * @returns {State}
 */
export function stateOf(session, sessions, isOver) {
  const servers = serversOf(session, sessions);
  const gone = servers.filter(({ server }) => server.ended !== "" && !server.isLeaving);
  const why = gone.at(-1)?.server.ended ?? "";
  const isGone = servers.length > 0 && gone.length === servers.length;
  if (isShared(session.label)) {
    if (isGone) return { said: "its server is gone", why };
    return { said: servers.length > 0 && servers.every(({ server }) => server.isClosed) ? "ended" : isOver ? "as recorded" : "open", why: "" };
  }
  const { client } = session;
  if (isGone && client.ended === "") return { said: "its server is gone", why };
  if (client.ended !== "" || client.isClosed) return { said: "ended", why: client.ended || "Dragoman has closed it" };
  const refused = servers.length > 0 && servers.every(({ server }) => server.refusal !== "");
  if (refused) return { said: "no server", why: servers[0]?.server.refusal ?? "" };
  return { said: isOver ? "as recorded" : "open", why: "" };
}
