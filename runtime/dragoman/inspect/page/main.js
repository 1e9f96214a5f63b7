/**
 * The page: what is shown of what has come, and what keys and clicks do.
 */

import { byId, h, put, setText, textual, writeCount } from "./dom.js";
import { Conversation } from "./model.js";
import { NAMES, readFilter } from "./filter.js";
import { Sieve } from "./sieve.js";
import { Source } from "./source.js";
import { readable } from "./json-view.js";
import { FrameView } from "./frame-view.js";
import { FrameList } from "./frame-list.js";
import { legend } from "./frame-row.js";
import { SessionView } from "./session-view.js";
import { TimeView } from "./time-view.js";
import { openShare } from "./share-view.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {"sequence" | "sessions" | "time"} View
 */

const STATES = {
  connecting: "connecting…",
  live: "live",
  away: "the proxy does not answer; trying again",
  over: "the proxy has ended; what it said is still here",
  recorded: "recorded",
};
const KEYS = [
  ["j k ↓ ↑", "the next and the previous message"],
  ["g G", "the first, and the newest"],
  ["Enter", "show a message"],
  ["Esc", "back"],
  ["/", "filter"],
  ["e E", "the next and the previous error"],
  ["l L", "the next and the previous loss"],
  ["f", "follow what comes"],
  ["p", "pause"],
  ["r", "raw text"],
  ["c", "copy the message"],
  ["1 2 3", "sequence, sessions, over time"],
  ["s", "share"],
  ["?", "this help"],
];

const conversation = new Conversation();
const source = new Source(conversation, changed);
const list = /** @type {FrameList} */ (byId("list"));
const frame = /** @type {FrameView} */ (byId("frame"));
const sessions = /** @type {SessionView} */ (byId("sessions"));
const time = /** @type {TimeView} */ (byId("time"));
const box = /** @type {HTMLInputElement} */ (byId("filter"));
frame.source = sessions.source = time.source = source;

/** How often figures are made anew while lines come, at most; of very many messages a tenth of the time is spent on it. */
const TIME_MS = 500;
/** For how long messages are held against a filter before what was found is drawn. */
const SLICE_MS = 50;

/** @type {View} */
let view = "sequence";
const sieve = new Sieve(conversation);
let isPaused = false;
/** @type {import("./frame-list.js").Place | null} where the list was when the filter changed */
let place = null;
let isDue = false;
let isSifting = false;
/** @type {number | null} */
let wanted = null;
let restsUntil = 0;
let drawnTo = 0;

/** @param {"lines" | "status" | "state"} what */
function changed(what) {
  if (what === "state") {
    list.isOver = conversation.isOver;
    refilter();
  }
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    if (!isPaused) takeIn();
    drawTop();
    if (view === "sessions") sessions.draw();
    else if (view === "time") drawTime();
  });
}

function drawTime() {
  const began = performance.now();
  if (began < restsUntil) return;
  time.draw();
  const now = performance.now();
  restsUntil = now + Math.max(TIME_MS, 9 * (now - began));
  drawnTo = sieve.newest;
}

/** Show what has come since. */
function takeIn() {
  sieve.takeIn();
  list.show(sieve.found, conversation.messages[0]?.time ?? 0);
  openWanted();
}

/** @param {import("./filter.js").Filter} [filter] Hold everything against it, or against the same again. */
function refilter(filter = sieve.filter) {
  if (!sieve.isBusy) place = list.place ?? place;
  sieve.start(filter);
  sift();
}

/** Show what is found soon, and go on looking. */
function sift() {
  sieve.sift(SLICE_MS);
  list.show(sieve.found, conversation.messages[0]?.time ?? 0, place);
  list.ariaBusy = String(sieve.isBusy);
  drawTop();
  openWanted();
  if (sieve.isBusy && !isSifting) {
    isSifting = true;
    const goOn = () => {
      isSifting = false;
      sift();
    };
    requestAnimationFrame(() => setTimeout(goOn)); // what was found is seen before
  }
}

/** Show the message that the address names, once it is here. */
function openWanted() {
  if (wanted === null) return;
  const message = conversation.messages.find((one) => one.number === wanted);
  if (message) {
    wanted = null;
    list.select(message, true);
  }
}

