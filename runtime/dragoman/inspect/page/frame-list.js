/**
 * The sequence: a row for each message, with its way between client, proxy and server. Only the rows that are seen are
 * in the document, so a hundred thousand are as quick as ten.
 */

import { h, s, writeDuration, writeMoment } from "./dom.js";
import { markOf, timesOf } from "./messages.js";
import { readable } from "./json-view.js";

/**
 * @typedef {import("./messages.js").Message} Message
 */

export const ROW = 30;
const BEYOND = 8;

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

export class FrameList extends HTMLElement {
  constructor() {
    super();
    /** @type {Message[]} */
    this.shown = [];
    this.total = 0;
    /** @type {Message | null} */
    this.selected = null;
    this.follows = true;
    this.isOver = false;
    this.start = 0;
    /** @type {Map<number, HTMLElement>} rows in the document, by where they stand */
    this.rows = new Map();
    this.isDue = false;
    this.body = h("div", { class: "rows", role: "rowgroup" });
    this.first = 0;
  }

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.setAttribute("role", "grid");
    this.setAttribute("aria-label", "Messages");
    this.setAttribute("aria-colcount", "5");
    this.tabIndex = 0;
    this.append(head(), this.body);
    this.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.addEventListener("click", (event) => this.#clicked(event));
    new ResizeObserver(() => this.draw()).observe(this);
  }

  /**
   * Show these.
   * @param {Message[]} shown @param {number} total @param {number} start When the first began.
   */
  show(shown, total, start) {
    this.shown = shown;
    this.total = total;
    this.start = start;
    this.body.style.height = `${shown.length * ROW}px`;
    this.setAttribute("aria-rowcount", String(shown.length + 1));
    this.rows.clear();
    this.body.replaceChildren();
    if (this.follows) this.#toEnd();
    this.draw();
  }

