/**
 * What a single frame says: its kind, what it is about, and in a few words what is in it.
 */

/**
 * Make sure that what is a text in every line of a trace is one in this line, whoever has written it.
 * @param {any} line
 */
export function tidy(line) {
  for (const name of ["time", "session", "server", "revision", "to", "method", "direction", "malformed", "reason"]) {
    const value = line[name];
    if (value !== undefined && value !== null && typeof value !== "string") line[name] = JSON.stringify(value);
  }
  for (const name of ["process", "connection"]) if (typeof line[name] !== "number") line[name] = undefined;
  line.session ??= "";
  line.server ??= undefined;
}

/** @param {any} frame @returns {import("./messages.js").Kind} */
export function kindOf(frame) {
  if (typeof frame?.method === "string") return frame.id === undefined ? "notification" : "request";
  if (frame?.error !== undefined) return "error";
  return frame?.result === undefined ? "malformed" : "result";
}

/** @param {any} frame */
export function nameOf(frame) {
  const params = frame.params ?? {};
  const name = params.name ?? params.uri ?? params.ref?.name ?? params.ref?.uri ?? params.taskId ?? "";
  return typeof name === "string" ? name : "";
}

/**
 * Say in a few words what a frame says.
 * @param {any} frame
 */
export function wordsOf(frame) {
  if (frame.error !== undefined) return `${frame.error?.code}: ${frame.error?.message}`;
  const result = frame.result;
  if (result !== undefined && result !== null) {
    if (result.resultType === "input_required") return `asks ${count(Object.keys(result.inputRequests ?? {}).length, "questions")}`;
    for (const list of ["tools", "prompts", "resources", "resourceTemplates", "contents", "messages", "roots"]) {
      if (Array.isArray(result[list])) return count(result[list].length, list);
    }
    if (Array.isArray(result.content)) return textOf(result.content);
    if (result.serverInfo?.name) return `${result.serverInfo.name} ${result.serverInfo.version ?? ""}`;
    if (typeof result.action === "string") return result.action;
    return "";
  }
  const params = frame.params ?? {};
  if (params.clientInfo?.name) return `${params.clientInfo.name} ${params.clientInfo.version ?? ""}`;
  if (typeof params.message === "string") return params.message;
  if (params.progress !== undefined) return `${params.progress}${params.total === undefined ? "" : ` of ${params.total}`}`;
  if (params.data !== undefined) return typeof params.data === "string" ? params.data : JSON.stringify(params.data);
  if (params.arguments !== undefined) return JSON.stringify(params.arguments);
  return "";
}

/** @param {any[]} content */
function textOf(content) {
  const first = content[0];
  const said = typeof first?.text === "string" ? first.text : (first?.type ?? "");
  return content.length > 1 ? `${said} (and ${content.length - 1} more)` : said;
}

/** @param {number} number @param {string} things */
function count(number, things) {
  return `${number} ${number === 1 ? things.replace(/s$/, "") : things}`;
}

/**
 * Say what a result asks that has to be answered before its call goes on.
 * @param {any} result
 */
export function askedIn(result) {
  const questions = Object.values(result.inputRequests ?? {});
  const said = questions.map((/** @type {any} */ one) => [one?.method, one?.params?.message].filter((word) => typeof word === "string").join(": ")).filter(Boolean);
  return said.join("; ").slice(0, 400);
}

/**
 * What a frame says, without what the proxy puts there of its own accord.
 * @param {any} frame
 */
export function bodyOf(frame) {
  const { _meta, ...params } = frame.params ?? {};
  return JSON.stringify(Object.entries(params).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** @param {any} line */
export function timeOf(line) {
  const text = String(line.time ?? "");
  const whole = Date.parse(`${text.slice(0, 19)}Z`);
  const part = /\.(\d+)/.exec(text);
  return (Number.isNaN(whole) ? 0 : whole) + (part ? Number(`0.${part[1]}`) * 1000 : 0);
}
