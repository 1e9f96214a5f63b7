/**
 * The headers of HTTP that went with a message, where it went over HTTP: each exchange on its way, with both sides.
 */

import { h } from "./dom.js";
import { readable } from "./json-view.js";

/**
 * @typedef {import("./messages.js").Message} Message
 */

/**
 * Show the headers of a message: of a request those it came and went with, of an answer those of the answers.
 * @param {Message} message @param {(n: number) => any} lineOf
 * @returns {HTMLElement | null}
 */
export function showHeaders(message, lineOf) {
  const isAnswer = message.request !== null && message.request.from === "client";
  const lines = ((isAnswer && message.request) || message).http.map(lineOf).filter((line) => line !== null);
  if (lines.length === 0) return null;
  const wholly = message.kind === "event";
  const parts = lines.flatMap((line) => [
    wholly || !isAnswer ? part(line, "request") : null,
    wholly || isAnswer ? part(line, "response") : null,
  ]);
  const details = /** @type {HTMLDetailsElement} */ (h("details", { class: "http", open: true }, h("summary", {}, "HTTP headers"), h("div", { class: "exchanges" }, ...parts)));
  return details;
}

/** @param {any} line @param {"request" | "response"} which */
function part(line, which) {
  const peer = line.side === "client" ? "client" : "server";
  const [from, to] = which === "request" ? (peer === "client" ? ["client", "Dragoman"] : ["Dragoman", "server"]) : peer === "client" ? ["Dragoman", "client"] : ["server", "Dragoman"];
  const headers = Object.entries(line[which] ?? {});
  const status = Number(line.status);
  const said = which === "request" ? String(line.method) : status > 0 ? String(status) : "no answer";
  return h(
    "div",
    { class: `exchange ${peer}`, role: "group", "aria-label": `${from} to ${to}` },
    h("h3", {}, `${from} → ${to} `, h("b", { class: which === "response" && !(status >= 100 && status < 400) ? "failed" : "" }, readable(said))),
    headers.length === 0
      ? h("p", { class: "none" }, "no headers")
      : h("dl", {}, ...headers.map(([name, value]) => h("div", {}, h("dt", {}, readable(name)), h("dd", { class: value === "[redacted]" ? "redacted" : "" }, value === "[redacted]" ? "taken out" : readable(String(value)))))),
  );
}
