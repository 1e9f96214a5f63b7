/**
 * The sessions: who talks to whom, in which revisions and how those were agreed, what is open, and what works between
 * the two.
 */

import { h, put, writeCount, writeDuration, withCode } from "./dom.js";
import { readable } from "./json-view.js";
import { isShared, serversOf, stateOf } from "./peers.js";

/**
 * @typedef {import("./peers.js").Session} Session
 * @typedef {import("./peers.js").Peer} Peer
 * @typedef {import("./source.js").Source} Source
 */

/** What is said of each server. */
const COLUMNS = ["server", "state", "revision", "clients", "restarts", "trouble"];

const SIGNS = { works: "●", emulated: "◆", lost: "▲" };

export class SessionView extends HTMLElement {
  constructor() {
    super();
    /** @type {Source | null} */
    this.source = null;
    /** @type {Set<string>} */
    this.opened = new Set();
    /** @type {Map<string, {said: string, card: Element | null}>} what is drawn, with what it says */
    this.cards = new Map();
    /** Whether somebody is about to click. */
    this.isPressed = false;
    this.addEventListener("pointerdown", () => {
      this.isPressed = true;
    });
    addEventListener("pointerup", () => setTimeout(() => { this.isPressed = false; }));
  }

  /** Draw what has changed; what has the focus keeps it. */
  draw() {
    const source = this.source;
    if (source === null || this.isPressed) return;
    const { conversation } = source;
    const all = [...conversation.sessions.values()];
    const ended = new Set(all.filter((one) => stateOf(one, all, conversation.isOver).said === "ended"));
    const sessions = all.sort((one, other) => Number(ended.has(one)) - Number(ended.has(other)) || one.since - other.since);
    const focused = this.#focused();
    const shared = JSON.stringify(sessions.filter((one) => isShared(one.label)).map((one) => one.servers));
    const cards = [
      this.#keep("the servers", JSON.stringify(conversation.status), () => this.#servers(conversation.status)),
      sessions.length === 0 ? h("p", { class: "nothing" }, "No session has begun yet.") : null,
      ...sessions.map((session) => this.#keep(`session ${session.label}`, sayAll(session, conversation.isOver) + shared + parkedIn(session, conversation).map(([call]) => call.number), () => this.#card(session, source))),
    ].filter((card) => card !== null);
    if (cards.length !== this.childElementCount || cards.some((card, index) => this.children[index] !== card)) {
      put(this, ...cards);
      if (focused !== null) this.#focus(focused);
    }
    // What is under way in a file was so when the file was last written to.
    const now = source.about.what === "trace" ? (conversation.messages.at(-1)?.time ?? 0) : Date.now();
    for (const age of this.querySelectorAll("[data-since]")) {
      age.textContent = writeDuration(Math.max(0, now - Number(age.getAttribute("data-since"))));
    }
  }

  /**
   * @param {string} key @param {string} said @param {() => Element | null} make
   * @returns {Element | null}
   */
  #keep(key, said, make) {
    const kept = this.cards.get(key);
    if (kept !== undefined && kept.said === said) return kept.card;
    const card = make();
    if (card !== null) card.setAttribute("data-card", key);
    this.cards.set(key, { said, card });
    return card;
  }

