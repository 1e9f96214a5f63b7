// A strict MCP client, the same program under two releases of the TypeScript SDK, with the report of `client.py`:
// `node client.mjs FOLDER PACKAGE [--record FILE] [--over HOW] [--settle S] [--servers JSON] -- SERVER ARG… | URL`.
//
// FOLDER is where the packages are installed. With `--servers` it visits those behind a router, as `among.py` does. An operation's outcome is {"result": …}, {"error": {code, message, data}},
// {"raised": …} when the SDK could not take the answer, or {"timeout": seconds}. What is right is not decided here.

import { appendFileSync } from "node:fs";

const [folder, release, ...options] = process.argv.slice(2);
const separator = options.indexOf("--");
const target = options.slice(separator + 1);
const option = (name, otherwise) => {
  const place = options.slice(0, separator).indexOf(name);
  return place < 0 ? otherwise : options[place + 1];
};
const load = (file) => import(`${folder}/node_modules/${release}/dist/esm/${file}.js`);
const types = await load("types");
const { Client } = await load("client/index");

const REVISION = types.LATEST_PROTOCOL_VERSION;
const NEWEST = REVISION >= "2025-11-25";
const LIMIT_S = 15;
let settleMs = Number(option("--settle", "0")) * 1000;
const TEXT_URI = "file:///home/user/document.txt";
const CALLS = {
  echo: { say: "hello", delay_s: 0 }, image: {}, sound: {}, weather: {}, bare_structure: {}, links: {}, embedded: {},
  failing: {}, ping_client: {}, gated: {}, nonexistent: {},
};
const READS = {
  document: TEXT_URI, api: "https://example.com/api/resource", unique: "custom://unique-id-12345",
  pixel: "file:///home/user/pixel.png", nowhere: "file:///nowhere",
};

const report = { release, revision: REVISION };
const notifications = [];
const asked = [];
const stray = [];
const raw = {};
let offered = {};
let server = ""; // behind a router: whose turn it is
const named = (name) => (server ? `${server}_${name}` : name);
const located = (uri) => (server ? `${server.toLowerCase()}+${uri}` : uri);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// For what may come on another stream than an answer, and later.
async function settle(isOver, limitMs = settleMs) {
  for (const end = Date.now() + limitMs; !isOver() && Date.now() < end; ) await pause(10);
}

async function outcome(operation, limitS = LIMIT_S) {
  let timer;
  const limit = new Promise((resolve) => (timer = setTimeout(() => resolve({ timeout: limitS }), limitS * 1000)));
  const attempt = operation().then(
    (result) => ({ result }),
    (error) => {
      if (typeof error.code !== "number") return { raised: `${error.name}: ${error.message}` };
      const message = error.message.replace(`MCP error ${error.code}: `, "");
      return { error: { code: error.code, message, ...(error.data === undefined ? {} : { data: error.data }) } };
    },
  );
  const found = await Promise.race([attempt, limit]);
  clearTimeout(timer);
  return found;
}

// What the server starts

function answerSampling({ params }) {
  asked.push(params);
  const said = JSON.stringify(params);
  let content = { type: "text", text: "I say hello" };
  if (said.includes('"sing"')) content = { type: "audio", data: "UklGRg==", mimeType: "audio/wav" };
  else if (said.includes('"two blocks"') && NEWEST)
    content = ["first", "second"].map((text) => ({ type: "text", text }));
  return { role: "assistant", content, model: "peer-model", stopReason: "endTurn" };
}

function answerForm({ params }) {
  asked.push(params);
  const fields = Object.entries(params.requestedSchema?.properties ?? {});
  const content = Object.fromEntries(fields.map(([name, schema]) => [name, schema.type === "array" ? ["r"] : "r"]));
  return fields.length ? { action: "accept", content } : { action: "accept" };
}

function answerRoots() {
  asked.push("roots");
  return { roots: [{ uri: "file:///home/user", name: "home" }] };
}

// What the client starts

const client = new Client(
  { name: "typescript", version: "1" },
  {
    capabilities: {
      roots: { listChanged: true },
      sampling: NEWEST ? { tools: {} } : {},
      elicitation: NEWEST ? { form: {}, url: {} } : {},
    },
  },
);
const request = (method, params, result) =>
  outcome(() => client.request(params === null ? { method } : { method, params }, types[`${result}Schema`]));

