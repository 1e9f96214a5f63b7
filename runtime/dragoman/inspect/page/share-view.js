/**
 * The dialog in which people choose what they give away, and see it before it is written.
 */

import { byId, h, put, writeCount, writeSize } from "./dom.js";
import { linesOf, makeRedaction, writeHar, writeHtml, writeNdjson } from "./share.js";
import { readable } from "./json-view.js";

/**
 * @typedef {import("./messages.js").Message} Message
 * @typedef {import("./source.js").Source} Source
 */

const FORMS = {
  html: { name: "one HTML file, which opens anywhere", file: "dragoman.html", type: "text/html" },
  ndjson: { name: "NDJSON, as --trace writes it", file: "dragoman.ndjson", type: "application/x-ndjson" },
  har: { name: "HAR, for tools that read HTTP", file: "dragoman.har", type: "application/json" },
};
const SHOWN = 20_000;

/**
 * Open the dialog.
 * @param {Source} source
 * @param {Message[]} shown What the filter lets through.
 */
export async function openShare(source, shown) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("share"));
  const bundle = source.recorded === null ? await (await fetch("/bundle")).text() : null;
  const known = bundle === null ? {} : await explainAll(source);
  const forms = Object.entries(FORMS).filter(([form]) => form !== "html" || bundle !== null);
  const all = source.conversation.messages;
  const choice = h("select", { name: "form" }, ...forms.map(([form, { name }]) => h("option", { value: form }, name)));
  const scope = h(
    "select",
    { name: "scope" },
    h("option", { value: "all" }, `everything here: ${writeCount(all.length, "message")}`),
    shown.length < all.length ? h("option", { value: "shown" }, `what the filter shows: ${writeCount(shown.length, "message")}`) : null,
  );
  const names = h("input", { name: "names", placeholder: "arguments, text, uri", autocomplete: "off" });
  const texts = h("textarea", { name: "texts", rows: 3, placeholder: "one a line: names, paths, addresses", autocomplete: "off" });
  const preview = h("pre", { class: "preview", tabindex: 0, "aria-label": "What will be written" });
  const size = h("output", { class: "size" });
  const what = h("span", {});
  const write = () => {
    const redact = makeRedaction(valueOf(names).split(","), valueOf(texts).split("\n"));
    const messages = valueOf(scope) === "shown" ? shown : all;
    const lines = linesOf(source.conversation, messages, redact);
    switch (valueOf(choice)) {
      case "har":
        return { text: writeHar(source.conversation, messages, redact, redact(source.about.server ?? "server"), "1"), seen: null };
      case "html":
        return { text: writeHtml(bundle ?? "", { about: redact({ ...source.about, what: "recorded", ...known }), status: redact(source.conversation.status), lines: lines.map((line) => JSON.stringify(line)) }), seen: writeNdjson(lines) };
      default:
        return { text: writeNdjson(lines), seen: null };
    }
  };
  const show = () => {
    const { text, seen } = write();
    const shownText = seen ?? text;
    preview.textContent = readable(shownText.slice(0, SHOWN)).replaceAll("\\u000a", "\n") + (shownText.length > SHOWN ? "\n…" : "");
    what.textContent = seen === null ? "What will be written" : "The messages in the page that will be written, a line each";
    size.textContent = writeSize(new Blob([text]).size);
  };
  for (const field of [choice, scope, names, texts]) field.addEventListener("input", show);
  const save = (/** @type {Event} */ event) => {
    event.preventDefault(); // the dialog stays, also where Enter in a field has pressed the button
    const form = FORMS[/** @type {keyof typeof FORMS} */ (valueOf(choice))];
    const link = /** @type {HTMLAnchorElement} */ (h("a", { download: form.file }));
    link.href = URL.createObjectURL(new Blob([write().text], { type: form.type }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  put(
    dialog,
    h(
      "form",
      { method: "dialog" },
      h("h2", { tabindex: -1, autofocus: true }, "Share what is here"),
      h("p", {}, "Secrets that Dragoman knows as such were taken out before anything came to this page. Take out what else nobody should see, and read the preview."),
      h("div", { class: "two" }, h("label", {}, h("span", {}, "Form"), choice), h("label", {}, h("span", {}, "Messages"), scope)),
      h("label", {}, h("span", {}, "Leave out the values of members with these names"), names),
      h("label", {}, h("span", {}, "Leave out these texts, wherever they stand"), texts),
      h("h3", {}, what, " · ", size),
      preview,
      h("div", { class: "buttons" }, h("button", { class: "primary", onclick: save }, "Save the file"), h("button", { value: "close" }, "Close")),
    ),
  );
  show();
  dialog.showModal();
}

/**
 * Say what works between the peers of each session, and why what was lost was lost, for a file that can ask nobody.
 * @param {Source} source
 */
async function explainAll(source) {
  /** @type {{explained: Record<string, any>, decided: Record<string, any>}} */
  const known = { explained: {}, decided: {} };
  for (const { client, servers } of source.conversation.sessions.values()) {
    const server = servers.at(-1);
    if (client.revision && server?.revision) {
      known.explained[`${client.revision}/${server.revision}`] = await source.explain(client.revision, server.revision);
    }
  }
  for (const { losses, isRefused, fromRevision, toRevision } of source.conversation.messages) {
    const pair = `${fromRevision}/${toRevision}`;
    if ((losses.length > 0 || isRefused) && !(pair in known.decided)) known.decided[pair] = await source.decide(fromRevision, toRevision);
  }
  return known;
}

/** @param {HTMLElement} field */
function valueOf(field) {
  return /** @type {HTMLInputElement} */ (field).value;
}
