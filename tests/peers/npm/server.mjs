// A server of release 2.x of the TypeScript SDK that does what `stateless.py` does:
// `node server.mjs FOLDER LEGACY [--listen]`. LEGACY says what becomes of clients with a handshake: `reject` or `serve`.

import { createServer } from "node:http";
import { byFetch } from "./fetching.mjs";

const [folder, legacy, listens] = process.argv.slice(2);
const sdk = await import(`${folder}/node_modules/@modelcontextprotocol/server/dist/index.mjs`);
const { serveStdio } = await import(`${folder}/node_modules/@modelcontextprotocol/server/dist/stdio.mjs`);

const DOCUMENT = "file:///home/user/document.txt";
const form = (message) => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: { type: "object", properties: { color: { type: "string" } } } },
});
const roots = { method: "roots/list", params: {} };
const messages = [{ role: "user", content: { type: "text", text: "Say hello" } }];
const completion = { method: "sampling/createMessage", params: { messages, maxTokens: 20, systemPrompt: "Be kind" } };

// The rounds of each tool that asks, by kind: what is asked in each.
const QUESTIONS = {
  ask_roots: { once: [{ roots }] },
  ask_sampling: { text: [{ model: completion }] },
  ask_user: {
    form: [{ color: form("Which color?") }],
    three: [0, 1, 2].map((number) => ({ [`color${number}`]: form(`Which color, number ${number}?`) })),
    two: [{ color: form("Which color?"), roots }],
  },
};
const text = (said, more) => ({ content: [{ type: "text", text: said }], ...more });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function ask(context, rounds) {
  const said = context.mcpReq.requestState();
  const state = said ? JSON.parse(said) : { round: 0, answers: {} };
  if (said) Object.assign(state.answers, context.mcpReq.inputResponses);
  if (state.round === rounds.length) return JSON.stringify(state.answers);
  return sdk.inputRequired({
    inputRequests: rounds[state.round],
    requestState: JSON.stringify({ ...state, round: state.round + 1 }),
  });
}

const buses = new Set();
const publish = (event) => buses.forEach((tell) => tell(event));
let cancelled = 0;

const RUN = {
  echo: async ({ say, delay_s = 0 }) => {
    await pause(delay_s * 1000);
    return text(`you said ${say}`);
  },
  weather: async () => text('{"degrees": 21}', { structuredContent: { degrees: 21 } }),
  failing: async () => text("it broke", { isError: true }),
  slow: async ({ steps }, context, params) => {
    const progressToken = params._meta?.progressToken ?? context.mcpReq._meta?.progressToken;
    for (let step = 1; step <= steps && !context.mcpReq.signal.aborted; step += 1) {
      const told = { progressToken, progress: step, total: steps, message: `step ${step}` };
      if (progressToken !== undefined) await context.mcpReq.notify({ method: "notifications/progress", params: told });
      await pause(20);
    }
    if (context.mcpReq.signal.aborted) cancelled += 1;
    return text("done");
  },
  logs: async (given, context) => {
    for (const level of ["debug", "warning", "error", "emergency"]) await context.mcpReq.log(level, { at: level }, "peer");
    return text("logged");
  },
  touch: async ({ uri }) => (publish({ kind: "touch", uri }), text("touched")),
  change_lists: async () => (publish({ kind: "lists" }), text("changed")),
  server_saw: async () => text(JSON.stringify({ cancelled })),
};

function make() {
  const capabilities = {
    tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: { listChanged: true },
    logging: {}, completions: {},
  };
  const about = { name: "typescript", version: "1.2.3" };
  const server = new sdk.Server(about, { capabilities, instructions: "Be kind" });
  const take = (method, handle) => server.setRequestHandler(method, async (request, context) => handle(request.params ?? {}, context));
  const asks = (name) => ({ kind: { type: "string", enum: Object.keys(QUESTIONS[name]) } });
  const properties = { echo: { say: { type: "string" }, delay_s: { type: "number" } } };
  take("tools/list", () => ({
    tools: [...Object.keys(RUN), ...Object.keys(QUESTIONS)].map((name) => ({
      name,
      title: `About ${name}`,
      inputSchema: { type: "object", properties: QUESTIONS[name] ? asks(name) : (properties[name] ?? {}) },
    })),
  }));
  take("tools/call", async (params, context) => {
    const { name, arguments: given = {} } = params;
    if (QUESTIONS[name]) {
      const said = ask(context, QUESTIONS[name][given.kind]);
      return typeof said === "string" ? text(said) : said;
    }
    if (!RUN[name]) throw new sdk.ProtocolError(-32602, `Unknown tool: ${name}`);
    return RUN[name](given, context, params);
  });
  take("resources/list", () => ({ resources: [{ uri: DOCUMENT, name: "document.txt" }, { uri: "custom://unique", name: "unique" }] }));
  take("resources/templates/list", () => ({ resourceTemplates: [{ name: "by-city", uriTemplate: "weather://{city}" }] }));
  take("resources/read", ({ uri }) => {
    if (uri !== DOCUMENT) throw new sdk.ProtocolError(-32602, "Resource not found", { uri });
    return { contents: [{ uri, mimeType: "text/plain", text: "Once upon a time" }] };
  });
  take("prompts/list", () => ({
    prompts: [{ name: "greet", arguments: [{ name: "who", required: true }] }, { name: "gallery", description: "It asks first" }],
  }));
  take("prompts/get", ({ name, arguments: given }, context) => {
    const said = name === "gallery" ? ask(context, [{ color: form("Which color?") }]) : `Hello ${given.who}`;
    return typeof said === "string" ? { messages: [{ role: "user", content: { type: "text", text: said } }] } : said;
  });
  take("completion/complete", ({ argument }) => ({ completion: { values: [`${argument.value}-one`] } }));
  return server;
}

if (!listens) {
  const tell = new Set();
  serveStdio(() => {
    const server = make();
    tell.add(server);
    return server;
  }, { legacy });
  buses.add(({ kind, uri }) => {
    for (const server of tell) {
      if (kind === "touch") void server.sendResourceUpdated({ uri }).catch(() => {});
      else for (const name of ["Tool", "Prompt", "Resource"]) void server[`send${name}ListChanged`]().catch(() => {});
    }
  });
} else {
  const handler = sdk.createMcpHandler(make, { legacy: legacy === "serve" ? "stateless" : legacy });
  buses.add(({ kind, uri }) => {
    if (kind === "touch") handler.notify.resourceUpdated(uri);
    else for (const name of ["tools", "prompts", "resources"]) handler.notify[`${name}Changed`]();
  });
  const http = createServer(byFetch(handler));
  http.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${http.address().port}`));
}
