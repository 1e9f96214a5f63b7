// A server of MCP Apps, made with the official package: `node apps_server.mjs FOLDER LINE NAME`.
//
// LINE is that of the TypeScript SDK, 1 or 2, each with the package that is made for it. Its page says NAME, so that it is seen
// whose page a client reads; the tool `told` says what the client has declared of the extension.

const [folder, line, name] = process.argv.slice(2);
const packages = `${folder}/node_modules`;
const newer = line === "2";
const sdk = newer
  ? await import(`${packages}/@modelcontextprotocol/server/dist/index.mjs`)
  : await import(`${packages}/sdk-1.32/dist/esm/server/mcp.js`);
const { serveStdio, StdioServerTransport } = newer
  ? await import(`${packages}/@modelcontextprotocol/server/dist/stdio.mjs`)
  : await import(`${packages}/sdk-1.32/dist/esm/server/stdio.js`);
const apps = await import(`${packages}/${newer ? "@modelcontextprotocol/ext-apps" : "ext-apps-1.7"}/dist/src/server/index.js`);

const PAGE = "ui://weather/dash";
const text = (said) => ({ content: [{ type: "text", text: said }] });

function make() {
  const extensions = { [apps.EXTENSION_ID]: { mimeTypes: [apps.RESOURCE_MIME_TYPE] } };
  const server = new sdk.McpServer({ name, version: "1.0.0" }, { capabilities: { extensions } });
  const meta = { ui: { resourceUri: PAGE } };
  apps.registerAppTool(server, "dash", { description: `The weather, from ${name}`, _meta: meta }, async () => text(`sunny, says ${name}`));
  const csp = { connectDomains: [`https://${name}.example.com`] };
  apps.registerAppResource(server, "Dashboard", PAGE, { description: "A page" }, async () => ({
    contents: [{ uri: PAGE, mimeType: apps.RESOURCE_MIME_TYPE, text: `<p>${name}</p>`, _meta: { ui: { csp, prefersBorder: true } } }],
  }));
  server.registerTool("told", { description: "What the client declares" }, async (context) => {
    const declared = context.mcpReq?.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? server.server.getClientCapabilities();
    return text(JSON.stringify(apps.getUiCapability(declared) ?? null));
  });
  return server;
}

if (newer) await serveStdio(make);
else await make().connect(new StdioServerTransport());
