/**
 * One message: as it came and as it went on, side by side, with what differs, what was lost, and why.
 */

import { h, put, writeDuration, writeSize } from "./dom.js";
import { compare, find } from "./difference.js";
import { showHeaders } from "./http-view.js";
import { readable, showJson } from "./json-view.js";
import { markOf, timesOf } from "./messages.js";
import { MARKS } from "./frame-row.js";
import { reasonsOfLoss, reasonsOfRefusal } from "./why.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {import("./model.js").Conversation} Conversation
 * @typedef {import("./source.js").Source} Source
 */

/** What each kind of loss means. */
const KINDS = {
  dropped: "left out: the revision of the receiver has no such thing",
  replaced: "put in another form, which the receiver can read",
  added: "put there by Dragoman: the receiver needs it, and the sender did not say it",
  hidden: "not shown to the receiver, who could not use it",
  swallowed: "not passed on: the receiver's revision has no such notification",
  truncated: "cut off where the receiver's limit is",
  rewritten: "said in other words",
};

export class FrameView extends HTMLElement {
  constructor() {
    super();
    /** @type {Message | null} */
    this.message = null;
    /** @type {Source | null} */
    this.source = null;
    /** @type {"frames" | "raw"} */
    this.tab = "frames";
    /** @type {Map<number, any>} lines that were got whole */
    this.got = new Map();
  }

  /**
   * Show a message.
   * @param {Message} message
   */
  show(message) {
    if (message !== this.message) this.got.clear();
    this.message = message;
    this.draw();
  }

  draw() {
    const message = this.message;
    if (message === null || this.source === null) return;
    const conversation = this.source.conversation;
    const { before, after, isSame } = this.#frames(message, conversation);
    put(
      this,
      this.#head(message, conversation, isSame),
      message.losses.length > 0 || (message.isRefused && message.translated > 0) ? this.#losses(message, conversation) : null,
      this.tab === "raw" ? raw(before, after) : this.#sides(message, before, after, isSame),
      showHeaders(message, (n) => conversation.line(n)),
    );
  }

