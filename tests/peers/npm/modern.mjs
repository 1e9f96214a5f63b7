// A client of release 2.x of the TypeScript SDK, with the report of `modern.py`:
// `node modern.mjs FOLDER MODE [--url URL | -- SERVER ARG…]`. MODE is a revision that it speaks alone, or `auto`.
//
// It performs the operations that every server of this folder offers, and prints for each its result or its error.
// Which is right is not decided here.

const [folder, mode, kind, ...target] = process.argv.slice(2);
const sdk = await import(`${folder}/node_modules/@modelcontextprotocol/client/dist/index.mjs`);
const { StdioClientTransport } = await import(`${folder}/node_modules/@modelcontextprotocol/client/dist/stdio.mjs`);

const DOCUMENT = "file:///home/user/document.txt";
const LIMIT_MS = 15000;
const CALLS = { echo: { say: "hello" }, weather: {}, failing: {}, ping_client: {}, nonexistent: {} };
const KINDS = new Set(["all", "once", "text", "form", "titled", "multi", "url", "three", "two"]);
const asked = [];
const logged = [];

async function outcome(operation) {
  let timer;
  const limit = new Promise((resolve) => (timer = setTimeout(() => resolve({ timeout: LIMIT_MS / 1000 }), LIMIT_MS)));
  const attempt = operation().catch((error) => {
    if (typeof error.code !== "number") return { raised: `${error.name}: ${error.message}` };
    return { error: { code: error.code, message: error.message } };
  });
  const found = await Promise.race([attempt, limit]);
  clearTimeout(timer);
  return found;
}

const options = {
  capabilities: { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } },
  versionNegotiation: { mode: mode === "auto" ? "auto" : { pin: mode } },
};
const client = new sdk.Client({ name: "typescript", version: "2" }, options);

client.setRequestHandler("roots/list", async () => {
  asked.push("roots/list");
  return { roots: [{ uri: "file:///home/user", name: "home" }] };
});
client.setRequestHandler("sampling/createMessage", async () => {
  asked.push("sampling/createMessage");
  return { role: "assistant", model: "small", content: { type: "text", text: "I say hello" } };
});
client.setRequestHandler("elicitation/create", async ({ params }) => {
  asked.push(`elicitation/create ${params.mode ?? "form"}`);
  if (params.mode === "url") return { action: "accept" };
  const fields = Object.entries(params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(fields.map(([name, { type }]) => [name, type === "array" ? ["r"] : "r"])) };
});
const notes = {
  "notifications/message": (params) => logged.push(params.level),
  "notifications/resources/updated": () => heard.push("ResourceUpdated"),
  "notifications/tools/list_changed": () => heard.push("ToolsListChanged"),
};
for (const [method, take] of Object.entries(notes)) client.setNotificationHandler(method, ({ params }) => void take(params));

const heard = [];
const level = { _meta: { "io.modelcontextprotocol/logLevel": "warning" } };
const call = (name, args, options) => outcome(() => client.callTool({ name, arguments: args, ...(isModern() ? level : {}) }, options));
const isModern = () => client.getNegotiatedProtocolVersion() === "2026-07-28";

async function beAsked(tools, name) {
  const kinds = tools[name]?.inputSchema.properties?.kind?.enum ?? [];
  const found = {};
  for (const kind of kinds.filter((kind) => KINDS.has(kind))) {
    const start = asked.length;
    const answer = await call(name, { kind });
    found[kind] = { asked: asked.slice(start), answer };
  }
  return found;
}

async function callAtOnce() {
  const places = [0, 1, 2, 3, 4];
  const answers = await Promise.all(
    places.map((place) => call("echo", { say: `call ${place}`, delay_s: 0.05 * (5 - place) })),
  );
  return answers.map((answer) => answer.content?.[0].text ?? answer);
}

async function listResources() {
  const found = [];
  let cursor;
  for (let page = 0; page < 5; page += 1) {
    const listed = await outcome(() => client.request({ method: "resources/list", params: cursor ? { cursor } : {} }));
    if (!listed.resources) return listed;
    found.push(...listed.resources.map((resource) => resource.name));
    if (!(cursor = listed.nextCursor)) break;
  }
  return found;
}

async function listen() {
  let subscription;
  if (isModern()) subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [DOCUMENT] });
  else await client.subscribeResource({ uri: DOCUMENT });
  await call("change_lists", {});
  await call("touch", { uri: DOCUMENT });
  for (let turn = 0; turn < 300 && new Set(heard).size < 2; turn += 1) await new Promise((done) => setTimeout(done, 10));
  if (subscription) await subscription.close();
  else await client.unsubscribeResource({ uri: DOCUMENT });
  return [...new Set(heard)].sort();
}

async function count() {
  const seen = [];
  // What comes in one piece with the result is dropped, which on a busy machine may be all of it.
  for (let turn = 0; turn < 10 && !seen.length; turn += 1) {
    await call("slow", { steps: 3 }, { onprogress: ({ progress }) => seen.push(progress) });
  }
  return seen;
}

async function survey() {
  const start = asked.length;
  let answer = await outcome(() => client.getPrompt({ name: "survey" }));
  if (answer.error) answer = await outcome(() => client.getPrompt({ name: "gallery" }));
  return { asked: asked.slice(start), answer };
}

async function tour() {
  const listed = await outcome(() => client.listTools());
  const tools = Object.fromEntries((listed.tools ?? []).map((tool) => [tool.name, tool]));
  const report = {
    revision: client.getNegotiatedProtocolVersion(),
    introduced: { capabilities: client.getServerCapabilities(), name: client.getServerVersion()?.name },
    tools: Object.keys(tools).sort(),
    calls: {},
    asked: {},
  };
  for (const [name, args] of Object.entries(CALLS)) report.calls[name] = await call(name, args);
  report["at once"] = await callAtOnce();
  for (const name of ["ask_roots", "ask_sampling", "ask_user"]) report.asked[name] = await beAsked(tools, name);
  report.resources = await listResources();
  report.read = await outcome(() => client.readResource({ uri: DOCUMENT }));
  report.nowhere = await outcome(() => client.readResource({ uri: "file:///nowhere" }));
  report.prompt = await outcome(() => client.getPrompt({ name: "greet", arguments: { who: "Ada" } }));
  report.survey = await survey();
  report.heard = await outcome(listen);
  report.progress = await count();
  if (!isModern()) await outcome(() => client.setLoggingLevel("warning"));
  await call("logs", {});
  report.logged = logged;
  report.saw = await call("server_saw", {});
  return report;
}

const transport =
  kind === "--url" ? new sdk.StreamableHTTPClientTransport(new URL(target[0])) : new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: "inherit" });
await client.connect(transport);
console.log(JSON.stringify(await tour()));
await client.close().catch(() => {});
process.exit(0);
