/**
 * Where lines come from: a viewer that sends them as they come, or what stands in this very file.
 */

import { Conversation } from "./model.js";

/**
 * @typedef {object} About
 * @property {string} what `proxy`, `trace` or `recorded`.
 * @property {string} [server]
 * @property {string} [file]
 * @property {string[]} revisions
 * @property {{client: string, server: string}} [transports]
 * @property {Record<string, {feature: string, status: string, why: string}[]>} [explained] By both revisions.
 * @property {Record<string, import("./why.js").Step[]>} [decided] What the steps between them decide, likewise.
 * @property {string} [docs] Where the documentation is, if that is known.
 */

/** Read what stands in this file; null if it is a live page. */
export function readRecorded() {
  const element = document.getElementById("recorded");
  return element === null ? null : JSON.parse(element.textContent ?? "{}");
}

export class Source {
  /**
   * @param {Conversation} conversation
   * @param {(what: "lines" | "status" | "state") => void} changed
   */
  constructor(conversation, changed) {
    this.conversation = conversation;
    this.changed = changed;
    /** @type {"connecting" | "live" | "away" | "over" | "recorded"} */
    this.state = "connecting";
    /** @type {About} */
    this.about = { what: "proxy", revisions: [] };
    /** @type {any} */
    this.recorded = readRecorded();
    /** @type {Map<string, Promise<any>>} what was asked, by its path */
    this.told = new Map();
  }

  async start() {
    if (this.recorded !== null) {
      this.about = this.recorded.about;
      this.conversation.tell(this.recorded.status ?? null);
      for (const [index, line] of this.recorded.lines.entries()) this.conversation.add(line, index + 1);
      this.conversation.isOver = true;
      this.#become("recorded");
      return;
    }
    const answer = await fetch("/about");
    if (answer.ok) this.about = await answer.json();
    this.#listen();
  }

  #listen() {
    const events = new EventSource(`/events?from=${this.conversation.last + 1}`);
    events.addEventListener("open", () => this.#become("live"));
    events.addEventListener("error", () => this.#become("away"));
    events.addEventListener("lines", (event) => {
      for (const line of event.data.split("\n")) this.conversation.add(line);
      this.changed("lines");
    });
    events.addEventListener("missing", (event) => {
      this.conversation.missing += Number(event.data);
    });
    events.addEventListener("status", (event) => {
      this.conversation.tell(JSON.parse(event.data));
      this.changed("status");
    });
    events.addEventListener("over", () => {
      events.close();
      this.conversation.isOver = true;
      this.#become("over");
    });
  }

  /** @param {"live" | "away" | "over" | "recorded"} state */
  #become(state) {
    this.state = state;
    this.changed("state");
  }

  /**
   * Get a line whole, where the list has a short form of it.
   * @param {number} n
   * @returns {Promise<any>}
   */
  async whole(n) {
    const answer = await fetch(`/line/${n}`);
    if (!answer.ok) throw new Error("this frame is not kept any more");
    return answer.json();
  }

  /**
   * Say what works between a client and a server of these revisions.
   * @param {string} client @param {string} server
   * @returns {Promise<{feature: string, status: string, why: string}[]>}
   */
  explain(client, server) {
    return this.#ask("explain", `${client}/${server}`, this.about.explained);
  }

  /**
   * Say what the steps from one revision to another decide, and why.
   * @param {string} from @param {string} to
   * @returns {Promise<import("./why.js").Step[]>}
   */
  decide(from, to) {
    return this.#ask("why", `${from}/${to}`, this.about.decided);
  }

  /**
   * Ask once; a file that can ask nobody has what it was given.
   * @param {string} what @param {string} pair @param {Record<string, any[]> | undefined} kept
   */
  #ask(what, pair, kept) {
    if (!pair.split("/").every((revision) => this.about.revisions.includes(revision))) return Promise.resolve([]);
    const path = `/${what}/${pair}`;
    let found = this.told.get(path);
    if (found === undefined) {
      found = this.recorded ? Promise.resolve(kept?.[pair] ?? []) : fetch(path).then((answer) => (answer.ok ? answer.json() : []), () => []);
      this.told.set(path, found);
    }
    return found;
  }
}
