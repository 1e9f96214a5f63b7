/**
 * The sequence: a row for each message. Only those that are seen are in the document, so a hundred thousand are as quick
 * as ten; and as it is scrolled, the same rows show others.
 */

import { h } from "./dom.js";
import { Row, ROW } from "./frame-row.js";
import { placeOf } from "./messages.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {{number: number, below: number}} Place A message, and how many pixels below the first row it stands.
 */

/** How many rows are there above and below those that are seen. */
const BEYOND = 8;
/** When they are drawn after a jump, which is quicker without them. */
const REST_MS = 100;

export class FrameList extends HTMLElement {
  constructor() {
    super();
    /** @type {Message[]} */
    this.shown = [];
    /** @type {Message | null} */
    this.selected = null;
    this.follows = true;
    this.isOver = false;
    this.start = 0;
    /** @type {Row[]} each shows the messages at a distance of as many as there are rows */
    this.rows = [];
    /** Differs from what it was once messages, or which one is selected, may have changed. */
    this.drawn = 0;
    this.isDue = false;
    this.body = h("div", { class: "rows", role: "rowgroup" });
    this.top = 0;
    this.rest = 0;
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
    this.addEventListener("pointerover", (event) => this.#pointed(event), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this);
  }

  /**
   * Show these, of which any may have changed.
   * @param {Message[]} shown @param {number} start When the first of all began.
   * @param {Place | null} [place] What is to stay where it is, if the newest is not followed.
   */
  show(shown, start, place = null) {
    this.shown = shown;
    this.start = start;
    this.body.style.height = `${shown.length * ROW}px`;
    this.setAttribute("aria-rowcount", String(shown.length + 1));
    if (this.follows) this.#toEnd();
    else if (place !== null) this.#move(placeOf(shown, place.number) * ROW - place.below);
    this.#redraw();
  }

  /**
   * Say what stands where, so that it can stand there again when others are shown.
   * @returns {Place | null}
   */
  get place() {
    const top = this.scrollTop;
    const chosen = this.selected === null ? -1 : this.shown.indexOf(this.selected);
    const isSeen = chosen >= 0 && chosen * ROW >= top && chosen * ROW < top + this.clientHeight - 2 * ROW;
    const index = isSeen ? chosen : Math.floor(top / ROW);
    const message = this.shown[index];
    return message === undefined ? null : { number: message.number, below: index * ROW - top };
  }

  #redraw() {
    this.drawn += 1;
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
    const [top, height] = [this.scrollTop, this.clientHeight];
    const isJump = Math.abs(top - this.top) > height;
    const beyond = isJump ? 0 : BEYOND;
    const first = Math.max(0, Math.floor(top / ROW) - beyond);
    const last = Math.min(this.shown.length, Math.ceil((top + height) / ROW) + beyond);
    const { rows } = this;
    while (rows.length < last - first) rows.push(new Row());
    for (let index = first; index < last; index += 1) {
      const row = /** @type {Row} */ (rows[index % rows.length]);
      row.show(/** @type {Message} */ (this.shown[index]), index, this);
      if (!row.element.isConnected) this.body.append(row.element);
    }
    // What others show is still so, unless the list has changed.
    for (const row of rows) if (row.drawn !== this.drawn) row.clear();
    this.top = top;
    clearTimeout(this.rest);
    if (isJump) this.rest = setTimeout(() => this.draw(), REST_MS);
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
    this.#move(this.shown.length * ROW);
  }

  /** @param {number} top */
  #move(top) {
    this.movingUntil = performance.now() + 80;
    this.scrollTop = top;
  }

  /** @param {boolean} follows */
  follow(follows) {
    this.follows = follows;
    if (follows) this.#toEnd();
    this.draw();
    this.dispatchEvent(new CustomEvent("follow"));
  }

  /** @param {Event} event @returns {Row | undefined} */
  #rowAt(event) {
    const element = /** @type {Element} */ (event.target).closest(".row");
    return this.rows.find((row) => row.element === element);
  }

  /** @param {Event} event */
  #clicked(event) {
    const message = this.#rowAt(event)?.message;
    if (message) this.select(message, true);
  }

  /** @param {Event} event */
  #pointed(event) {
    this.#rowAt(event)?.explain();
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
    this.drawn += 1;
    this.#draw();
    this.dispatchEvent(new CustomEvent("choose", { detail: { message, opens } }));
  }

  /** @param {number} index */
  #reveal(index) {
    const top = index * ROW;
    const head = ROW;
    if (top < this.scrollTop || top + ROW + head > this.scrollTop + this.clientHeight) {
      if (this.follows && index < this.shown.length - 1) this.follow(false);
      this.#move(Math.max(0, top - this.clientHeight / 3));
    }
  }

  /**
   * Go up or down by so many rows.
   * @param {number} by
   */
  step(by) {
    if (this.shown.length === 0) return;
    const at = this.selected === null ? -1 : this.shown.indexOf(this.selected);
    const seen = Math.min(Math.ceil(this.scrollTop / ROW), this.shown.length - 1);
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

customElements.define("frame-list", FrameList);
