/**
 * Over time: how many calls, how long servers take and how long we do, what is lost and what fails, and which pairs of
 * revisions are in use. All of it is drawn from the messages that are here.
 */

import { h, put, s, writeCount, writeDuration, writeSize } from "./dom.js";
import { readable } from "./json-view.js";
import { timesOf } from "./messages.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {import("./source.js").Source} Source
 */

const COLUMNS = 60;

export class TimeView extends HTMLElement {
  constructor() {
    super();
    /** @type {Source | null} */
    this.source = null;
  }

  draw() {
    const source = this.source;
    if (source === null) return;
    const { messages, status } = source.conversation;
    const calls = messages.filter((one) => one.kind === "request" && one.answer !== null);
    if (calls.length === 0) {
      put(this, h("p", { class: "nothing" }, "Nothing was answered yet."));
      return;
    }
    const times = calls.map((one) => ({ ...timesOf(one), from: one.from }));
    const server = times.map(({ asked, from }) => (from === "client" ? asked : null)).filter((ms) => ms !== null);
    const ours = times.map((one) => one.ours).filter((ms) => ms !== null);
    put(
      this,
      h("section", { class: "card wide" }, h("h2", {}, "Requests"), rate(messages)),
      h("section", { class: "card" }, h("h2", {}, "Time of the server"), spread(server, "server"), percentiles(server)),
      h("section", { class: "card" }, h("h2", {}, "Time added by Dragoman"), spread(ours, "ours"), percentiles(ours)),
      h("section", { class: "card" }, h("h2", {}, "Revisions in use"), matrix(calls.filter((one) => !one.isOurs), source.about.revisions)),
      h("section", { class: "card" }, h("h2", {}, "What was lost"), bars(count(messages.flatMap((one) => one.losses.filter((loss) => !loss.cosmetic).map((loss) => `${loss.kind} ${shape(loss.pointer)}  (${one.fromRevision} → ${one.toRevision})`))), "Nothing was lost that matters.", "lost")),
      h("section", { class: "card" }, h("h2", {}, "Errors"), bars(count(messages.filter((one) => one.isFailure).map((one) => `${one.server && `${one.server}: `}${one.method} ${one.words}`.slice(0, 160))), "There were none.", "failed")),
      h("section", { class: "card" }, h("h2", {}, "Requests by method"), bars(count(messages.filter((one) => one.kind === "request").map((one) => (one.from === "server" ? `${one.method} (question)` : one.method))), "There were none.")),
      status && typeof status.memory === "number" ? h("section", { class: "card" }, h("h2", {}, "Memory of the proxy"), heights(source.conversation.memory), h("p", { class: "figure" }, writeSize(status.memory))) : null,
    );
  }
}

/** @param {string} pointer */
function shape(pointer) {
  return pointer.replace(/\/\d+(?=\/|$)/g, "/*");
}

/** @param {string[]} words @returns {[string, number][]} */
function count(words) {
  /** @type {Map<string, number>} */
  const found = new Map();
  for (const word of words) found.set(word, (found.get(word) ?? 0) + 1);
  return [...found].sort((one, other) => other[1] - one[1]).slice(0, 12);
}

/** @param {[string, number][]} rows @param {string} none @param {string} [kind] */
function bars(rows, none, kind = "") {
  const most = rows[0]?.[1] ?? 0;
  if (most === 0) return h("p", { class: "nothing" }, none);
  return h(
    "ol",
    { class: `bars ${kind}` },
    ...rows.map(([name, number]) => {
      const bar = h("span", { class: "bar" });
      bar.style.inlineSize = `${Math.max(1, (100 * number) / most)}%`;
      return h("li", {}, h("span", { class: "label", title: name }, h("bdi", {}, readable(name))), h("span", { class: "track" }, bar), h("span", { class: "number" }, number.toLocaleString("en")));
    }),
  );
}

