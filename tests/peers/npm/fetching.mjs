// Requests and responses of node for a handler that takes those of the web, as release 2.x of the TypeScript SDK has it.

import { Readable } from "node:stream";

export const byFetch = (handler) => async (incoming, outgoing) => {
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  const body = incoming.method === "POST" ? { body: Readable.toWeb(incoming), duplex: "half" } : {};
  const about = { method: incoming.method, headers: incoming.headers, signal: gone.signal, ...body };
  const response = await handler.fetch(new Request(`http://${incoming.headers.host}${incoming.url}`, about));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body) for await (const part of response.body) outgoing.write(part);
  outgoing.end();
};
