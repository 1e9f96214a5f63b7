// The joining of lines to messages, held against traces of real sessions: `PAGE` is the folder of the page's modules.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const { Conversation } = await import(`${process.env.PAGE}/model.js`);
const { markOf, timesOf } = await import(`${process.env.PAGE}/messages.js`);
const { SHARED, sayDeclared, serversOf, stateOf } = await import(`${process.env.PAGE}/peers.js`);

function read(name) {
  const text = readFileSync(new URL(`${name}.ndjson`, import.meta.url), "utf-8").trimEnd();
  return hear(text.split("\n").map((line) => JSON.parse(line)));
}
function hear(lines) {
  const conversation = new Conversation();
  for (const [index, line] of lines.entries()) conversation.add(JSON.stringify(line), index + 1);
  return conversation;
}
const ways = (found, kind, method) => found.messages.filter((one) => one.kind === kind && one.method === method);
const line = (direction, side, connection, frame, more = {}) => ({ time: "2026-01-31T09:15:02.000001Z", process: 1, session: null, side, connection, direction, frame, ...more });
const call = (id, text) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "t", arguments: { text } } });
const result = (id, text) => ({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } });

test("every frame of a trace stands in one message, and every answer at its request", () => {
  for (const name of ["refused", "handshake", "promoted", "asked", "shared"]) {
    const { messages } = read(name);
    for (const one of messages.filter(({ kind }) => kind === "request")) {
      assert.notEqual(one.answer, null, `${name}: ${one.number} ${one.method}`);
      if (one.answer.sent > 0 && !one.isOurs) assert.equal(one.answer.request, one, `${name}: ${one.number}`);
    }
  }
});

test("a question by URL that is refused is in its call, and so is its error", () => {
  const [question] = ways(read("refused"), "request", "elicitation/create");
  assert.equal(markOf(question), "refused");
  assert.deepEqual([question.call.name, question.answer.isOurs, question.answer.kind], ["sign_in", true, "error"]);
});

test("a request that is refused and the error that says so are one failure", () => {
  const found = read("refused");
  assert.deepEqual(found.messages.filter((one) => one.isFailure).map((one) => [one.kind, one.method]), [["error", "elicitation/create"], ["result", "tools/call"]]);
  assert.equal(found.failures, 2);
});

test("a list says how many of it are hidden", () => {
  assert.equal(ways(read("refused"), "result", "tools/list")[0].words, "3 tools, 1 hidden: big_report");
});

test("a server that refuses the handshake is said to have refused it, with its words", () => {
  const session = read("handshake").sessions.get("");
  assert.match(session.servers[0].refusal, /license expired/);
});

test("a question becomes a result that asks, and the call goes on with the next request", () => {
  const found = read("promoted");
  const calls = ways(found, "request", "tools/call");
  assert.deepEqual(calls.map((one) => [one.id, one.sent > 0, one.call?.id ?? ""]), [["1", true, ""], ['"again1"', false, "1"], ["2", true, ""], ['"again2"', false, "2"]]);
  assert.deepEqual(calls.map((one) => one.answer.words.slice(0, 6)), ["asks 1", "-32603", "asks 1", "-32603"]);
  assert.deepEqual(ways(found, "request", "elicitation/create").map((one) => one.call.id), ["1", "2"]);
});

test("what a call comes to in the end is one message, though the client has called again meanwhile", () => {
  const found = read("stateless");
  const calls = ways(found, "request", "tools/call");
  const last = ways(found, "result", "tools/call").at(-1);
  assert.deepEqual(ways(found, "result", "tools/call").map((one) => [one.words, one.isOurs, markOf(one)]), [["asks 1 question", true, "emulated"], ["Published: team.", false, "translated"]]);
  assert.deepEqual(calls.map((one) => one.id), ["3", "4"]);
  assert.equal(calls[1].answer, last);
});

