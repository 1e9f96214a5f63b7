/**
 * What differs between a frame before and after translation: by JSON pointer, on both sides.
 */

/**
 * @typedef {"same" | "changed" | "gone" | "new" | "inside"} Difference
 * `inside`: something below it differs.
 */

/**
 * Compare two values.
 * @param {unknown} before
 * @param {unknown} after
 * @returns {{before: Map<string, Difference>, after: Map<string, Difference>}} by pointer; what is not there is the same
 */
export function compare(before, after) {
  /** @type {{before: Map<string, Difference>, after: Map<string, Difference>}} */
  const found = { before: new Map(), after: new Map() };
  walk(before, after, "", found);
  return found;
}

/**
 * @param {unknown} before @param {unknown} after @param {string} pointer
 * @param {{before: Map<string, Difference>, after: Map<string, Difference>}} found
 * @returns {boolean} whether they differ
 */
function walk(before, after, pointer, found) {
  if (Object.is(before, after)) return false;
  const isObject = isPlain(before) && isPlain(after);
  if (!isObject && !(Array.isArray(before) && Array.isArray(after))) {
    if (JSON.stringify(before) === JSON.stringify(after)) return false;
    found.before.set(pointer, "changed");
    found.after.set(pointer, "changed");
    return true;
  }
  const [old, young] = [new Map(Object.entries(/** @type {object} */ (before))), new Map(Object.entries(/** @type {object} */ (after)))];
  let differs = false;
  for (const [name, value] of old) {
    const below = join(pointer, name);
    if (!young.has(name)) {
      found.before.set(below, "gone");
      differs = true;
    } else if (walk(value, young.get(name), below, found)) differs = true;
  }
  for (const name of young.keys()) {
    if (!old.has(name)) {
      found.after.set(join(pointer, name), "new");
      differs = true;
    }
  }
  if (differs) {
    found.before.set(pointer, "inside");
    found.after.set(pointer, "inside");
  }
  return differs;
}

/**
 * Say where a member is (RFC 6901).
 * @param {string} pointer @param {string | number} name
 */
export function join(pointer, name) {
  return `${pointer}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/**
 * Take a pointer apart.
 * @param {string} pointer
 */
export function split(pointer) {
  return pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/**
 * Find what stands at a pointer; undefined where there is nothing.
 * @param {any} value @param {string} pointer
 */
export function find(value, pointer) {
  for (const part of split(pointer)) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
export function isPlain(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
