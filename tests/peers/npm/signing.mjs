// A client of the TypeScript SDK whose person signs in: `node signing.mjs FOLDER PACKAGE URL`.
//
// `BROWSER` names who goes to the pages. Prints what it was told by a tool, as `signing_client.py` does.

import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { promisify } from "node:util";

const [folder, release, url] = process.argv.slice(2);
const modules = `${folder}/node_modules/${release}/dist`;
const isOne = release.startsWith("sdk-1");
const { Client } = await import(isOne ? `${modules}/esm/client/index.js` : `${modules}/index.mjs`);
const { StreamableHTTPClientTransport } = await import(
  isOne ? `${modules}/esm/client/streamableHttp.js` : `${modules}/index.mjs`
);

let came;
const callback = createServer((request, answer) => {
  came = new URL(request.url, "http://127.0.0.1").searchParams;
  answer.end("You are signed in");
});
await new Promise((done) => callback.listen(0, "127.0.0.1", done));
const redirectUrl = `http://127.0.0.1:${callback.address().port}/callback`;

class Person {
  redirectUrl = redirectUrl;
  clientMetadata = {
    client_name: "signing client", redirect_uris: [redirectUrl], token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], application_type: "native",
  };
  clientInformation() {
    return this.client;
  }
  saveClientInformation(client) {
    this.client = client;
  }
  tokens() {
    return this.given;
  }
  saveTokens(tokens) {
    this.given = tokens;
  }
  codeVerifier() {
    return this.verifier;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  async redirectToAuthorization(page) {
    await promisify(execFile)("/bin/sh", ["-c", `${process.env.BROWSER} "$0"`, page.href]);
  }
}

const person = new Person();
const open = async () => {
  const client = new Client({ name: "signing", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: person });
  try {
    await client.connect(transport);
    return client;
  } catch (error) {
    if (error.name !== "UnauthorizedError" && !/unauthorized/i.test(error.message)) throw error;
    if (!came) throw error;
    await transport.finishAuth(isOne ? came.get("code") : came);
    return undefined;
  }
};
const client = (await open()) ?? (await open());
const { tools } = await client.listTools();
const result = await client.callTool({ name: tools[0].name, arguments: {} });
console.log(JSON.stringify({ tool: tools[0].name, said: result.content[0].text }));
await client.close();
process.exit(0);
