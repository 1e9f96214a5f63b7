/**
 * JSON that can be read: folded where it is large, with differences marked, built as it is opened.
 */

import { h } from "./dom.js";
import { isPlain, join } from "./difference.js";

/**
 * @typedef {import("./difference.js").Difference} Difference
 */

/** From here on members are folded, and more of them are shown at a click. */
const MANY = 100;
const OPEN_DEPTH = 4;
const LONG = 300;
const PIECE = 20_000;

const SIGNS = { changed: "~", gone: "−", new: "+", same: " ", inside: " " };
const SAID = { changed: "changed: ", gone: "gone: ", new: "new: ", same: "", inside: "" };

/**
 * Show a value.
 * @param {unknown} value
 * @param {Map<string, Difference>} [differences]
 * @param {Set<string>} [marked] Pointers that are to stand out.
 * @returns {HTMLElement}
 */
export function showJson(value, differences = new Map(), marked = new Set()) {
  return h("div", { class: "json", translate: "no" }, member("", value, "", 0, differences, marked, true));
}

/**
 * @param {string} label @param {unknown} value @param {string} pointer @param {number} depth
 * @param {Map<string, Difference>} differences @param {Set<string>} marked @param {boolean} isLast
 * @returns {HTMLElement}
 */
function member(label, value, pointer, depth, differences, marked, isLast) {
  const difference = differences.get(pointer) ?? "same";
  const attributes = {
    class: `member ${difference}${marked.has(pointer) ? " marked" : ""}`,
    "data-pointer": pointer,
  };
  const sign = h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[difference]);
  const said = SAID[difference] && h("span", { class: "unseen" }, SAID[difference]);
  const name = label === "" ? null : h("span", { class: "key" }, `${label}: `);
  const comma = isLast ? "" : ",";
  if (!isPlain(value) && !Array.isArray(value)) {
    return h("div", attributes, sign, said, name, scalar(value), comma);
  }
  const entries = Object.entries(value);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return h("div", attributes, sign, said, name, `${open}${close}${comma}`);
  const holds = difference === "inside" || [...marked].some((one) => one.startsWith(`${pointer}/`));
  const details = /** @type {HTMLDetailsElement} */ (
    h("details", { open: depth < OPEN_DEPTH && (entries.length <= MANY || holds) })
  );
  const counted = Array.isArray(value) ? entries.length : entries.map(([key]) => key).slice(0, 3).join(", ");
  const more = isPlain(value) && entries.length > 3 ? ", …" : "";
  details.append(
    h("summary", {}, sign, said, name, open, h("span", { class: "folded" }, ` ${counted}${more} ${close}${comma}`)),
  );
  const build = () => {
    if (!details.open || details.childElementCount > 1) return;
    const below = h("div", { class: "below" });
    grow(below, entries, 0, pointer, depth, differences, marked, Array.isArray(value));
    details.append(below, h("div", { class: "close" }, `${close}${comma}`));
  };
  details.addEventListener("toggle", build);
  build();
  return h("div", attributes, details);
}

/**
 * @param {HTMLElement} below @param {[string, unknown][]} entries @param {number} start @param {string} pointer
 * @param {number} depth @param {Map<string, Difference>} differences @param {Set<string>} marked @param {boolean} isList
 */
function grow(below, entries, start, pointer, depth, differences, marked, isList) {
  const end = Math.min(entries.length, start + MANY);
  for (let index = start; index < end; index += 1) {
    const [key, value] = /** @type {[string, unknown]} */ (entries[index]);
    const label = isList ? "" : JSON.stringify(key);
    below.append(member(label, value, join(pointer, key), depth + 1, differences, marked, index === entries.length - 1));
  }
  if (end < entries.length) {
    const more = h("button", { class: "more", type: "button" }, `${(entries.length - end).toLocaleString("en")} more`);
    more.addEventListener("click", () => {
      more.remove();
      grow(below, entries, end, pointer, depth, differences, marked, isList);
    });
    below.append(more);
  }
}

/** @param {unknown} value */
function scalar(value) {
  if (typeof value === "string") return text(value);
  return h("span", { class: value === null ? "null" : typeof value }, JSON.stringify(value) ?? "null");
}

/** @param {string} value */
function text(value) {
  const quoted = readable(JSON.stringify(value));
  if (quoted.length <= LONG) return h("bdi", { class: "string" }, quoted);
  const shown = h("bdi", { class: "string" }, `${quoted.slice(0, LONG)}…`);
  const more = h("button", { class: "more", type: "button" }, `${quoted.length.toLocaleString("en")} characters`);
  let end = LONG;
  more.addEventListener("click", () => {
    end = Math.min(quoted.length, end + PIECE);
    shown.textContent = end < quoted.length ? `${quoted.slice(0, end)}…` : quoted;
    if (end === quoted.length) more.remove();
  });
  return h("span", {}, shown, " ", more);
}

/**
 * Write signs that steer the direction of text, and others that nobody sees, as escapes: they could hide what is there.
 * @param {string} value
 */
export function readable(value) {
  return value.replace(
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
