// A client as people write it, with the default settings of its SDK, and the report of `client.py`:
// `node client.mjs FOLDER KIND PLAN TARGET…`. KIND is `typescript-1` or `typescript-2`, which opens with a handshake unless
// it is told otherwise, `typescript-2-auto`, which finds out the era, or `typescript-2-pinned`, for 2026-07-28 alone.

const [folder, kind, said, ...target] = process.argv.slice(2);
const plan = JSON.parse(said);
const OPEN_MS = 45000;
const OPERATION_MS = 20000;
const MODES = { "typescript-2-auto": "auto", "typescript-2-pinned": { pin: "2026-07-28" } };

async function load() {
  const packages = `${folder}/node_modules`;
  if (kind === "typescript-1") {
    const parts = ["index", "stdio", "streamableHttp"].map((part) => import(`${packages}/sdk-1.32/dist/esm/client/${part}.js`));
    return Object.assign({}, ...(await Promise.all(parts)));
  }
  const dist = `${packages}/@modelcontextprotocol/client/dist`;
  return { ...(await import(`${dist}/index.mjs`)), ...(await import(`${dist}/stdio.mjs`)) };
}

async function outcome(operation, limit = OPERATION_MS) {
  let timer;
  const over = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`nothing after ${limit} ms`)), limit)));
  try {
    return { result: await Promise.race([operation(), over]) };
  } catch (error) {
    return { raised: `${error.name}: ${error.message}`.slice(0, 1000) };
  } finally {
    clearTimeout(timer);
  }
}

async function schemas() {
  const types = await import(`${folder}/node_modules/sdk-1.32/dist/esm/types.js`);
  return [types.ElicitRequestSchema, types.CreateMessageRequestSchema];
}

const sdk = await load();
const options = {
  ...(kind in MODES ? { versionNegotiation: { mode: MODES[kind] } } : {}),
  ...(plan.asks ? { capabilities: { elicitation: { form: {} }, sampling: {} } } : {}),
};
const client = new sdk.Client({ name: kind, version: "1.0.0" }, options);
if (plan.asks) {
  const [person, model] = kind === "typescript-1" ? await schemas() : ["elicitation/create", "sampling/createMessage"];
  client.setRequestHandler(person, async () => ({ action: "accept", content: { color: "red" } }));
  client.setRequestHandler(model, async () => ({ role: "assistant", content: { type: "text", text: "hello" }, model: "tiny" }));
}
const transport = target[0].startsWith("http")
  ? new sdk.StreamableHTTPClientTransport(new URL(target[0]))
  : new sdk.StdioClientTransport({ command: target[0], args: target.slice(1) });

const report = {};
report.open = await outcome(async () => {
  await client.connect(transport);
  const revision = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
  return { name: client.getServerVersion()?.name, capabilities: client.getServerCapabilities() ?? {}, revision };
}, OPEN_MS);
if (report.open.result) {
  report["list tools"] = await outcome(() => client.listTools());
  report["list prompts"] = await outcome(() => client.listPrompts());
  report["list resources"] = await outcome(() => client.listResources());
  report["list resource templates"] = await outcome(() => client.listResourceTemplates());
  for (const [name, args] of Object.entries(plan.calls ?? {}))
    report[`call ${name}`] = await outcome(() => client.callTool({ name, arguments: args }));
  for (const [name, args] of Object.entries(plan.prompts ?? {}))
    report[`get ${name}`] = await outcome(() => client.getPrompt({ name, arguments: args }));
  for (const uri of plan.reads ?? []) report[`read ${uri}`] = await outcome(() => client.readResource({ uri }));
}
await new Promise((written) => process.stdout.write(`${JSON.stringify(report)}\n`, written));
await Promise.race([client.close().catch(() => {}), new Promise((resolve) => setTimeout(resolve, 5000))]);
process.exit(0);