  /** @param {Message} message @param {Conversation} conversation @param {boolean} isSame */
  #head(message, conversation, isSame) {
    const mark = markOf(message, conversation.isOver);
    const failed = message.kind === "request" ? message.answer : message;
    const isStatus = message.kind === "event" && message.http.length > 0;
    const became = mark === "unchanged" && !isSame ? "passed as it came, but for ids, tokens or names that are others where several share a server" : mark === "refused" && message.translated === 0 ? "Dragoman has answered it with an error" : MARKS[mark];
    const request = message.request ?? message;
    const { asked, ours, whole } = timesOf(request);
    const facts = [
      ["kind", message.kind],
      ["from", message.isOurs ? "Dragoman" : message.from],
      ["session", message.session],
      ["server", message.server],
      ["id", message.id],
      ["revisions", [message.fromRevision, message.toRevision].filter(Boolean).join(" → ")],
      [request.from === "server" ? "client took" : "server took", asked === null ? "" : writeDuration(asked)],
      ["Dragoman took", ours === null ? "" : writeDuration(ours)],
      ["answered after", whole === null ? "" : writeDuration(whole)],
      ["size", message.bytes ? writeSize(message.bytes) : ""],
      ["at", new Date(message.time).toISOString().replace("T", " ").replace("Z", "")],
    ];
    return h(
      "header",
      { class: "of-frame" },
      h(
        "div",
        { class: "title" },
        h("h2", {}, readable(message.method || message.kind), message.name ? h("bdi", { class: "name" }, ` ${readable(message.name).slice(0, 200)}`) : null),
        h("button", { class: "close-view", type: "button", "aria-label": "Close (Esc)", title: "Close (Esc)", onclick: () => this.dispatchEvent(new CustomEvent("leave")) }, "×"),
      ),
      failed?.isFailure && failed.words && !isStatus && !message.isRefused ? h("p", { class: "failure" }, failed === message ? "" : "It failed: ", readable(failed.words)) : null,
      isStatus ? h("p", { class: "mark" }, h("b", {}, "HTTP status"), `: ${readable(message.words)}`) : h("p", { class: `mark is-${mark.replace(" ", "-")}` }, h("b", {}, mark), `: ${became.startsWith(mark) ? became.slice(mark.length + 2) : became}`),
      h("dl", { class: "facts" }, ...facts.filter(([, said]) => said).map(([name, said]) => h("div", {}, h("dt", {}, name ?? ""), h("dd", {}, readable(String(said)))))),
      h(
        "div",
        { class: "tools" },
        this.#jump("its answer", message.answer),
        this.#jump("its request", message.request),
        this.#jump("the call it belongs to", message.call),
        h("button", { type: "button", "aria-pressed": this.tab === "raw", onclick: () => this.toggle() }, "raw"),
        h("button", { type: "button", title: "Copy what was received (c)", onclick: () => this.copy() }, "copy"),
      ),
    );
  }

  /** @param {string} label @param {Message | null} to */
  #jump(label, to) {
    if (to === null) return null;
    return h("button", { type: "button", onclick: () => this.dispatchEvent(new CustomEvent("jump", { detail: to })) }, `→ ${label}`);
  }

  /** @param {Message} message @param {Conversation} conversation */
  #losses(message, conversation) {
    const line = conversation.line(message.translated);
    const refused = line?.refused;
    const frame = { method: message.method, kind: message.kind, code: line?.before?.error?.code };
    const decided = this.source?.decide(message.fromRevision, message.toRevision) ?? Promise.resolve([]);
    /** @param {(steps: import("./why.js").Step[]) => import("./why.js").Reason[]} find */
    const because = (find) => {
      const place = h("div", { class: "because" });
      void decided.then((steps) => put(place, ...find(steps).map((reason) => sayReason(reason, this.source?.about.docs ?? ""))));
      return place;
    };
    return h(
      "section",
      { class: "losses", "aria-label": "What was lost" },
      refused ? h("p", { class: "refusal" }, h("b", {}, "Refused: "), readable(String(refused.message))) : null,
      refused ? because((steps) => reasonsOfRefusal(steps, frame, String(refused.message))) : null,
      message.losses.length
        ? h(
            "ul",
            {},
            ...message.losses.slice(0, 200).map((loss) =>
              h(
                "li",
                { class: loss.cosmetic ? "cosmetic" : "real" },
                h("button", { type: "button", class: "pointer", onclick: () => this.#point(loss.pointer) }, readable(String(loss.pointer)) || "/"),
                h("bdi", { class: "name" }, readable(nameOf(line?.before, loss.pointer))),
                h("span", { class: "chip" }, readable(String(loss.kind))),
                loss.cosmetic ? h("span", { class: "chip" }, "cosmetic") : null,
                h("span", { class: "why" }, ` ${/** @type {Record<string, string>} */ (KINDS)[loss.kind] ?? ""} (${writeSize(loss.bytes)})`),
                because((steps) => reasonsOfLoss(steps, frame, loss, find(line?.before, loss.pointer))),
              ),
            ),
            message.losses.length > 200 ? h("li", {}, `and ${message.losses.length - 200} more`) : null,
          )
        : null,
      h("p", { class: "pages" }, ...pages(message)),
    );
  }

  /** @param {string} pointer */
  #point(pointer) {
    for (const element of this.querySelectorAll(".pointed")) element.classList.remove("pointed");
    let wanted = pointer;
    let found = null;
    while (found === null && wanted !== "") {
      found = [...this.querySelectorAll(".member")].find((element) => element.getAttribute("data-pointer") === wanted) ?? null;
      if (found === null) wanted = wanted.slice(0, wanted.lastIndexOf("/"));
    }
    if (found instanceof HTMLElement) {
      for (let above = found.parentElement; above && above !== this; above = above.parentElement) {
        if (above instanceof HTMLDetailsElement) above.open = true;
      }
      found.classList.add("pointed");
      found.scrollIntoView({ block: "center" });
    }
  }

  /** @param {Message} message @param {any} before @param {any} after @param {boolean} isSame */
  #sides(message, before, after, isSame) {
    const lost = new Set(message.losses.map((loss) => loss.pointer));
    const large = [message.received, message.translated, message.sent].find((n) => this.#line(n)?.large && !this.got.has(n));
    const offer = large ? this.#offer(large) : null;
    if (isSame) {
      const whose = message.kind === "event" ? (message.http.length > 0 ? "the exchange" : "what the trace says") : message.isOurs ? `from Dragoman, to the ${message.from === "client" ? "server" : "client"}` : `from ${sender(message)}, the same on both sides`;
      return h("section", { class: "sides one" }, offer, side(whose, before ?? after, new Map(), lost));
    }
    if (before === undefined || after === undefined || after === null) {
      const whole = before ?? after;
      const why = before === undefined ? `from Dragoman, to the ${message.from === "client" ? "server" : "client"}` : `from ${sender(message)}, and no further`;
      return h("section", { class: "sides one" }, offer, side(why, whole, new Map(), lost));
    }
    const differences = compare(before, after);
    return h(
      "section",
      { class: "sides" },
      offer,
      side(`before · ${message.fromRevision || who(message)}`, before, differences.before, lost),
      side(`after · ${message.toRevision || (message.from === "client" ? message.server || "server" : "client")}`, after, differences.after, new Set()),
    );
  }

  /** @param {number} n */
  #offer(n) {
    const size = writeSize(this.#line(n)?.large ?? 0);
    if (this.source?.recorded) return h("p", { class: "large" }, `This frame is large (${size}), and shortened here.`);
    const button = h("button", { type: "button" }, `show all of it (${size})`);
    button.addEventListener("click", async () => {
      button.setAttribute("disabled", "");
      try {
        for (const one of [this.message?.received, this.message?.translated, this.message?.sent]) {
          if (one && this.#line(one)?.large) this.got.set(one, await this.source?.whole(one));
        }
        this.draw();
      } catch (error) {
        button.textContent = error instanceof Error ? error.message : String(error);
      }
    });
    return h("p", { class: "large" }, "This frame is large, and shortened here: ", button);
  }

  /** @param {number} n */
  #line(n) {
    return n === 0 ? null : (this.got.get(n) ?? this.source?.conversation.line(n));
  }

  /**
   * @param {Message} message @param {Conversation} conversation
   * @returns {{before: any, after: any, isSame: boolean}}
   */
  #frames(message, conversation) {
    const received = this.#line(message.received);
    const translated = this.#line(message.translated);
    const sent = this.#line(message.sent);
    if (message.kind === "event") {
      const { direction, reason, method, status } = received ?? {};
      return { before: direction === "http" ? { method, status } : { direction, reason }, after: undefined, isSame: true };
    }
    if (message.kind === "malformed") {
      const line = received ?? sent;
      return { before: { malformed: line?.malformed, line: line?.line }, after: undefined, isSame: true };
    }
    const before = (message.server === "" ? translated?.before : null) ?? partOf(received?.frame, message);
    const after = partOf(sent?.frame, message) ?? (translated ? translated.after : undefined);
    const isSame = before !== undefined && after !== undefined && JSON.stringify(before) === JSON.stringify(after);
    return { before, after, isSame };
  }

  toggle() {
    this.tab = this.tab === "raw" ? "frames" : "raw";
    this.draw();
  }

  /** Copy the message as it came, or as we have said it. */
  async copy() {
    const message = this.message;
    if (message === null || this.source === null) return;
    const { before, after } = this.#frames(message, this.source.conversation);
    await navigator.clipboard.writeText(JSON.stringify(before ?? after));
    this.dispatchEvent(new CustomEvent("copied"));
  }
}