  /** Show that there are more at the end, and that others may have changed. */
  grown() {
    this.body.style.height = `${this.shown.length * ROW}px`;
    this.setAttribute("aria-rowcount", String(this.shown.length + 1));
    if (this.follows) this.#toEnd();
    this.rows.clear();
    this.body.replaceChildren();
    this.draw();
  }

  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.#draw();
    });
  }

  #draw() {
    const first = Math.max(0, Math.floor(this.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.shown.length, Math.ceil((this.scrollTop + this.clientHeight) / ROW) + BEYOND);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) {
      if (this.rows.has(index)) continue;
      const message = this.shown[index];
      if (message === undefined) continue;
      const row = this.#row(message, index);
      this.rows.set(index, row);
      this.body.append(row);
    }
    this.first = first;
  }

  /** @param {Message} message @param {number} index */
  #row(message, index) {
    const mark = markOf(message, this.isOver);
    const isSelected = message === this.selected;
    const classes = ["row", `is-${mark.replace(" ", "-")}`, message.kind];
    if (message.isFailure) classes.push("failure");
    if (isSelected) classes.push("selected");
    const selected = this.selected;
    if (selected && message !== selected && (message.request === selected || message.answer === selected || message.call === selected)) {
      classes.push("related");
    }
    const row = h(
      "div",
      {
        class: classes.join(" "),
        role: "row",
        id: `row-${message.number}`,
        "aria-rowindex": index + 2,
        "aria-selected": isSelected,
        "data-index": index,
      },
      h("span", { class: "time", role: "gridcell" }, `+${writeMoment(message.time - this.start)}`),
      h("span", { class: "way", role: "gridcell", title: MARKS[mark] }, way(message, mark), h("span", { class: "unseen" }, said(message, mark))),
      h("span", { class: "what", role: "gridcell" }, ...what(message)),
      h("span", { class: "marks", role: "gridcell" }, ...chips(message, mark)),
      h("span", { class: "took", role: "gridcell" }, ...took(message)),
    );
    row.style.transform = `translateY(${index * ROW}px)`;
    return row;
  }

  #scrolled() {
    const atEnd = this.scrollTop + this.clientHeight >= this.scrollHeight - ROW;
    if (this.follows !== atEnd && !this.isMoving) {
      this.follows = atEnd;
      this.dispatchEvent(new CustomEvent("follow"));
    }
    this.#draw();
  }

  get isMoving() {
    return this.movingUntil !== undefined && performance.now() < this.movingUntil;
  }

  #toEnd() {
    this.movingUntil = performance.now() + 80;
    this.scrollTop = this.scrollHeight;
  }

  /** @param {boolean} follows */
  follow(follows) {
    this.follows = follows;
    if (follows) this.#toEnd();
    this.draw();
    this.dispatchEvent(new CustomEvent("follow"));
  }

  /** @param {Event} event */
  #clicked(event) {
    const row = /** @type {Element} */ (event.target).closest(".row");
    const index = Number(row?.getAttribute("data-index") ?? -1);
    const message = this.shown[index];
    if (message) this.select(message, true);
  }

  /**
   * Choose a message.
   * @param {Message | null} message
   * @param {boolean} [opens] Whether it is to be shown, too.
   */
  select(message, opens = false) {
    this.selected = message;
    if (message !== null) {
      this.setAttribute("aria-activedescendant", `row-${message.number}`);
      const index = this.shown.indexOf(message);
      if (index >= 0) this.#reveal(index);
    } else this.removeAttribute("aria-activedescendant");
    this.rows.clear();
    this.body.replaceChildren();
    this.#draw();
    this.dispatchEvent(new CustomEvent("choose", { detail: { message, opens } }));
  }

  /** @param {number} index */
  #reveal(index) {
    const top = index * ROW;
    const head = ROW;
    if (top < this.scrollTop || top + ROW + head > this.scrollTop + this.clientHeight) {
      if (this.follows && index < this.shown.length - 1) this.follow(false);
      this.movingUntil = performance.now() + 80;
      this.scrollTop = Math.max(0, top - this.clientHeight / 3);
    }
  }

  /**
   * Go up or down by so many rows.
   * @param {number} by
   */
  step(by) {
    if (this.shown.length === 0) return;
    const at = this.selected === null ? -1 : this.shown.indexOf(this.selected);
    const seen = Math.min(this.first + BEYOND, this.shown.length - 1);
    const next = at >= 0 || Math.abs(by) > this.shown.length ? at + by : by > 0 ? seen : this.shown.length - 1;
    const message = this.shown[Math.max(0, Math.min(this.shown.length - 1, next))];
    if (message) this.select(message, false);
  }

  /**
   * Go to the next one for which something holds.
   * @param {(message: Message) => boolean} wanted @param {1 | -1} by
   */
  seek(wanted, by) {
    let at = this.selected === null ? (by > 0 ? -1 : this.shown.length) : this.shown.indexOf(this.selected);
    for (at += by; at >= 0 && at < this.shown.length; at += by) {
      const message = this.shown[at];
      if (message && wanted(message)) {
        this.select(message, false);
        return;
      }
    }
  }
}

function head() {
  const lanes = h("span", { class: "lanes" }, h("b", {}, "client"), h("b", {}, "Dragoman"), h("b", {}, "server"));
  const took = h("span", {}, h("span", { class: "server" }, "server"), " · ", h("span", { class: "ours" }, "Dragoman"), h("span", { class: "unseen" }, " took"));
  const cells = ["time", lanes, "message", h("span", { class: "unseen" }, "what became of it"), took];
  return h(
    "div",
    { class: "head", role: "row", "aria-rowindex": 1 },
    ...["time", "way", "what", "marks", "took"].map((name, index) =>
      h("span", { class: name, role: "columnheader" }, cells[index]),
    ),
  );
}

/**
 * Draw the way of a message: from its sender to the proxy, and on to the other side.
 * @param {Message} message @param {import("./messages.js").Mark} mark
 */