async function call(name, args) {
  if (!(name in offered) && name !== "nonexistent") return { absent: `${name} is not in tools/list` };
  return await outcome(() => client.callTool({ name: named(name), arguments: args }));
}

async function told(name, args, areAll = () => true) {
  const start = notifications.length;
  await call(name, args);
  // A router tells of each kind of list twice a second at most.
  const limitMs = server && name === "change_lists" ? LIMIT_S * 1000 : settleMs;
  await settle(() => areAll(notifications.slice(start)), limitMs);
  return notifications.slice(start);
}

async function serverSaw(limitS = LIMIT_S, isRight = () => true) {
  for (const end = Date.now() + limitS * 1000; ; await pause(10)) {
    const found = await outcome(() => client.callTool({ name: named("server_saw"), arguments: {} }), limitS);
    const seen = found.result ? JSON.parse(found.result.content[0].text) : found;
    if (isRight(seen) || Date.now() > end) return seen;
  }
}

async function listTools() {
  const listed = await outcome(() => client.listTools());
  const own = named("");
  const tools = (listed.result?.tools ?? []).filter((tool) => tool.name.startsWith(own));
  offered = Object.fromEntries(tools.map((tool) => [tool.name.slice(own.length), tool]));
  return listed.result ? offered : listed;
}

async function beAsked() {
  const found = {};
  for (const name of ["ask_roots", "ask_sampling", "ask_user"]) {
    found[name] = {};
    for (const kind of offered[name]?.inputSchema.properties.kind.enum ?? []) {
      const start = asked.length;
      const answer = await call(name, { kind });
      const read = answer.result ? { answer: JSON.parse(answer.result.content[0].text) } : answer;
      found[name][kind] = { asked: asked.slice(start), ...read };
    }
  }
  return found;
}

async function callAtOnce() {
  const one = (place) => call("echo", { say: `call ${place}`, delay_s: 0.05 * (5 - place) });
  const answers = await Promise.all([0, 1, 2, 3, 4].map(one));
  return answers.map((answer) => answer.result?.content[0].text ?? answer);
}

async function listResources() {
  const pages = [];
  for (let cursor = null; cursor !== undefined && pages.length < 5; ) {
    const page = await request("resources/list", cursor === null ? null : { cursor }, "ListResourcesResult");
    pages.push(page);
    cursor = page.result?.nextCursor;
  }
  return pages;
}

async function readResources() {
  const found = {};
  for (const [name, uri] of Object.entries(READS))
    found[name] = await request("resources/read", { uri: located(uri) }, "ReadResourceResult");
  return found;
}

async function watchResource() {
  const touched = (least = 0) => told("touch", { uri: TEXT_URI }, (notes) => notes.length >= least);
  const before = await touched();
  const subscribe = await request("resources/subscribe", { uri: located(TEXT_URI) }, "EmptyResult");
  const during = await touched(1);
  const unsubscribe = await request("resources/unsubscribe", { uri: located(TEXT_URI) }, "EmptyResult");
  return { before, subscribe, during, unsubscribe, after: await touched() };
}

async function getPrompts() {
  const prompt = (params) => request("prompts/get", { ...params, name: named(params.name) }, "GetPromptResult");
  return {
    list: await request("prompts/list", null, "ListPromptsResult"),
    greet: await prompt({ name: "greet", arguments: { who: "Ada" } }),
    gallery: await prompt({ name: "gallery" }),
    survey: await prompt({ name: "survey" }),
    nonexistent: await prompt({ name: "nonexistent" }),
  };
}

async function complete() {
  const prompt = { ref: { type: "ref/prompt", name: named("greet") }, argument: { name: "who", value: "A" } };
  const template = { ref: { type: "ref/resource", uri: located("weather://{city}") }, argument: { name: "city", value: "P" } };
  return {
    prompt: await request("completion/complete", { ...prompt, context: { arguments: { mood: "good" } } }, "CompleteResult"),
    template: await request("completion/complete", template, "CompleteResult"),
  };
}

async function setLevels() {
  const seen = {};
  for (const level of ["warning", "debug"]) {
    seen[`set_${level}`] = await request("logging/setLevel", { level }, "EmptyResult");
    const isLast = (note) => note.params?.level === "emergency";
    seen[level] = (await told("logs", {}, (notes) => notes.some(isLast))).map((note) => note.params);
  }
  return seen;
}

