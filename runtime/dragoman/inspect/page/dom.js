/**
 * Making elements. What peers say becomes text nodes and attributes that hold text, never markup.
 */

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | EventListener>} Attributes
 */

/**
 * Make an element. A name that begins with `on` and has a function is a listener; `false` and null leave out.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return /** @type {HTMLElement} */ (fill(document.createElement(tag), attributes, children));
}

/**
 * Make an element of SVG.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return /** @type {SVGElement} */ (fill(element, attributes, children));
}

/**
 * @param {Element} element
 * @param {Attributes} attributes
 * @param {(Child | Child[])[]} children
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

/**
 * Make an element that holds nothing but a text, and is hidden as long as that is empty.
 * @param {string} tag
 * @param {string} named Its classes.
 * @param {Attributes} [attributes]
 */
export function textual(tag, named, attributes = {}) {
  return h(tag, { class: named, hidden: true, ...attributes }, new Text());
}

/**
 * Change the text of such an element. What is the same already is not touched: it would be laid out anew.
 * @param {HTMLElement} element @param {string} text
 */
export function setText(element, text) {
  const node = /** @type {Text} */ (element.firstChild);
  if (node.data === text) return;
  node.data = text;
  element.hidden = text === "";
}

/**
 * Give a sentence that has code between backticks as children of an element.
 * @param {string} text
 */
export function withCode(text) {
  return text.split("`").map((part, index) => (index % 2 === 1 ? h("code", {}, part) : part));
}

/**
 * Find an element that is known to be there.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * Put others in the place of what is in an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function put(element, ...children) {
  element.replaceChildren();
  fill(element, {}, children);
}

/**
 * Write a number of bytes for people.
 * @param {number} bytes
 */
export function writeSize(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(bytes < 1e4 ? 1 : 0)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/**
 * Write a duration for people; the argument is in milliseconds.
 * @param {number} ms
 */
export function writeDuration(ms) {
  if (ms < 0.9995) return `${Math.round(ms * 1000)} µs`;
  if (ms < 999.5) return `${ms < 9.995 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  const hours = Math.floor(ms / 3_600_000);
  return hours < 48 ? `${hours} h ${Math.floor((ms % 3_600_000) / 60_000)} min` : writeCount(Math.floor(hours / 24), "day");
}

/**
 * Write since when something is so, so that neighbours can be told apart; the argument is in milliseconds.
 * @param {number} ms
 */
export function writeMoment(ms) {
  if (ms < 1000) return writeDuration(ms);
  const seconds = (ms % 60_000) / 1000;
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  if (ms < 60_000) return `${seconds.toFixed(3)} s`;
  return `${hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}` : minutes}:${seconds.toFixed(hours > 0 ? 0 : 2).padStart(hours > 0 ? 2 : 5, "0")}`;
}

/**
 * Write a number with what is counted.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function writeCount(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
