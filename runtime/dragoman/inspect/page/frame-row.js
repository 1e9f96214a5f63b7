/**
 * A row of the sequence: a message with its way between client, proxy and server. A row is made once, and shows another
 * message whenever the list is scrolled: making elements anew takes several times as long.
 */

import { h, s, setText, textual, writeDuration, writeMoment } from "./dom.js";
import { isAnswer, markOf, timesOf } from "./messages.js";
import { readable } from "./json-view.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {import("./messages.js").Mark} Mark
 */

/** How high a row is, in pixels; the style sheet has it, too. */
export const ROW = 30;

/** How much of what a message says may be seen in the widest of windows. */
const WORDS = 200;

/** What is said of each mark, to those who do not see its colour. */
export const MARKS = {
  unchanged: "passed as it came",
  translated: "translated, with nothing lost",
  lost: "translated, and something was lost",
  refused: "refused: it cannot be carried across",
  emulated: "said by Dragoman itself",
  kept: "went no further than Dragoman",
  "under way": "not answered yet",
  event: "something that happened",
};

/** The marks that a row says in words, too. */
const SAID = ["lost", "refused", "translated", "emulated"];

/** @type {Map<string, SVGElement>} pictures of ways, by what is to be seen on them */
const WAYS = new Map();

export class Row {
  constructor() {
    this.time = textual("span", "time", { role: "gridcell" });
    this.way = h("span", { class: "way", role: "gridcell" });
    this.indent = textual("span", "indent", { "aria-hidden": "true" });
    this.answers = textual("span", "answers", { "aria-hidden": "true" });
    this.method = textual("b", "method");
    this.name = textual("bdi", "name");
    this.words = textual("bdi", "words");
    this.mark = textual("span", "chip");
    this.server = textual("bdi", "chip server");
    this.failed = textual("span", "chip failed");
    this.session = textual("bdi", "chip session");
    this.whole = textual("span", "whole");
    this.asked = textual("span", "server");
    this.ours = textual("span", "ours");
    this.element = h(
      "div",
      { class: "row", role: "row" },
      this.time,
      this.way,
      h("span", { class: "what", role: "gridcell" }, this.indent, this.answers, this.method, this.name, this.words),
      h("span", { class: "marks", role: "gridcell" }, this.mark, this.server, this.failed, this.session),
      h("span", { class: "took", role: "gridcell" }, this.whole, this.asked, this.ours),
    );
    /** @type {Message | null} */
    this.message = null;
    this.index = -1;
    this.drawn = -1;
    this.picture = "";
  }

  /**
   * Show a message.
   * @param {Message} message @param {number} index Where it stands.
   * @param {{drawn: number, start: number, isOver: boolean, selected: Message | null}} list
   *   `drawn` differs once messages, or which is selected, may have changed.
   */
  show(message, index, list) {
    if (this.message === message && this.index === index && this.drawn === list.drawn) return;
    const { element } = this;
    if (this.index !== index) {
      element.style.top = `${index * ROW}px`;
      element.setAttribute("aria-rowindex", String(index + 2));
    }
    if (this.message !== message) element.id = `row-${message.number}`;
    this.message = message;
    this.index = index;
    this.drawn = list.drawn;
    const mark = markOf(message, list.isOver);
    this.#classify(message, mark, list.selected);
    setText(this.time, `+${writeMoment(message.time - list.start)}`);
    this.#draw(message, mark);
    this.#say(message);
    this.#note(message, mark);
  }

  /** Show nothing. */
  clear() {
    if (this.message === null) return;
    this.message = null;
    this.index = this.drawn = -1;
    this.element.remove();
  }

  /** Say all of what is cut off, and what the signs mean, to who points at it. */
  explain() {
    if (this.message === null) return;
    const { words, server } = this.message;
    this.way.title = MARKS[markOf(this.message)];
    this.words.title = readable(words.slice(0, 500));
    this.server.title = readable(server);
  }

