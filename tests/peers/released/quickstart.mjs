// The server that everybody writes first, under either line of the TypeScript SDK: `node quickstart.mjs FOLDER LINE`, where
// LINE is 1 or 2.

const [folder, line] = process.argv.slice(2);
const packages = `${folder}/node_modules`;
const { z } = await import(`${packages}/zod/index.js`);

async function load() {
  if (line === "1") {
    const { McpServer, ResourceTemplate } = await import(`${packages}/sdk-1.32/dist/esm/server/mcp.js`);
    const { StdioServerTransport } = await import(`${packages}/sdk-1.32/dist/esm/server/stdio.js`);
    return { McpServer, ResourceTemplate, run: (make) => make().connect(new StdioServerTransport()) };
  }
  const dist = `${packages}/@modelcontextprotocol/server/dist`;
  const { serveStdio } = await import(`${dist}/stdio.mjs`);
  return { ...(await import(`${dist}/index.mjs`)), run: serveStdio };
}

const { McpServer, ResourceTemplate, run } = await load();

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

await run(make);