test("a result that asks becomes a question in its call, and what comes of it is the answer of the call", () => {
  const found = read("asked");
  const later = found.messages.filter((one) => one.session === "(process 2)");
  const calls = later.filter((one) => one.kind === "request" && one.method === "tools/call");
  assert.deepEqual(calls.map((one) => [one.isOurs, one.call === null]), [[false, true], [true, false], [false, true], [true, false]]);
  for (const one of later.filter(({ method, kind }) => method === "elicitation/create" && kind === "request")) assert.equal(one.call.method, "tools/call");
  assert.equal(calls[0].answer.received > 0 && calls[0].answer.sent > calls[0].answer.received, true);
});

test("processes that wrote to one file are kept apart", () => {
  const found = read("asked");
  assert.deepEqual([...found.sessions.keys()], ["", "(process 2)"]);
  for (const one of found.messages) if (one.request) assert.equal(one.request.session, one.session);
});

test("what clients of one server ask at the same time is each one's own, and so is what it answers", () => {
  const found = read("shared");
  for (const one of ways(found, "result", "tools/call")) {
    assert.equal(`{"who":"${one.words}"}`, one.request.words);
    assert.equal(one.session, one.request.session);
  }
  const [, second] = ways(found, "result", "tools/list").map((one) => [one.session, one.translated > 0]);
  assert.deepEqual(second, ["session 2", true]);
  assert.deepEqual(found.sessions.get(SHARED).servers.map((one) => one.name), ["shared"]);
  assert.deepEqual(["session 1", "session 2", "session 3"].map((name) => found.sessions.get(name).client.name), ["client0", "client2", "client1"]);
});

test("what is told to all who share a server was said by it, not by Dragoman", () => {
  const told = ways(read("shared"), "notification", "notifications/tools/list_changed");
  assert.deepEqual(told.map((one) => one.session).sort(), ["session 1", "session 2", "session 3"]);
  assert.deepEqual(told.map((one) => [one.isOurs, one.received > 0]), [[false, true], [false, true], [false, true]]);
});

test("each part of a batch is a message of its own", () => {
  const found = read("shared");
  assert.deepEqual(found.messages.filter((one) => one.kind === "malformed"), []);
  const parts = found.messages.filter((one) => one.id === '"x"' || one.id === '"y"');
  assert.deepEqual(parts.map((one) => [one.method, one.answer.received > 0]), [["tools/call", true], ["ping", true]]);
});

test("ids that are texts and numbers are two, and a request that never goes out leaves its place to the next", () => {
  const found = hear([
    line("received", "client", 1, call(1, "a")),
    line("received", "client", 1, call("1", "b")),
    line("sent", "server", 2, call(1, "b")),
    line("received", "server", 2, result(1, "B")),
    line("sent", "client", 1, result("1", "B")),
    line("sent", "client", 1, { jsonrpc: "2.0", id: 1, error: { code: -1, message: "no" } }),
    line("sent", "server", 2, call(9, "c")),
  ]);
  const [first, second, ours] = ways(found, "request", "tools/call");
  assert.deepEqual([first.answer.words, first.sent, second.answer.words, second.sent > 0], ["-1: no", 0, "B", true]);
  assert.deepEqual([ours.isOurs, ours.words], [true, '{"text":"c"}']);
});

test("given up, session lost and unsent", () => {
  const found = hear([
    line("received", "client", 1, call(1, "a")),
    line("sent", "server", 2, call(1, "a")),
    line("unsent", "server", 2, call(1, "a")),
    line("sent", "server", 3, call(1, "a")),
    line("session lost", "server", 3, call(1, "a")),
    line("given up", "server", 3, { jsonrpc: "2.0", id: 1, error: { code: -32000, message: "gone" } }),
    line("sent", "client", 1, { jsonrpc: "2.0", id: 1, error: { code: -32000, message: "gone" } }),
  ]);
  assert.deepEqual(found.messages.map((one) => [one.kind, one.from, one.isOurs]), [["request", "client", false], ["event", "server", false], ["error", "server", true]]);
  assert.deepEqual([found.messages[0].toConnection, found.messages[0].answer.words], [3, "-32000: gone"]);
});

test("what is not a frame went no further", () => {
  const found = hear([line("received", "client", 1, undefined, { malformed: "not JSON", line: "x" })]);
  assert.deepEqual(found.messages.map((one) => markOf(one)), ["kept"]);
});