  /** @param {Message} message @param {Mark} mark @param {Message | null} selected */
  #classify(message, mark, selected) {
    const isSelected = message === selected;
    const classes = ["row", `is-${mark.replace(" ", "-")}`, message.kind];
    if (message.isFailure) classes.push("failure");
    if (isSelected) classes.push("selected");
    else if (selected !== null && (message.request === selected || message.answer === selected || message.call === selected)) classes.push("related");
    const { element } = this;
    const named = classes.join(" ");
    if (element.className !== named) element.className = named;
    if (element.ariaSelected !== String(isSelected)) element.ariaSelected = String(isSelected);
  }

  /** @param {Message} message @param {Mark} mark */
  #draw(message, mark) {
    const isSent = message.isOurs || message.sent !== 0;
    const picture = [mark, message.from, isAnswer(message.kind), message.isOurs, isSent].join();
    const said = describe(message, mark);
    if (this.way.ariaLabel !== said) this.way.ariaLabel = said;
    if (this.picture === picture) return;
    this.picture = picture;
    let drawn = WAYS.get(picture);
    if (drawn === undefined) WAYS.set(picture, (drawn = way(message, mark)));
    this.way.replaceChildren(drawn.cloneNode(true));
  }

  /** @param {Message} message */
  #say(message) {
    setText(this.indent, message.depth > 0 ? "╰ ".padStart(message.depth * 2, " ") : "");
    setText(this.answers, message.request !== null || isAnswer(message.kind) ? "↩ " : "");
    setText(this.method, readable(message.method || message.kind));
    setText(this.name, readable(message.name.slice(0, 120)));
    setText(this.words, readable(message.words.slice(0, WORDS).replace(/\s+/g, " ")));
  }

  /** @param {Message} message @param {Mark} mark */
  #note(message, mark) {
    const lost = mark === "lost" ? `${message.losses.filter((loss) => !loss.cosmetic).length} ` : "";
    setText(this.mark, SAID.includes(mark) ? `${lost}${mark}` : "");
    setText(this.server, readable(message.server.slice(0, 40)));
    setText(this.failed, message.isFailure ? "error" : "");
    setText(this.session, readable(message.session.replace(/^session /, "#").slice(0, 40)));
    const { asked, ours, whole } = timesOf(message);
    setText(this.whole, whole === null ? "" : writeDuration(whole));
    setText(this.asked, asked === null ? "" : writeDuration(asked));
    setText(this.ours, ours === null ? "" : ` · ${writeDuration(ours)}`);
    const named = `chip ${mark}`;
    if (this.mark.className !== named) this.mark.className = named;
    const other = message.from === "server" ? "client" : "server";
    if (this.asked.className !== other) this.asked.className = other;
  }
}

/**
 * Draw the way of a message: from its sender to the proxy, and on to the other side.
 * @param {Message} message @param {Mark} mark
 */
function way(message, mark) {
  const picture = s("svg", { viewBox: "0 0 200 30", width: 200, height: 30, "aria-hidden": "true" });
  if (mark === "event") {
    const x = message.from === "client" ? 16 : 184;
    picture.append(s("rect", { class: "event", x: x - 4, y: 11, width: 8, height: 8 }));
    return picture;
  }
  const fromClient = message.from === "client";
  const [from, to] = fromClient ? [16, 184] : [184, 16];
  const sign = fromClient ? 1 : -1;
  const dashes = isAnswer(message.kind) ? " dashed" : "";
  if (!message.isOurs) {
    picture.append(s("path", { class: `arrow from${dashes}`, d: `M${from} 15H${100 - sign * 8}` }), tip(100 - sign * 7, sign, "from"));
  }
  if (message.isOurs || message.sent !== 0) {
    picture.append(s("path", { class: `arrow to${dashes}`, d: `M${100 + sign * 7} 15H${to - sign * 3}` }), tip(to - sign * 2, sign, "to"));
  }
  picture.append(node(mark));
  return picture;
}

/** @param {number} x @param {number} sign @param {string} side */
function tip(x, sign, side) {
  return s("path", { class: `tip ${side}`, d: `M${x} 15l${-sign * 6} -3.5v7z` });
}

/** @param {Mark} mark */
function node(mark) {
  switch (mark) {
    case "unchanged":
      return s("circle", { class: "node", cx: 100, cy: 15, r: 3 });
    case "translated":
      return s("circle", { class: "node filled", cx: 100, cy: 15, r: 5 });
    case "lost":
      return s("path", { class: "node filled", d: "M100 8.5l6.5 12h-13z" });
    case "refused":
      return s("path", { class: "node cross", d: "M95.5 10.5l9 9m0 -9l-9 9" });
    case "emulated":
      return s("rect", { class: "node filled", x: 95.5, y: 10.5, width: 9, height: 9, transform: "rotate(45 100 15)" });
    case "under way":
      return s("circle", { class: "node waiting", cx: 100, cy: 15, r: 5 });
    default:
      return s("path", { class: "node bar", d: "M100 9v12" });
  }
}

/** @param {Message} message @param {Mark} mark */
function describe(message, mark) {
  const who = message.isOurs ? "Dragoman" : (message.from === "server" && message.server) || message.from;
  const whom = message.isOurs ? (message.from === "client" ? "the server" : "the client") : message.from === "client" ? message.server : "";
  return readable(`${message.kind} from ${who}${whom && ` to ${whom}`}, ${MARKS[mark]}`);
}

/** Explain the marks. */
export function legend() {
  const list = h("dl", { class: "legend" });
  for (const mark of /** @type {const} */ (["unchanged", "translated", "lost", "refused", "emulated", "kept", "under way"])) {
    const picture = s("svg", { viewBox: "88 4 24 22", width: 24, height: 22, class: `is-${mark.replace(" ", "-")}`, "aria-hidden": "true" });
    picture.append(node(mark));
    list.append(h("dt", {}, picture, mark), h("dd", {}, MARKS[mark]));
  }
  return list;
}
