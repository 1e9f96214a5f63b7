// A host of MCP Apps, made with the official package: `node apps_client.mjs FOLDER LINE TARGET…`, where LINE is that of the
// TypeScript SDK. The newer one finds out the era. Prints what it finds of each tool, and the page that it names.

const [folder, line, ...target] = process.argv.slice(2);
const packages = `${folder}/node_modules`;
const newer = line === "2";
const dist = `${packages}/${newer ? "@modelcontextprotocol/client/dist" : "sdk-1.32/dist/esm/client"}`;
const { Client } = await import(`${dist}/${newer ? "index.mjs" : "index.js"}`);
const { StdioClientTransport } = await import(`${dist}/${newer ? "stdio.mjs" : "stdio.js"}`);
const apps = await import(`${packages}/${newer ? "@modelcontextprotocol/ext-apps" : "ext-apps-1.7"}/dist/src/app-bridge.js`);

const EXTENSION = "io.modelcontextprotocol/ui";
const capabilities = { extensions: { [EXTENSION]: { mimeTypes: [apps.RESOURCE_MIME_TYPE] } } };
const client = new Client({ name: "host", version: "1.0.0" }, { capabilities, versionNegotiation: newer ? { mode: "auto" } : undefined });
await client.connect(new StdioClientTransport({ command: target[0], args: target.slice(1) }));

const report = { declared: client.getServerCapabilities()?.extensions?.[EXTENSION] ?? null, tools: {} };
for (const tool of (await client.listTools()).tools) {
  const found = { said: (await client.callTool({ name: tool.name, arguments: {} })).content[0].text };
  const uri = apps.getToolUiResourceUri(tool);
  if (uri) found.page = { asked: uri, ...(await client.readResource({ uri })).contents[0] };
  report.tools[tool.name] = found;
}
report.listed = (await client.listResources()).resources.map(({ uri, name, mimeType }) => ({ uri, name, mimeType }));
console.log(JSON.stringify(report));
await client.close();
process.exit(0);