function drawTop() {
  const { messages } = conversation;
  const state = byId("state");
  state.className = `state ${isPaused ? "paused" : source.state}`;
  say(state, isPaused ? "paused" : source.state === "live" && source.about.what === "trace" ? "follows the file" : STATES[source.state]);
  drawCounts();
  say(byId("faults"), sieve.filter.faults.join("; "));
  byId("follow").setAttribute("aria-pressed", String(list.follows));
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  const { about } = source;
  say(byId("watched"), readable(about.file ?? about.server ?? ""));
  const empty = byId("empty");
  empty.hidden = list.shown.length > 0 || sieve.isBusy;
  empty.textContent = messages.length > 0 ? "No message fits this filter." : source.about.what === "trace" ? "There is no message in this file yet: expected one that dragoman proxy --trace has written." : "Nothing has crossed yet. Let the client connect, or call a tool.";
}

/**
 * Put a text there, unless it is there: what is put anew is read out anew.
 * @param {HTMLElement} element @param {string} text
 */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const COUNTS = {
  shown: textual("span", ""),
  lost: textual("button", "lost", { type: "button", onclick: () => look("lost:*") }),
  failed: textual("button", "failed", { type: "button", onclick: () => look("is:failure") }),
  passed: textual("span", ""),
  gone: textual("span", "gone"),
};
byId("counts").append(...Object.values(COUNTS));

/** The same elements stay: somebody may be about to press one. */
function drawCounts() {
  const { messages, missing, forgotten, losses, failures } = conversation;
  const passed = Number(conversation.status?.passed_over ?? 0);
  const part = sieve.isBusy ? `${list.shown.length.toLocaleString("en")} so far of ` : list.shown.length === messages.length ? "" : `${list.shown.length.toLocaleString("en")} of `;
  setText(COUNTS.shown, `${part}${writeCount(messages.length, "message")}`);
  setText(COUNTS.lost, losses ? `${losses.toLocaleString("en")} with losses` : "");
  setText(COUNTS.failed, failures ? writeCount(failures, "error") : "");
  setText(COUNTS.passed, passed > 0 ? `${writeCount(passed, "line")} of the file ${passed === 1 ? "is" : "are"} no part of a trace` : "");
  setText(COUNTS.gone, missing + forgotten ? `the oldest ${writeCount(missing + forgotten, "line")} are not kept` : "");
}

/** @param {View} chosen */
function showView(chosen) {
  view = chosen;
  for (const name of ["sequence", "sessions", "time"]) byId(`tab-${name}`).setAttribute("aria-selected", String(name === chosen));
  byId("sequence").hidden = chosen !== "sequence";
  sessions.hidden = chosen !== "sessions";
  time.hidden = chosen !== "time";
  if (chosen === "sessions") sessions.draw();
  if (chosen === "time") time.draw();
  if (chosen === "sequence") list.draw();
  drawTop();
  writeAddress();
}

/** @param {string} text */
function look(text) {
  box.value = text;
  applyFilter();
  showView("sequence");
}

function applyFilter() {
  refilter(readFilter(box.value, () => conversation.isOver));
  writeAddress();
}

/** Let the address say what is seen, so that it can be given to others and kept. */
function writeAddress() {
  const parts = new URLSearchParams();
  if (view !== "sequence") parts.set("view", view);
  if (box.value) parts.set("filter", box.value);
  if (frame.message && !frame.hidden) parts.set("frame", String(frame.message.number));
  const hash = parts.toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  box.value = parts.get("filter") ?? "";
  const number = Number(parts.get("frame"));
  wanted = number > 0 ? number : null;
  if (wanted !== null) list.follows = false;
  const named = parts.get("view");
  refilter(readFilter(box.value, () => conversation.isOver));
  showView(named === "sessions" || named === "time" ? named : "sequence");
}

/** @param {Message | null} message */
function openFrame(message) {
  frame.hidden = message === null;
  byId("sequence").classList.toggle("with-frame", message !== null);
  if (message !== null) frame.show(message);
  else list.focus();
  writeAddress();
  list.draw();
}

function togglePause() {
  isPaused = !isPaused;
  if (!isPaused) takeIn();
  drawTop();
}

function share() {
  sieve.sift(Infinity);
  void openShare(source, sieve.found);
}

