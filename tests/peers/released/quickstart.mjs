// The server that everybody writes first, under either line of the TypeScript SDK:
// `node quickstart.mjs FOLDER LINE [--listen PORT]`, where LINE is 1 or 2. Three of its tools ask: see `quickstart.py`.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { byFetch } from "../npm/fetching.mjs";

const [folder, line, listens, port] = process.argv.slice(2);
const packages = `${folder}/node_modules`;
const { z } = await import(`${packages}/zod/index.js`);

async function load() {
  if (line === "1") {
    const { McpServer, ResourceTemplate } = await import(`${packages}/sdk-1.32/dist/esm/server/mcp.js`);
    const { StdioServerTransport } = await import(`${packages}/sdk-1.32/dist/esm/server/stdio.js`);
    const { StreamableHTTPServerTransport } = await import(`${packages}/sdk-1.32/dist/esm/server/streamableHttp.js`);
    const run = (make) => make().connect(new StdioServerTransport());
    return { McpServer, ResourceTemplate, run, answerer: (make) => bySession(make, StreamableHTTPServerTransport) };
  }
  const dist = `${packages}/@modelcontextprotocol/server/dist`;
  const { serveStdio } = await import(`${dist}/stdio.mjs`);
  const sdk = await import(`${dist}/index.mjs`);
  return { ...sdk, run: serveStdio, answerer: (make) => byFetch(sdk.createMcpHandler(make)) };
}

// A transport for each session, as the documentation of release 1.x shows it.
function bySession(make, Transport) {
  const sessions = new Map();
  return async (incoming, outgoing) => {
    const known = sessions.get(incoming.headers["mcp-session-id"]);
    if (known) return known.handleRequest(incoming, outgoing);
    const transport = new Transport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await make().connect(transport);
    return transport.handleRequest(incoming, outgoing);
  };
}

const { McpServer, ResourceTemplate, inputRequired, run, answerer } = await load();

function make() {
  const server = new McpServer({ name: "quickstart", version: "1.0.0" });
  const text = (said) => [{ type: "text", text: said }];
  const numbers = z.object({ a: z.number(), b: z.number() });
  const shape = (schema) => (line === "1" ? schema.shape : schema);
  server.registerTool("add", { description: "Add two numbers", inputSchema: shape(numbers) }, async ({ a, b }) => ({
    content: text(String(a + b)),
  }));
  const sky = z.object({ degrees: z.number() });
  server.registerTool("weather", { title: "Weather", inputSchema: shape(z.object({ city: z.string() })), outputSchema: shape(sky) }, async () => ({
    content: text('{"degrees":21.5}'),
    structuredContent: { degrees: 21.5 },
  }));
  server.registerTool("fail", { description: "Fail" }, async () => {
    throw new Error("on purpose");
  });
  const color = { type: "object", properties: { color: { type: "string" } } };
  const said = ({ action, content }) => ({ content: text(`${action}: ${content.color}`) });
  server.registerTool("confirm", { description: "Ask the person" }, async () =>
    said(await server.server.elicitInput({ message: "Which color?", requestedSchema: color })),
  );
  server.registerTool("summarize", { description: "Ask the model" }, async () => {
    const messages = [{ role: "user", content: { type: "text", text: "Say hello" } }];
    const answer = await server.server.createMessage({ messages, maxTokens: 10 });
    return { content: text(answer.content.text) };
  });
  if (line === "2")
    server.registerTool("choose", { description: "Answer with the question" }, async (context) => {
      const answer = context.mcpReq.inputResponses?.color;
      if (answer) return said(answer);
      return inputRequired({ inputRequests: { color: inputRequired.elicit({ message: "Which color?", requestedSchema: color }) } });
    });
  server.registerResource("config", "config://app", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, text: "debug = false" }],
  }));
  const template = new ResourceTemplate("greeting://{name}", { list: undefined });
  server.registerResource("greeting", template, {}, async (uri, { name }) => ({ contents: [{ uri: uri.href, text: `Hello, ${name}!` }] }));
  const asked = { description: "Ask for a review", argsSchema: shape(z.object({ code: z.string() })) };
  server.registerPrompt("review", asked, ({ code }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Please review this code:\n\n${code}` } }],
  }));
  return server;
}

if (listens) createServer(answerer(make)).listen(Number(port), "127.0.0.1");
else await run(make);
