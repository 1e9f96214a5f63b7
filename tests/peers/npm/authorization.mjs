// An authorization server that others wrote, `oidc-provider`, and a server of the TypeScript SDK that takes its tokens:
// `node authorization.mjs FOLDER KEYS [URL FORMAT]`. KEYS is a folder for the secret and the key of clients that it
// knows. It gives tokens for another server at URL, too: `jwt` ones or `opaque` ones.
//
// Its first line says where both are; each further line is something that the authorization server did. A line `end` on
// its stdin ends every access token that has been given so far, `expire` every refresh token, too, and `forget` ends who
// has registered; `rotate` lets it sign with another key, and forgets the one of before; `leave` and `return` end its
// port, and open it again. Each line there is said again after what was done.

import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [folder, keys, guarded, format] = process.argv.slice(2);
const modules = `${folder}/node_modules`;
const sdk = `${modules}/sdk-1.32/dist/esm/server`;
const { default: Provider } = await import(`${modules}/oidc-provider/lib/index.js`);
const { default: express } = await import(`${modules}/express/index.js`);
const { McpServer } = await import(`${sdk}/mcp.js`);
const { StreamableHTTPServerTransport } = await import(`${sdk}/streamableHttp.js`);
const { requireBearerAuth } = await import(`${sdk}/auth/middleware/bearerAuth.js`);
const { mcpAuthMetadataRouter } = await import(`${sdk}/auth/router.js`);
const { InvalidTokenError } = await import(`${sdk}/auth/errors.js`);

console.info = console.error; // where its warnings go
const say = (event) => console.log(JSON.stringify(event));
const listen = (server, port = 0) =>
  new Promise((done) => server.listen(port, "127.0.0.1", () => done(`http://127.0.0.1:${server.address().port}`)));

const [front, back] = [createServer(), createServer()];
const [issuer, origin] = [await listen(front), await listen(back)];
const resource = `${origin}/mcp`;

const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
writeFileSync(`${keys}/key.pem`, pair.privateKey.export({ type: "pkcs8", format: "pem" }));
writeFileSync(`${keys}/secret`, "a secret of forty characters, or of more");
const DOCUMENT = "https://client.example/dragoman.json";
const document = {
  client_id: DOCUMENT, client_name: "Dragoman", application_type: "native", token_endpoint_auth_method: "none",
  redirect_uris: ["http://127.0.0.1/callback"], grant_types: ["authorization_code", "refresh_token"],
};
const robot = { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] };

let generation = 0;
const makeKey = () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { ...privateKey.export({ format: "jwk" }), kid: `key-${generation++}`, use: "sig", alg: "ES256" };
};
const settings = () => ({
  jwks: { keys: [makeKey()] },
  clientDefaults: { id_token_signed_response_alg: "ES256" },
  clients: [
    { ...robot, client_id: "robot", client_secret: "a secret of forty characters, or of more" },
    {
      ...robot,
      client_id: "signer",
      token_endpoint_auth_method: "private_key_jwt",
      token_endpoint_auth_signing_alg: "ES256",
      jwks: { keys: [pair.publicKey.export({ format: "jwk" })] },
    },
  ],
  clientAuthMethods: ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
  scopes: ["offline_access", "tools", "write", "other"],
  pkce: { required: () => true },
  cookies: { keys: ["a key of this test"] },
  rotateRefreshToken: true,
  findAccount: (context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  fetch: (url, options) => (url === DOCUMENT ? Response.json(document) : fetch(url, options)),
  features: {
    clientIdMetadataDocument: { enabled: true, ack: "draft-02", allowFetch: () => true },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (context, named) => {
        if (![resource, guarded].includes(named)) throw new Error(`${named} is not ${resource}`);
        const jwt = { sign: { alg: "ES256" } };
        const accessTokenFormat = named === guarded ? format : "opaque";
        return { scope: "tools write other", audience: named, accessTokenFormat, accessTokenTTL: 3600, jwt };
      },
      useGrantedResource: () => false,
    },
  },
});
const [given, refreshing, registered] = [new Set(), new Set(), new Set()];
let provider, serve;
front.on("request", (request, answer) => serve(request, answer));

function open() {
  provider = new Provider(issuer, settings()); // what it keeps, it keeps for all
  serve = provider.callback();
  for (const kind of ["access_token", "client_credentials"]) provider.on(`${kind}.saved`, (token) => given.add(token.jti));
  provider.on("refresh_token.saved", (token) => refreshing.add(token.jti));
  provider.on("registration_create.success", (context, client) => {
    registered.add(client.clientId);
    say({ did: "register", client: client.clientId });
  });
  provider.on("grant.success", ({ oidc }) => say({ did: oidc.params.grant_type, resource: oidc.params.resource }));
  provider.on("refresh_token.consumed", () => say({ did: "rotate" }));
  for (const kind of ["access_token", "refresh_token"]) provider.on(`${kind}.destroyed`, () => say({ did: `end ${kind}` }));
  for (const kind of ["grant", "authorization", "registration_create", "device_authorization", "server", "revocation"])
    provider.on(kind === "server" ? "server_error" : `${kind}.error`, (context, error) =>
      say({ did: "refuse", what: kind, error: error.error ?? "", why: error.error_description ?? String(error) }),
    );
}
open();

const find = async (token) => (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
createInterface({ input: process.stdin }).on("line", async (line) => {
  if (line === "end" || line === "expire") {
    for (const token of given) await (await find(token))?.destroy();
    given.clear();
  }
  if (line === "expire") for (const token of refreshing) await (await provider.RefreshToken.find(token))?.destroy();
  if (line === "forget") for (const id of registered) await provider.Client.adapter.destroy(id);
  if (line === "rotate") open();
  if (line === "leave") await new Promise((done) => (front.close(done), front.closeAllConnections()));
  if (line === "return") await listen(front, new URL(issuer).port);
  say({ did: line });
});

const verifier = {
  verifyAccessToken: async (token) => {
    const found = await find(token);
    if (!found?.isValid || found.aud !== resource) throw new InvalidTokenError("No such token");
    return { token, clientId: found.clientId, scopes: found.scope?.split(" ") ?? [], expiresAt: found.exp };
  },
};
const resourceMetadataUrl = `${origin}/.well-known/oauth-protected-resource/mcp`;
const check = (...requiredScopes) => requireBearerAuth({ verifier, requiredScopes, resourceMetadataUrl });
const checks = { [true]: check("tools", "write"), [false]: check("tools") };

const app = express();
const oauthMetadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json().catch(() => ({ issuer }));
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: new URL(resource), scopesSupported: ["tools"] }));
app.use(express.json());
app.use("/mcp", (request, answer, next) => checks[request.body?.params?.name === "write"](request, answer, next));
app.all("/mcp", async (request, answer) => {
  const server = new McpServer({ name: "guarded", version: "1" });
  for (const name of ["read", "write"])
    server.registerTool(name, {}, () => ({ content: [{ type: "text", text: `${name} by ${request.auth.clientId}` }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, answer, request.body);
});
back.on("request", app);
say({ issuer, url: resource });