test("the headers with which a WebSocket was opened stand at what was said on it first, and are no session", () => {
  const opens = line("http", "client", 5, undefined, { method: "GET", status: 101, request: {}, response: {} });
  const found = hear([opens, line("received", "client", 5, call(1, "a"), { session: "session 3" }), line("received", "client", 5, call(2, "b"), { session: "session 3" })]);
  assert.deepEqual(found.messages.map((one) => one.http), [[1], []]);
  assert.deepEqual([...found.sessions.values()].map((one) => [one.label, one.client.transport]), [["session 3", "websocket"]]);
});

test("behind a router each call stands with its server, and what the router asks them all in the request it is for", () => {
  const found = read("router");
  const calls = ways(found, "request", "tools/call").map((one) => [one.name, one.server, one.isOurs, one.answer.words.slice(0, 12)]);
  assert.deepEqual(calls, [["git_echo", "git", false, "git: hi"], ["files_die", "files", false, "-32000: the "], ["files_echo", "files", false, "files: again"]]);
  const [asked, ...lists] = ways(found, "request", "tools/list");
  assert.deepEqual(lists.map((one) => [one.server, one.isOurs, one.call === asked]), [["git", true, true], ["files", true, true]]);
  assert.deepEqual(lists.map((one) => [one.answer.server, one.answer.isOurs, one.answer.words]), [["git", false, "2 tools"], ["files", false, "2 tools"]]);
  assert.deepEqual([asked.answer.server, asked.answer.isOurs, asked.answer.words], ["", true, "4 tools"]);
  for (const one of ways(found, "request", "initialize").slice(1)) assert.equal(one.answer.server, one.server);
});

test("a server behind a router that died is said to have been lost, and why", () => {
  const found = read("router");
  const servers = serversOf(found.sessions.get(""), found.sessions.values());
  assert.deepEqual(servers.map(({ server, losses }) => [server.server, server.revision, losses]), [["git", "2025-11-25", []], ["files", "2025-11-25", ["the server exited with status 3"]]]);
  const [died] = found.messages.filter((one) => one.kind === "event" && one.isFailure);
  assert.deepEqual([died.method, died.call.name], ["files ended", "files_die"]);
});

test("with principals each has a server of its own, and what it says is in the right call", () => {
  const found = read("principal");
  assert.deepEqual([...found.sessions.keys()].filter((label) => label.startsWith(SHARED)).sort(), ["shared server of ada", "shared server of bob"]);
  const text = (one) => JSON.parse(one.words).text;
  for (const one of ways(found, "result", "tools/call")) {
    assert.equal(text(one), text(one.request));
    assert.equal(one.session, one.request.session);
  }
  for (const one of ways(found, "notification", "notifications/progress")) assert.deepEqual([one.call.method, one.call.session, one.isOurs], ["tools/call", one.session, false]);
  const together = ways(found, "request", "tools/call").filter((one) => one.session === "session 4 of ada");
  assert.deepEqual(together.map((one) => [one.id, text(one), text(one.answer)]), [["1", "one", "one"], ["1", "two", "two"]]);
  const [died] = found.messages.filter((one) => one.kind === "event" && one.isFailure);
  assert.deepEqual([died.session, died.words], ["shared server of ada", "the server exited with status 3"]);
});

test("a request has the headers that it came with", () => {
  const found = read("principal");
  for (const one of ways(found, "request", "tools/call")) {
    const [line, ...others] = one.http.map((n) => found.line(n));
    assert.deepEqual([others.length, line.side, line.session, line.status, line.request.authorization], [0, "client", one.session, 200, "[redacted]"]);
  }
});

