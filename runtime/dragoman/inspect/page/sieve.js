/**
 * What of a conversation fits a filter. It is found a slice at a time, the newest first: that is what people look at,
 * and the page goes on meanwhile.
 */

import { matches, readFilter } from "./filter.js";
import { placeOf } from "./messages.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {import("./model.js").Conversation} Conversation
 * @typedef {import("./filter.js").Filter} Filter
 */

/** How many messages are held against the filter before the clock is looked at. */
const AT_ONCE = 64;

export class Sieve {
  /** @param {Conversation} conversation */
  constructor(conversation) {
    this.conversation = conversation;
    this.filter = readFilter("");
    /** @type {Message[]} what fits, in order */
    this.found = [];
    /** The numbers of the oldest and of the newest message that were held against the filter. */
    this.oldest = 1;
    this.newest = 0;
  }

  /** Whether older ones were not held against the filter yet. */
  get isBusy() {
    return this.oldest > this.#first;
  }

  get #first() {
    return this.conversation.messages[0]?.number ?? this.oldest;
  }

  /**
   * Begin anew.
   * @param {Filter} filter
   */
  start(filter) {
    this.filter = filter;
    this.found = [];
    this.conversation.touched.clear();
    this.newest = this.conversation.messages.at(-1)?.number ?? 0;
    this.oldest = this.newest + 1;
  }

  /**
   * Hold older messages against the filter.
   * @param {number} ms For how long at most, about.
   */
  sift(ms) {
    const { filter, conversation } = this;
    const { messages } = conversation;
    const first = this.#first;
    const until = performance.now() + ms;
    /** @type {Message[]} */
    const fitting = [];
    while (this.oldest > first) {
      this.oldest -= 1;
      const message = messages[this.oldest - first];
      if (message && matches(filter, message, conversation)) fitting.push(message);
      if (this.oldest % AT_ONCE === 0 && performance.now() > until) break;
    }
    if (fitting.length > 0) this.found = [...fitting.reverse(), ...this.found];
  }

  /** Take in what has come since, what has changed since, and what is not kept any more. */
  takeIn() {
    const { filter, conversation, found } = this;
    const { messages, touched } = conversation;
    const first = this.#first;
    found.splice(0, placeOf(found, first));
    this.oldest = Math.max(this.oldest, first);
    for (const message of touched) if (message.number >= this.oldest && message.number <= this.newest) this.#reconsider(message);
    touched.clear();
    for (const message of messages.slice(Math.max(0, this.newest + 1 - first))) if (matches(filter, message, conversation)) found.push(message);
    this.newest = messages.at(-1)?.number ?? this.newest;
  }

  /**
   * Hold a message against the filter again: its answer has come, or what was lost of it is known.
   * @param {Message} message
   */
  #reconsider(message) {
    const at = placeOf(this.found, message.number);
    const isThere = this.found[at] === message;
    if (isThere === matches(this.filter, message, this.conversation)) return;
    if (isThere) this.found.splice(at, 1);
    else this.found.splice(at, 0, message);
  }
}