/**
 * Find a message in the batch that brought it.
 * @param {any} frame @param {Message} message
 */
function partOf(frame, message) {
  if (!Array.isArray(frame)) return frame;
  const ids = [message.id, message.request?.id];
  return frame.find((one) => (one?.method ?? "") === (message.request ? "" : message.method) && (one?.id === undefined || ids.includes(JSON.stringify(one.id)))) ?? frame;
}

/**
 * Say what the thing that was lost calls itself; empty where it has no name.
 * @param {any} frame @param {string} pointer
 */
function nameOf(frame, pointer) {
  const name = find(frame, String(pointer))?.name;
  return typeof name === "string" ? name.slice(0, 120) : "";
}

/** @param {Message} message */
function sender(message) {
  return message.isOurs ? "Dragoman" : `the ${message.from}`;
}

/** @param {Message} message */
function who(message) {
  return message.isOurs ? "Dragoman" : message.from;
}

/**
 * @param {string} title @param {any} value
 * @param {Map<string, import("./difference.js").Difference>} differences @param {Set<string>} lost
 */
function side(title, value, differences, lost) {
  return h("div", { class: "side", tabindex: 0, role: "group", "aria-label": readable(title) }, h("h3", {}, readable(title)), showJson(value, differences, lost));
}

/** @param {any} before @param {any} after */
function raw(before, after) {
  const texts = [before, after].filter((value) => value !== undefined && value !== null).map((value) => JSON.stringify(value));
  const shown = texts[0] === texts[1] ? texts.slice(0, 1) : texts;
  return h(
    "section",
    { class: "sides" },
    ...shown.map((text) => {
      const cut = text.length > 200_000;
      return h("pre", { class: "raw", tabindex: 0 }, readable(cut ? text.slice(0, 200_000) : text), cut ? ` … ${writeSize(text.length)}` : "");
    }),
  );
}

/**
 * Say a decision: what it is called, why it is so, and where that is written.
 * @param {import("./why.js").Reason} reason @param {string} docs
 */
function sayReason({ step, decision }, docs) {
  const page = /^https:/.test(docs) ? h("a", { href: docs + step.page.replace(/^docs/, ""), target: "_blank", rel: "noreferrer" }, step.page) : h("code", {}, step.page);
  return h(
    "p",
    { class: "reason" },
    decision.reason,
    h("span", { class: "decision" }, ...(decision.name ? [h("b", {}, decision.name), ", "] : []), `${step.from} → ${step.to}, `, page),
  );
}

/** @param {Message} message */
function pages(message) {
  const { fromRevision, toRevision } = message;
  if (!fromRevision || !toRevision || fromRevision === toRevision) return [];
  return ["What differs between the two revisions: ", h("code", {}, readable(`dragoman diff ${fromRevision} ${toRevision}`))];
}

customElements.define("frame-view", FrameView);