test("a request that was sent again after a 401 has both exchanges, and the refusal has a row", () => {
  const http = (status, more) => line("http", "server", 2, undefined, { method: "POST", status, ids: [1], request: {}, response: {}, ...more });
  const found = hear([
    line("received", "client", 1, call(1, "a")),
    line("sent", "server", 2, call(1, "a")),
    http(401, { response: { "www-authenticate": 'Bearer error="invalid_token"' } }),
    http(200),
    line("http", "server", 2, undefined, { method: "GET", status: 405, request: {}, response: {} }),
    line("http", "server", 2, undefined, { method: "POST", status: 202, request: {}, response: {} }),
    line("received", "server", 2, result(1, "A")),
    line("sent", "client", 1, result(1, "A")),
  ]);
  assert.deepEqual(found.messages.map((one) => [one.kind, one.isFailure, one.words]), [["request", false, '{"text":"a"}'], ["event", true, 'POST 401: Bearer error="invalid_token"'], ["event", false, "GET 405: it offers no stream of its own"], ["result", false, "A"]]);
  assert.deepEqual([found.messages[0].http, found.messages[1].call], [[3, 4], found.messages[0]]);
});

const reason = (direction, side, connection, why) => ({ ...line(direction, side, connection), reason: why });
const opened = [
  line("received", "client", 1, { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-06-18", clientInfo: { name: "c" } } }),
  line("sent", "server", 2, { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-06-18" } }),
  line("received", "server", 2, { jsonrpc: "2.0", id: 0, result: { protocolVersion: "2025-06-18", serverInfo: { name: "s" } } }),
  line("sent", "client", 1, { jsonrpc: "2.0", id: 0, result: { protocolVersion: "2025-06-18" } }),
];
const state = (lines, isOver = false) => {
  const found = hear([...opened, ...lines]);
  return stateOf(found.sessions.get(""), found.sessions.values(), isOver);
};

test("the state of a session is true, and says why", () => {
  assert.deepEqual(state([]), { said: "open", why: "" });
  assert.deepEqual(state([], true), { said: "as recorded", why: "" });
  const died = reason("ended", "server", 2, "status 3");
  assert.deepEqual(state([died]), { said: "its server is gone", why: "status 3" });
  assert.deepEqual(state([died, line("closed", "server", 2), line("closed", "client", 1)]), { said: "its server is gone", why: "status 3" });
  assert.deepEqual(state([died, line("sent", "server", 3, call(7, "again"))]).said, "its server is gone");
  assert.deepEqual(state([died, line("received", "server", 3, result(7, "again"))]).said, "open");
  assert.deepEqual(state([reason("ended", "client", 1, "end of input"), reason("ended", "server", 2, "status 0")]), { said: "ended", why: "end of input" });
  assert.deepEqual(state([line("closed", "client", 1), reason("ended", "server", 2, "status 0")]), { said: "ended", why: "Dragoman has closed it" });
});

test("a server that cannot be reached is said to be in trouble until it answers", () => {
  const failed = line("given up", "server", 2, { jsonrpc: "2.0", id: 1, error: { code: -32000, message: "connection refused" } });
  const trouble = (lines) => {
    const found = hear([...opened, line("received", "client", 1, call(1, "a")), line("sent", "server", 2, call(1, "a")), ...lines]);
    return found.sessions.get("").servers[0].trouble;
  };
  assert.equal(trouble([failed]), "-32000: connection refused");
  assert.equal(trouble([failed, line("received", "server", 2, result(2, "b"))]), "");
});

test("a call that a status of HTTP has ended is one failure, and its error was written by us", () => {
  const error = { jsonrpc: "2.0", id: 1, error: { code: -32000, message: "it answered 401", data: { httpStatus: 401 } } };
  const found = hear([...opened, line("received", "client", 1, call(1, "a")), line("sent", "server", 2, call(1, "a")), line("http", "server", 2, undefined, { method: "POST", status: 401, ids: [1], request: {}, response: {} }), line("given up", "server", 2, error), line("sent", "client", 1, error)]);
  const session = found.sessions.get("");
  assert.deepEqual([found.failures, session.failures, session.servers[0].isAnswering], [1, 1, true]);
  assert.deepEqual(found.messages.slice(-2).map((one) => [one.kind, one.isFailure, markOf(one)]), [["event", false, "event"], ["error", true, "emulated"]]);
});

test("a question that we answer with an error is refused, and its session says so", () => {
  const question = { jsonrpc: "2.0", id: 7, method: "elicitation/create", params: { message: "who?" } };
  const error = { jsonrpc: "2.0", id: 7, error: { code: -32601, message: "not declared" } };
  const asked = (more) => hear([...opened, line("received", "client", 1, call(1, "a")), line("sent", "server", 2, call(1, "a")), line("received", "server", 2, question), ...more]);
  const found = asked([line("sent", "server", 2, error), line("received", "server", 2, { ...question, id: 8 }), line("sent", "server", 2, { ...error, id: 8 })]);
  assert.deepEqual(ways(found, "request", "elicitation/create").map((one) => markOf(one)), ["refused", "refused"]);
  assert.deepEqual(found.sessions.get("").refused, ["elicitation/create: -32601: not declared"]);
  const declined = asked([line("sent", "client", 1, question), line("received", "client", 1, error), line("sent", "server", 2, error)]);
  assert.deepEqual([markOf(ways(declined, "request", "elicitation/create")[0]), declined.sessions.get("").refused], ["unchanged", []]);
});

test("what peers declare is listed by its names", () => {
  assert.equal(sayDeclared({}), "no capabilities");
  assert.equal(sayDeclared({ experimental: {}, tools: { listChanged: false }, elicitation: { form: {}, url: {} }, roots: { listChanged: true } }), "tools, elicitation (form, url), roots (listChanged)");
  const { client, servers } = read("handshake").sessions.get("");
  assert.deepEqual([client.declared, servers[0].declared], ["no capabilities", ""]);
});

test("the opening is said to go on in the revision into which it was translated", () => {
  assert.deepEqual(ways(read("refused"), "request", "initialize").map((one) => one.toRevision), ["2025-11-25"]);
});

test("beyond its bound the oldest goes, with all that was kept for it", () => {
  const found = new Conversation();
  found.most = 100_000;
  for (let n = 1; n <= 3000; n += 1) {
    const session = { session: `session ${n}` };
    for (const one of [line("received", "client", n, call(n, "x"), session), line("http", "client", n, undefined, { ...session, method: "POST", status: 202, request: {}, response: {} }), reason("ended", "client", n, "bye")]) {
      found.add(JSON.stringify({ ...one, ...session }));
    }
  }
  assert.ok(found.characters <= 100_000 && found.forgotten > 3000);
  assert.ok(found.lines.size < 1500 && found.joining.asked.size < 700 && found.joining.lately.size < 700 && found.sessions.size < 700, `${found.sessions.size}`);
  let sum = 0;
  for (const text of found.lines.values()) sum += text.length;
  assert.equal(sum, found.characters);
});

test("a line that nobody can read is one row, and what comes after it is there", () => {
  const odd = { toString: 1, valueOf: 1 };
  const lines = [
    line("received", "client", 1, { jsonrpc: "2.0", id: odd, method: "x", params: { name: odd, message: odd, _meta: odd } }),
    line("received", "server", 2, { jsonrpc: "2.0", id: 1, result: { serverInfo: { name: odd, version: odd }, supportedVersions: [odd], protocolVersion: odd, task: odd } }),
    line("received", "server", 2, { jsonrpc: "2.0", id: 1, error: { code: odd, message: odd } }),
    { ...line("translated", "server"), revision: odd, to: [1], method: odd, before: { id: 1, result: odd }, losses: [odd, null, { pointer: 7, kind: [], bytes: odd }] },
    line("http", "client", 1, undefined, { method: odd, status: odd, ids: [odd, null], request: odd, response: { "www-authenticate": odd } }),
    { ...reason("ended", "server", 2, odd), session: odd, server: odd },
    { time: odd, process: odd, direction: odd, side: odd, lines: odd },
    { direction: "dropped", lines: odd },
    { side: "client", direction: "received", frame: [[], null, odd, { method: odd }] },
    line("received", "client", 1, call(9, "last")),
  ];
  const found = hear(lines);
  assert.equal(found.messages.at(-1).words, '{"text":"last"}');
  for (const one of found.messages) for (const text of [one.method, one.name, one.words, one.session, one.server, one.fromRevision, one.toRevision]) assert.equal(typeof text, "string", JSON.stringify(text));
  for (const session of found.sessions.values()) for (const peer of [session.client, ...session.servers]) for (const text of [peer.name, peer.version, peer.revision, peer.ended, peer.offered]) assert.equal(typeof text, "string", JSON.stringify(text));
});

test("a call is parked from the question to its client until the client comes back or it is given up", () => {
  const asks = (id, state) => ({ jsonrpc: "2.0", id, result: { resultType: "input_required", inputRequests: { q: { method: "elicitation/create", params: { message: "Who?" } }, r: { method: "roots/list" }, odd: null }, requestState: state } });
  const again = { jsonrpc: "2.0", id: "again", method: "tools/call", params: { name: "t", requestState: "one" } };
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
  const lines = [
    ...[1, 2].flatMap((id) => [line("received", "client", 1, call(id, "a")), line("sent", "server", 2, call(id, "a")), line("sent", "client", 1, asks(id, id === 1 ? "one" : "two"))]),
    line("received", "client", 1, again),
    line("sent", "client", 1, asks("again", "three")),
    line("sent", "server", 2, cancel),
  ];
  const parked = (count, status) => hear(lines.slice(0, count)).joining.parkedOf("", status).map(([{ id }, asked]) => [id, asked]);
  const asked = "elicitation/create: Who?; roots/list";
  assert.deepEqual(parked(6), [["1", asked], ["2", asked]]);
  assert.deepEqual([parked(6, 1), parked(6, 0)], [[["2", asked]], []]);
  assert.deepEqual(parked(7), [["2", asked]]);
  assert.deepEqual(parked(8), [["2", asked], ['"again"', asked]]);
  assert.deepEqual(parked(9), [["2", asked]]);
});

test("what a server asks in its own result is not parked, nor is what is not kept any more", () => {
  const asks = { jsonrpc: "2.0", id: 1, result: { resultType: "input_required", inputRequests: {}, requestState: "its own" } };
  const found = hear([line("received", "client", 1, call(1, "a")), line("sent", "server", 2, call(1, "a")), line("received", "server", 2, asks), line("sent", "client", 1, asks)]);
  assert.deepEqual(found.joining.parkedOf(""), []);
  const ours = hear([line("received", "client", 1, call(1, "a")), line("sent", "client", 1, asks)]);
  assert.equal(ours.joining.parkedOf("").length, 1);
  ours.joining.forget(Infinity);
  assert.deepEqual(ours.joining.parkedOf(""), []);
});

test("how long an answer took is the server's only where it was asked, and ours only where that is known", () => {
  const at = (ms) => ({ time: `2026-01-31T09:15:02.${String(ms).padStart(3, "0")}000Z` });
  const ask = (id) => ({ jsonrpc: "2.0", id, method: "elicitation/create", params: { message: "who?" } });
  const said = (id) => ({ jsonrpc: "2.0", id, result: { action: "accept" } });
  const { messages } = hear([
    line("received", "client", 1, call(1, "a"), at(0)),
    line("sent", "server", 2, call(1, "a"), at(1)),
    line("received", "server", 2, ask(7), at(100)),
    line("sent", "client", 1, ask(7), at(102)),
    line("received", "client", 1, said(7), at(500)),
    line("sent", "server", 2, said(7), at(501)),
    line("received", "server", 2, result(1, "b"), at(601)),
    line("sent", "client", 1, result(1, "b"), at(603)),
    line("received", "client", 1, call(2, "c"), at(700)),
    line("sent", "client", 1, result(2, "d"), at(740)),
  ]);
  const rounded = messages.filter((one) => one.kind === "request").map((one) => Object.fromEntries(Object.entries(timesOf(one)).map(([name, ms]) => [name, ms === null ? null : Math.round(ms)])));
  assert.deepEqual(rounded, [{ asked: 600, ours: 3, whole: null }, { asked: 398, ours: 3, whole: null }, { asked: null, ours: null, whole: 40 }]);
});