/** @param {Message[]} messages */
function rate(messages) {
  const requests = messages.filter((one) => one.kind === "request");
  const first = requests[0]?.time ?? 0;
  const last = Math.max(first + COLUMNS, requests.at(-1)?.time ?? 0);
  const width = (last - first) / COLUMNS;
  const counts = new Array(COLUMNS).fill(0);
  const failures = new Array(COLUMNS).fill(0);
  for (const one of requests) {
    const at = Math.min(COLUMNS - 1, Math.floor((one.time - first) / width));
    counts[at] += 1;
    if (one.answer?.isFailure) failures[at] += 1;
  }
  const most = Math.max(...counts);
  const picture = s("svg", { viewBox: `0 0 ${COLUMNS * 10} 100`, preserveAspectRatio: "none", class: "columns", role: "img", "aria-label": `${requests.length} requests in ${writeDuration(last - first)}` });
  counts.forEach((number, index) => {
    const height = (96 * number) / most;
    picture.append(s("rect", { class: "all", x: index * 10 + 1, y: 100 - height, width: 8, height }));
    const failed = (96 * (failures[index] ?? 0)) / most;
    if (failed) picture.append(s("rect", { class: "failed", x: index * 10 + 1, y: 100 - failed, width: 8, height: failed }));
  });
  const perSecond = mostWithin(requests.map((one) => one.time), 1000);
  return h("div", {}, picture, h("p", { class: "scale" }, h("span", {}, writeCount(requests.length, "request")), h("span", {}, `at most ${perSecond.toLocaleString("en")} in one second`), h("span", {}, writeDuration(last - first))));
}

/**
 * Count how many moments there are, at most, within one stretch of time.
 * @param {number[]} times In milliseconds. @param {number} stretch
 */
function mostWithin(times, stretch) {
  const sorted = [...times].sort((one, other) => one - other);
  let [most, first] = [0, 0];
  sorted.forEach((time, index) => {
    while (time - (sorted[first] ?? time) >= stretch) first += 1;
    most = Math.max(most, index - first + 1);
  });
  return most;
}

/** @param {number[]} values The last of them, in bytes. */
function heights(values) {
  const most = Math.max(1, ...values);
  const picture = s("svg", { viewBox: `0 0 ${values.length * 10} 100`, preserveAspectRatio: "none", class: "columns", role: "img", "aria-label": `at most ${writeSize(most)}` });
  values.forEach((value, index) => picture.append(s("rect", { class: "all", x: index * 10, y: 100 - (96 * value) / most, width: 10.2, height: (96 * value) / most })));
  return picture;
}

/**
 * How often a duration came, on a scale of powers of ten.
 * @param {number[]} values @param {string} name
 */
function spread(values, name) {
  const columns = new Array(48).fill(0);
  for (const ms of values) {
    const at = Math.round((Math.log10(Math.max(ms, 0.01)) + 2) * 6);
    columns[Math.max(0, Math.min(47, at))] += 1;
  }
  const most = Math.max(1, ...columns);
  const picture = s("svg", { viewBox: "0 0 480 100", preserveAspectRatio: "none", class: `columns ${name}`, role: "img", "aria-label": "how often each duration came" });
  columns.forEach((number, index) => {
    const height = (96 * number) / most;
    picture.append(s("rect", { class: "all", x: index * 10 + 1, y: 100 - height, width: 8, height }));
  });
  return h("div", {}, picture, h("p", { class: "scale" }, ...["10 µs", "1 ms", "100 ms", "10 s", "17 min"].map((mark) => h("span", {}, mark))));
}

/** @param {number[]} values */
function percentiles(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const at = (/** @type {number} */ part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
  const shown = [["p50", at(0.5)], ["p90", at(0.9)], ["p99", at(0.99)], ["longest", sorted.at(-1)]];
  return h("dl", { class: "facts" }, ...shown.map(([label, ms]) => h("div", {}, h("dt", {}, String(label)), h("dd", {}, typeof ms === "number" ? writeDuration(ms) : "–"))));
}

/** @param {Message[]} calls @param {string[]} revisions */
function matrix(calls, revisions) {
  /** @type {Map<string, number>} */
  const pairs = new Map();
  for (const call of calls) {
    const [client, server] = call.from === "client" ? [call.fromRevision || call.answer?.toRevision, call.toRevision || call.answer?.fromRevision] : [call.toRevision, call.fromRevision];
    if (client && server) pairs.set(`${client} ${server}`, (pairs.get(`${client} ${server}`) ?? 0) + 1);
  }
  const most = Math.max(1, ...pairs.values());
  return h(
    "table",
    { class: "matrix" },
    h("caption", {}, "requests, by the revision of the client (down) and of the server (across)"),
    h("thead", {}, h("tr", {}, h("td"), ...revisions.map((revision) => h("th", { scope: "col" }, revision.slice(2))))),
    h(
      "tbody",
      {},
      ...revisions.map((client) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, client.slice(2)),
          ...revisions.map((server) => {
            const number = pairs.get(`${client} ${server}`) ?? 0;
            const cell = h("td", { class: number ? "used" : "" }, number ? number.toLocaleString("en") : "");
            if (number) cell.style.setProperty("--part", String(0.25 + (0.75 * number) / most));
            return cell;
          }),
        ),
      ),
    ),
  );
}

customElements.define("time-view", TimeView);