async function followProgress() {
  const start = notifications.length;
  const params = { name: named("slow"), arguments: { steps: 3 }, _meta: { progressToken: "token-1" } };
  const found = await request("tools/call", params, "CallToolResult");
  await settle(() => notifications.length >= start + 3);
  return { ...found, progress: notifications.slice(start).map((note) => note.params) };
}

async function cancel() {
  const stop = new AbortController();
  const params = { name: named("slow"), arguments: { steps: 500 }, _meta: { progressToken: 77 } };
  const start = notifications.length;
  const running = outcome(
    () => client.request({ method: "tools/call", params }, types.CallToolResultSchema, { signal: stop.signal }), 3,
  );
  await settle(() => notifications.length > start, LIMIT_S * 1000);
  stop.abort("changed my mind");
  // The SDK does not wait for the server to have stopped. Some servers end over it, and at the next line they read.
  const isRight = ({ cancelled }) => cancelled !== 0 && cancelled?.length !== 0; // some count, some keep a list
  const afterwards = () => serverSaw(1.5, isRight);
  const found = { call: await running, afterwards: await afterwards() };
  return found.afterwards.timeout ? { ...found, afterwards: await afterwards() } : found;
}

async function visit() {
  report.initialize = { result: raw.initialize };
  report.ping = await outcome(() => client.ping());
  await client.sendRootsListChanged();
  const behind = Object.entries(JSON.parse(option("--servers", `{"": ${settleMs / 1000}}`)));
  const reportOf = (name) => (name ? (report[name] ??= {}) : report);
  for (const [name, seconds] of behind) {
    [server, settleMs] = [name, seconds * 1000];
    await goRound(reportOf(name));
  }
  for ([server] of behind) reportOf(server).cancel = await cancel();
}

async function goRound(report) {
  report.tools = await listTools();
  report.server_saw = await serverSaw(LIMIT_S, (seen) => seen.roots_changes !== 0);
  report.offered = Object.keys(offered);
  report.calls = {};
  for (const [name, args] of Object.entries(CALLS)) report.calls[name] = await call(name, args);
  report.asks = await beAsked();
  report.at_once = await callAtOnce();
  report.pages = await listResources();
  report.templates = await request("resources/templates/list", null, "ListResourceTemplatesResult");
  report.reads = await readResources();
  report.watch = await watchResource();
  report.lists = (await told("change_lists", {}, (notes) => notes.length >= 3)).map((note) => note.method);
  report.prompts = await getPrompts();
  report.complete = await complete();
  report.levels = await setLevels();
  report.progress = await followProgress();
  report.stray = [...stray];
}

async function open() {
  const over = option("--over", "stdio");
  if (over === "stdio") {
    const { StdioClientTransport } = await load("client/stdio");
    return new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env, stderr: "ignore" });
  }
  const [file, name] = { http: ["streamableHttp", "StreamableHTTP"], sse: ["sse", "SSE"], ws: ["websocket", "WebSocket"] }[over];
  return new (await load(`client/${file}`))[`${name}ClientTransport`](new URL(target[0]));
}

function record(transport) {
  const file = option("--record");
  const note = (entry) => file && appendFileSync(file, `${JSON.stringify(entry)}\n`);
  note({ pid: process.pid });
  const send = transport.send.bind(transport);
  transport.send = (frame, ...more) => (note({ sent: frame }), send(frame, ...more));
  // The SDK sets its own handler when it connects; ours is put before it.
  let taker;
  Object.defineProperty(transport, "onmessage", {
    get: () => taker,
    set: (handler) => {
      taker = (frame, ...more) => {
        raw.initialize ??= frame.result;
        note({ got: frame });
        handler(frame, ...more);
      };
    },
  });
  return transport;
}

client.onerror = (error) => stray.push(`${error.name}: ${error.message}`);
client.fallbackNotificationHandler = async (note) => void notifications.push(note);
client.setNotificationHandler(types.ProgressNotificationSchema, (note) => void notifications.push(note));
client.setRequestHandler(types.CreateMessageRequestSchema, answerSampling);
client.setRequestHandler(types.ElicitRequestSchema, answerForm);
client.setRequestHandler(types.ListRootsRequestSchema, answerRoots);
const opened = await outcome(async () => client.connect(record(await open())));
if (opened.error || opened.raised || opened.timeout) report.initialize = opened;
else if (raw.initialize.protocolVersion !== REVISION) report.initialize = { raised: "Unsupported protocol version" };
else await visit().catch((error) => (report.crashed = `${error.name}: ${error.message}`));
console.log(JSON.stringify(report));
process.exit(0);