function way(message, mark) {
  const picture = s("svg", { viewBox: "0 0 200 30", width: 200, height: 30, "aria-hidden": "true" });
  if (mark === "event") {
    const x = message.from === "client" ? 16 : 184;
    picture.append(s("rect", { class: "event", x: x - 4, y: 11, width: 8, height: 8 }));
    return picture;
  }
  const isDashed = message.kind === "result" || message.kind === "error";
  const fromClient = message.from === "client";
  const [from, to] = fromClient ? [16, 184] : [184, 16];
  const sign = fromClient ? 1 : -1;
  const dashes = isDashed ? " dashed" : "";
  if (!message.isOurs) {
    picture.append(s("path", { class: `arrow from${dashes}`, d: `M${from} 15H${100 - sign * 8}` }), tip(100 - sign * 7, sign, "from"));
  }
  if (message.isOurs || message.sent !== 0) {
    picture.append(s("path", { class: `arrow to${dashes}`, d: `M${100 + sign * 7} 15H${to - sign * 3}` }), tip(to - sign * 2, sign, "to"));
  }
  picture.append(node(mark));
  return picture;
}

/** @param {number} x @param {number} sign @param {string} part */
function tip(x, sign, part) {
  return s("path", { class: `tip ${part}`, d: `M${x} 15l${-sign * 6} -3.5v7z` });
}

/** @param {import("./messages.js").Mark} mark */
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

/** @param {Message} message @param {import("./messages.js").Mark} mark */
function said(message, mark) {
  const who = message.isOurs ? "Dragoman" : (message.from === "server" && message.server) || message.from;
  const whom = message.isOurs ? message.from === "client" ? "the server" : "the client" : message.from === "client" ? message.server : "";
  return `${message.kind} from ${who}${whom && ` to ${whom}`}, ${MARKS[mark]}: `;
}

/** @param {Message} message */
function what(message) {
  const isAnswer = message.request !== null || message.kind === "result" || message.kind === "error";
  const indent = message.depth > 0 ? h("span", { class: "indent", "aria-hidden": "true" }, "╰ ".padStart(message.depth * 2, " ")) : null;
  return [
    indent,
    isAnswer ? h("span", { class: "answers", "aria-hidden": "true" }, "↩ ") : null,
    h("b", { class: "method" }, readable(message.method || message.kind)),
    message.name ? h("bdi", { class: "name" }, readable(message.name.slice(0, 120))) : null,
    message.words ? h("bdi", { class: "words", title: readable(message.words.slice(0, 500)) }, readable(message.words.slice(0, 200).replace(/\s+/g, " "))) : null,
  ];
}

/** @param {Message} message @param {import("./messages.js").Mark} mark */
function chips(message, mark) {
  const found = [];
  const lost = message.losses.filter((loss) => !loss.cosmetic).length;
  if (mark === "lost") found.push(h("span", { class: "chip lost" }, `${lost} lost`));
  else if (mark === "refused") found.push(h("span", { class: "chip refused" }, "refused"));
  else if (mark === "translated") found.push(h("span", { class: "chip translated", title: MARKS.translated }, "translated"));
  else if (mark === "emulated") found.push(h("span", { class: "chip emulated", title: MARKS.emulated }, "emulated"));
  if (message.server) found.push(h("bdi", { class: "chip server", title: readable(message.server) }, readable(message.server.slice(0, 40))));
  if (message.isFailure) found.push(h("span", { class: "chip failed" }, "error"));
  if (message.session) found.push(h("bdi", { class: "chip session" }, readable(message.session.replace(/^session /, "#").slice(0, 40))));
  return found;
}

/** @param {Message} message */
function took(message) {
  const request = message.kind === "request" ? message : null;
  if (request === null || request.answer === null) return [];
  const { server, ours } = timesOf(request);
  return [
    server === null ? null : h("span", { class: "server" }, writeDuration(server)),
    ours === null ? null : h("span", { class: "ours" }, server === null ? writeDuration(ours) : ` · ${writeDuration(ours)}`),
  ];
}

customElements.define("frame-list", FrameList);

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