function openHelp() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("help"));
  put(
    dialog,
    h("form", { method: "dialog" },
      h("h2", { tabindex: -1, autofocus: true }, "What you see, and how to look"),
      h("p", {}, "Each row is a message on its way: from its sender to Dragoman, and on to the other side. The sign in the middle says what became of it there."),
      h("div", { class: "columns-of-help" },
        h("section", {}, h("h3", {}, "Signs"), legend()),
        h("section", {}, h("h3", {}, "Keys"), h("dl", { class: "keys" }, ...KEYS.flatMap(([keys, what]) => [h("dt", {}, ...(keys ?? "").split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, what ?? "")]))),
      ),
      h("h3", {}, "Filter"),
      h("p", {}, "Words stand side by side, and all have to hold; a minus before a word turns it around; * stands for anything. Other words, or a text in quotation marks, are looked for in the frames."),
      h("dl", { class: "keys" }, ...Object.entries(NAMES).flatMap(([name, about]) => [h("dt", {}, h("code", {}, `${name}:`)), h("dd", {}, about)])),
      h("div", { class: "buttons" }, h("button", { value: "close" }, "Close")),
    ),
  );
  dialog.showModal();
}

/** @type {Record<string, () => void>} */
const COMMANDS = {
  j: () => list.step(1),
  ArrowDown: () => list.step(1),
  k: () => list.step(-1),
  ArrowUp: () => list.step(-1),
  PageDown: () => list.step(20),
  PageUp: () => list.step(-20),
  g: () => list.step(-1e9),
  Home: () => list.step(-1e9),
  G: () => list.step(1e9),
  End: () => list.step(1e9),
  Enter: () => openFrame(list.selected),
  e: () => list.seek((one) => one.isFailure, 1),
  E: () => list.seek((one) => one.isFailure, -1),
  l: () => list.seek((one) => one.losses.some((loss) => !loss.cosmetic), 1),
  L: () => list.seek((one) => one.losses.some((loss) => !loss.cosmetic), -1),
  f: () => list.follow(!list.follows),
  p: togglePause,
  r: () => frame.hidden || frame.toggle(),
  c: () => frame.hidden || void frame.copy(),
  1: () => showView("sequence"),
  2: () => showView("sessions"),
  3: () => showView("time"),
  s: share,
  "/": () => box.focus(),
  "?": openHelp,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const target = /** @type {HTMLElement} */ (event.target);
  if (target === box) {
    if (event.key === "Escape" || event.key === "Enter") list.focus();
    return;
  }
  if (event.key === "Escape") {
    if (!frame.hidden) openFrame(null);
    return;
  }
  const isControl = target.closest("button, summary, select, textarea, input, a") !== null;
  if (isControl && (event.key === "Enter" || event.key === " ")) return;
  if (target.closest("#frame") && /^(Arrow|Page|Home|End)/.test(event.key)) return;
  if (view !== "sequence" && /^(Arrow|Page|Home|End)/.test(event.key)) return;
  const command = COMMANDS[event.key];
  if (command) {
    event.preventDefault();
    command();
  }
});

list.addEventListener("choose", (event) => {
  const { message, opens } = /** @type {CustomEvent} */ (event).detail;
  if (message && (opens || !frame.hidden)) openFrame(message);
});
list.addEventListener("follow", drawTop);
frame.addEventListener("leave", () => openFrame(null));
frame.addEventListener("jump", (event) => {
  const message = /** @type {CustomEvent<Message>} */ (event).detail;
  if (!list.shown.includes(message)) look("");
  list.select(message, true);
});
frame.addEventListener("copied", () => {
  byId("said").textContent = "copied";
});
sessions.addEventListener("look", (event) => look(/** @type {CustomEvent<string>} */ (event).detail));
for (const name of /** @type {View[]} */ (["sequence", "sessions", "time"])) byId(`tab-${name}`).addEventListener("click", () => showView(name));
byId("follow").addEventListener("click", () => list.follow(!list.follows));
byId("pause").addEventListener("click", togglePause);
byId("open-share").addEventListener("click", share);
byId("open-help").addEventListener("click", openHelp);
box.addEventListener("input", applyFilter);
addEventListener("hashchange", readAddress);
setInterval(() => {
  if (source.state !== "live" || document.hidden) return;
  if (view === "sessions") sessions.draw();
  if (view === "time" && sieve.newest !== drawnTo) drawTime();
}, 1000);
setInterval(() => {
  if (source.state === "live") byId("said").textContent = `${writeCount(conversation.messages.length, "message")}`;
}, 10_000);

void source.start().then(readAddress);