  /** @returns {{card: string, index: number} | null} which control has the focus */
  #focused() {
    const card = document.activeElement?.closest("[data-card]");
    if (!card || !this.contains(card)) return null;
    return { card: card.getAttribute("data-card") ?? "", index: [...card.querySelectorAll("button, summary")].indexOf(/** @type {Element} */ (document.activeElement)) };
  }

  /** @param {{card: string, index: number}} focused */
  #focus({ card, index }) {
    const found = [...this.children].find((one) => one.getAttribute("data-card") === card);
    const control = found?.querySelectorAll("button, summary")[index];
    if (control instanceof HTMLElement) control.focus();
  }

  /** @param {Record<string, any> | null} status */
  #servers(status) {
    if (!status || !Array.isArray(status.servers)) return null;
    const problems = Object.entries(status.problems ?? {});
    const away = Object.entries(status.turned_away ?? {});
    const servers = alike(status.servers);
    const [first] = servers;
    const isPlain = servers.length === 1 && !first?.name && !first?.trouble && first?.clients <= (first?.count ?? 0) && !first?.restarts;
    if (isPlain && problems.length === 0 && away.length === 0) return null; // the session's card says all of it
    if (status.servers.length === 0 && problems.length === 0 && away.length === 0) return null;
    return h(
      "section",
      { class: "card servers" },
      h("h2", {}, "The servers", h("span", { class: `state ${status.ready ? "open" : "away"}` }, status.ready ? "ready" : "not ready")),
      servers.length
        ? h(
            "table",
            {},
            h("thead", {}, h("tr", {}, ...COLUMNS.map((name) => h("th", { scope: "col" }, name)))),
            h(
              "tbody",
              {},
              ...servers.map((server) =>
                h(
                  "tr",
                  {},
                  ...[`${server.name || "the server"}${server.count > 1 ? `, ${server.count} times` : ""}`, server.state, server.revision ?? "–", server.clients, server.restarts, server.trouble].map((cell, index) => h("td", { "data-of": COLUMNS[index] }, readable(String(cell)))),
                ),
              ),
            ),
          )
        : null,
      ...problems.map(([name, problem]) => h("p", { class: "trouble" }, h("b", {}, `${name || "the server"}: `), readable(String(problem)))),
      ...away.map(([option, count]) => h("p", {}, `turned away by ${option}: ${count}`)),
    );
  }

  /** @param {Session} session @param {Source} source */
  #card(session, source) {
    const { conversation, about } = source;
    const sessions = [...conversation.sessions.values()];
    const servers = serversOf(session, sessions);
    const server = servers.length === 1 ? servers[0]?.server : undefined;
    const state = stateOf(session, sessions, conversation.isOver);
    const parked = parkedIn(session, conversation);
    const open = conversation.isOver ? [] : [...session.open].filter((one) => !parked.some(([call]) => call === one.call));
    const transport = about.transports?.server ?? "";
    return h(
      "article",
      { class: "card" },
      h("h2", {}, h("bdi", {}, readable(session.label) || "The session"), h("span", { class: `state ${state.said.replaceAll(" ", "-")}` }, state.said)),
      h(
        "div",
        { class: "pair" },
        isShared(session.label) ? h("p", { class: "peer client" }, "several sessions share it") : peer("client", session.client, session.client.transport || (about.transports?.client ?? "")),
        h("div", { class: "joint", "aria-hidden": "true" }, "⟷"),
        server ? peer("server", server, transport) : h("p", { class: "peer server" }, servers.length > 1 ? `${servers.length} servers behind the router` : "no server has answered yet"),
      ),
      servers.length > 1 ? this.#behind(session, servers) : null,
      server?.refusal ? h("p", { class: "trouble" }, h("b", {}, "The server refused to open a session: "), readable(server.refusal)) : null,
      ...servers.filter(({ server: one }) => one.trouble !== "" && one.trouble !== one.refusal).map(({ server: one }) => h("p", { class: "trouble" }, h("b", {}, `${readable(one.server) || "The server"} ${one.isAnswering ? "answered with an error" : "did not answer"}: `), readable(one.trouble))),
      ...session.refused.map((question) => h("p", { class: "trouble" }, h("b", {}, "A question of the server was refused: "), readable(question))),
      servers.length === 1 && servers[0]?.losses.length ? h("p", { class: "trouble" }, h("b", {}, lost(servers[0].losses)), readable(servers[0].losses.at(-1) ?? "")) : null,
      state.said === "ended" && state.why && state.why !== "the session is over" ? h("p", { class: "ended" }, `Why it ended: ${readable(state.why)}`) : null,
      h(
        "p",
        { class: "counts" },
        h("button", { type: "button", onclick: () => this.#filter(session, "") }, writeCount(session.messages, "message")),
        session.losses ? h("button", { type: "button", class: "lost", onclick: () => this.#filter(session, "lost:*") }, `${session.losses} with losses`) : null,
        session.failures ? h("button", { type: "button", class: "failed", onclick: () => this.#filter(session, "is:failure") }, writeCount(session.failures, "error")) : null,
      ),
      session.tasks.size
        ? h("p", {}, `Tasks: ${[...session.tasks].map(([id, state]) => `${readable(id).slice(0, 40)} ${readable(state)}`).slice(-10).join(", ")}`)
        : null,
      listing("Under way", open.map((request) => [request, kindOf(request)])),
      listing("Parked until the client comes back with answers", parked.map(([call, asked]) => [call, h("bdi", {}, `asks ${readable(asked)}`)])),
      ...[...new Set(servers.map((one) => one.server.revision))].map((revision) => this.#explanation(session.client.revision, revision, source)),
    );
  }

  /** @param {Session} session @param {{server: Peer, losses: string[]}[]} servers */
  #behind(session, servers) {
    return h(
      "table",
      { class: "behind" },
      h("thead", {}, h("tr", {}, ...["server", "state"].map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        {},
        ...servers.map(({ server, losses }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("button", { type: "button", class: "link", onclick: () => this.#filter(session, `server:${JSON.stringify(server.server)}`) }, h("bdi", {}, readable(server.server))), h("bdi", { class: "version" }, readable([`${server.name} ${server.version}`.trim(), server.revision].filter(Boolean).join(" · ")))),
            h("td", {}, sayServer(server, losses)),
          ),
        ),
      ),
    );
  }

  /** @param {Session} session @param {string} what */
  #filter(session, what) {
    const which = session.label ? `session:"${session.label}"` : "";
    this.dispatchEvent(new CustomEvent("look", { detail: `${which} ${what}`.trim() }));
  }

  /** @param {string} client @param {string} server @param {Source} source */
  #explanation(client, server, source) {
    const known = source.about.revisions;
    if (!known.includes(client) || !known.includes(server)) return null;
    const pair = `${client}/${server}`;
    const details = h("details", { class: "explained", open: this.opened.has(pair) });
    details.append(h("summary", {}, `What works between ${client} and ${server}`));
    const fill = async () => {
      if (!(/** @type {HTMLDetailsElement} */ (details).open) || details.childElementCount > 1) return;
      const rows = await source.explain(client, server);
      if (details.childElementCount > 1) return;
      details.append(
        rows.length === 0
          ? h("p", {}, `dragoman explain --client ${client} --server ${server}`)
          : h(
              "ul",
              {},
              ...rows.map((row) =>
                h("li", { class: row.status }, h("span", { class: "sign", "aria-hidden": "true" }, /** @type {Record<string, string>} */ (SIGNS)[row.status] ?? "·"), h("b", {}, row.feature), h("span", { class: "unseen" }, ` ${row.status}: `), " ", ...withCode(row.why)),
              ),
            ),
      );
    };
    details.addEventListener("toggle", () => {
      if (/** @type {HTMLDetailsElement} */ (details).open) this.opened.add(pair);
      else this.opened.delete(pair);
      void fill();
    });
    void fill();
    return details;
  }
}

/**
 * The calls that go on when their clients come back; nobody does whose session is over.
 * @param {Session} session @param {Source["conversation"]} conversation
 */
function parkedIn(session, { isOver, joining, status }) {
  const isGone = isOver || session.client.ended !== "" || session.client.isClosed;
  return isGone ? [] : joining.parkedOf(session.label, status?.parked);
}

/**
 * List requests with their ages.
 * @param {string} what @param {[import("./messages.js").Message, Element | null][]} requests each with what else is to be said of it
 */
function listing(what, requests) {
  if (requests.length === 0) return null;
  return h(
    "section",
    { class: "under-way" },
    h("h3", {}, `${what}: ${requests.length}`),
    h(
      "ul",
      {},
      ...requests.slice(0, 20).map(([request, more]) =>
        h("li", {}, h("b", {}, readable(request.method)), " ", h("bdi", {}, readable(request.name)), " ", more, h("span", { class: "age", "data-since": request.time }, "")),
      ),
    ),
  );
}

/** @param {import("./messages.js").Message} request */
function kindOf(request) {
  const kind = request.from === "server" ? "question" : request.method === "subscriptions/listen" ? "listener" : "";
  return kind ? h("span", { class: "chip" }, kind) : null;
}

/**
 * Put those together of which the same is to be said: each session may have a server of its own.
 * @param {any[]} servers
 */
function alike(servers) {
  /** @type {Map<string, any>} */
  const found = new Map();
  for (const server of servers) {
    const key = JSON.stringify([server.name, server.state, server.revision, server.trouble]);
    const { clients = 0, restarts = 0, count = 0 } = found.get(key) ?? {};
    found.set(key, { ...server, count: count + 1, clients: clients + Number(server.clients || 0), restarts: restarts + Number(server.restarts || 0) });
  }
  return [...found.values()];
}

/** @param {string[]} losses */
function lost(losses) {
  return losses.length === 1 ? "The server was lost: " : `The server was lost ${losses.length} times, at last: `;
}

/** @param {Peer} server @param {string[]} losses */
function sayServer(server, losses) {
  if (server.refusal !== "") return h("span", { class: "trouble" }, `refused: ${readable(server.refusal)}`);
  if (server.ended !== "" && !server.isLeaving) return h("span", { class: "trouble" }, `gone: ${readable(server.ended)}`);
  const state = server.isClosed || server.isLeaving ? "ended" : server.revision === "" ? "opening" : "open";
  return losses.length === 0 ? state : h("span", {}, `${state}, `, h("span", { class: "trouble" }, `lost ${losses.length === 1 ? "once" : `${losses.length} times`}: ${readable(losses.at(-1) ?? "")}`));
}

/**
 * Everything that a card says.
 * @param {Session} session @param {boolean} isOver
 */
function sayAll({ open, tasks, ...session }, isOver) {
  return JSON.stringify([session, isOver, [...open].map((request) => request.number), [...tasks]]);
}

/** @param {string} role @param {Peer} peer @param {string} transport */
function peer(role, peer, transport) {
  const offered = role === "client" ? `asked for ${peer.offered}` : `was offered ${peer.offered}`;
  const agreed =
    peer.offered && peer.revision && peer.offered !== peer.revision
      ? `${offered}, speaks ${peer.revision}`
      : peer.revision
        ? `speaks ${peer.revision}`
        : peer.offered
          ? offered
          : "its revision is not known yet";
  return h(
    "div",
    { class: `peer ${role}` },
    h("span", { class: "role" }, transport ? `${role}, over ${transport}` : role),
    h("b", {}, readable(peer.title || peer.name || "unnamed")),
    h("span", { class: "version" }, readable(peer.title ? `${peer.name} ${peer.version}` : peer.version && `version ${peer.version}`)),
    h("span", { class: "agreed" }, readable(agreed)),
    peer.declared ? h("span", { class: "declared" }, `declares ${readable(peer.declared)}`) : null,
  );
}

customElements.define("session-view", SessionView);
