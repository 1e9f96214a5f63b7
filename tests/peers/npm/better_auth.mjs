// An authorization server of better-auth, and a server of the TypeScript SDK that takes its tokens:
// `node better_auth.mjs FOLDER FOLDER [URL]`. Says and takes the same lines as `authorization.mjs`, and gives tokens for
// another server at URL, too.

import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [folder, , guarded] = process.argv.slice(2);
const modules = `${folder}/node_modules`;
const sdk = `${modules}/sdk-1.32/dist/esm/server`;
const { betterAuth } = await import(`${modules}/better-auth/dist/index.mjs`);
const { jwt } = await import(`${modules}/better-auth/dist/plugins/index.mjs`);
const { memoryAdapter } = await import(`${modules}/@better-auth/memory-adapter/dist/index.mjs`);
const { oauthProvider } = await import(`${modules}/@better-auth/oauth-provider/dist/index.mjs`);
const { toNodeHandler } = await import(`${modules}/better-auth/dist/integrations/node.mjs`);
const { createLocalJWKSet, jwtVerify } = await import(`${modules}/jose/dist/webapi/index.js`);
const { default: express } = await import(`${modules}/express/index.js`);
const { McpServer } = await import(`${sdk}/mcp.js`);
const { StreamableHTTPServerTransport } = await import(`${sdk}/streamableHttp.js`);
const { requireBearerAuth } = await import(`${sdk}/auth/middleware/bearerAuth.js`);
const { InvalidTokenError } = await import(`${sdk}/auth/errors.js`);

console.info = console.warn = console.error; // where its warnings go
const say = (event) => console.log(JSON.stringify(event));
const web = createServer();
const origin = await new Promise((done) =>
  web.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${web.address().port}`)),
);
const [issuer, resource] = [`${origin}/api/auth`, `${origin}/mcp`];
const database = {};
for (const model of ["user", "session", "account", "verification", "jwks"]) database[model] = [];
for (const model of ["Client", "Resource", "ClientResource", "AccessToken", "RefreshToken", "Consent", "ClientAssertion"])
  database[`oauth${model}`] = [];

const auth = betterAuth({
  baseURL: origin,
  secret: "a secret of forty characters, or of more",
  database: memoryAdapter(database),
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { disabled: true },
  disabledPaths: ["/token"],
  plugins: [
    jwt(),
    oauthProvider({
      loginPage: "/login",
      consentPage: "/consent",
      scopes: ["tools", "offline_access"],
      resources: guarded ? [resource, guarded] : [resource],
      allowDynamicClientRegistration: true,
      allowUnauthenticatedClientRegistration: true,
      clientRegistrationDefaultResources: guarded ? [resource, guarded] : [resource],
      silenceWarnings: { oauthAuthServerConfig: true, openidConfig: true },
    }),
  ],
});
const ann = { email: "ann@example.com", password: "hers and long enough", name: "Ann" };
await auth.api.signUpEmail({ body: ann });

const app = express();
app.get("/login", async (request, answer) => {
  const { headers } = await auth.api.signInEmail({ body: ann, returnHeaders: true });
  answer.set("set-cookie", headers.getSetCookie());
  answer.redirect(`${issuer}/oauth2/authorize${request.originalUrl.slice("/login".length)}`);
});
app.get("/consent", async (request, answer) => {
  const said = await fetch(`${issuer}/oauth2/consent`, {
    method: "POST",
    headers: { "content-type": "application/json", cookie: request.get("cookie"), origin },
    body: JSON.stringify({ accept: true, oauth_query: request.originalUrl.split("?")[1] }),
  });
  answer.redirect((await said.json()).url);
});
app.get("/.well-known/oauth-authorization-server/api/auth", async (request, answer) =>
  answer.json(await auth.api.getOAuthServerConfig()),
);
app.get("/.well-known/oauth-protected-resource/mcp", (request, answer) =>
  answer.json({ resource, authorization_servers: [issuer], scopes_supported: ["tools"] }),
);

const given = new Set();
const kinds = { "/oauth2/register": "register", "/oauth2/revoke": "end refresh_token", "/oauth2/token": "token" };
const handle = toNodeHandler(auth);
app.use("/api/auth", (request, answer) => {
  const kind = kinds[request.path];
  const [asked, said, write] = [[], [], answer.write.bind(answer)];
  if (kind === "token") request.on("data", (part) => asked.push(part));
  answer.write = (part, ...more) => (said.push(Buffer.from(part)), write(part, ...more));
  answer.on("finish", () => {
    if (!kind || answer.statusCode >= 300) return;
    const form = new URLSearchParams(Buffer.concat(asked).toString());
    if (kind === "token") given.add(JSON.parse(Buffer.concat(said)).access_token);
    say(kind === "token" ? { did: form.get("grant_type"), resource: form.get("resource") } : { did: kind });
  });
  return handle(request, answer);
});

const verifier = {
  verifyAccessToken: async (token) => {
    if (!given.has(token)) throw new InvalidTokenError("No such token");
    const { payload } = await jwtVerify(token, createLocalJWKSet(await auth.api.getJwks()), { audience: resource });
    return { token, clientId: payload.azp, scopes: payload.scope.split(" "), expiresAt: payload.exp };
  },
};
app.use(express.json());
app.use("/mcp", (request, answer, next) => {
  const resourceMetadataUrl = `${origin}/.well-known/oauth-protected-resource/mcp`;
  return requireBearerAuth({ verifier, requiredScopes: ["tools"], resourceMetadataUrl })(request, answer, next);
});
app.all("/mcp", async (request, answer) => {
  const server = new McpServer({ name: "guarded", version: "1" });
  server.registerTool("read", {}, () => ({ content: [{ type: "text", text: `read by ${request.auth.clientId}` }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, answer, request.body);
});
web.on("request", app);

createInterface({ input: process.stdin }).on("line", (line) => {
  if (line === "end" || line === "expire") given.clear();
  if (line === "expire") database.oauthRefreshToken.length = 0;
  if (line === "forget") database.oauthClient.length = 0;
  say({ did: line });
});
say({ issuer, url: resource });
