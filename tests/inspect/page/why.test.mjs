// Which decision fits a loss: `PAGE` is the folder of the page's modules, `REASONS` that of what the viewer serves.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const { reasonsOfLoss, reasonsOfRefusal } = await import(`${process.env.PAGE}/why.js`);
const steps = (from, to) => JSON.parse(readFileSync(`${process.env.REASONS}/${from} ${to}.json`, "utf-8"));
const down = steps("2025-11-25", "2024-11-05");

const LOSSES = [
  ["tools/list", "result", "/result/tools/12", "hidden", false, undefined, "hide-tools-that-need-tasks"],
  ["tools/list", "result", "/result/tools/0/icons", "dropped", true, [], "leave-out-icons"],
  ["initialize", "result", "/result/serverInfo/icons", "dropped", true, [], "leave-out-icons"],
  ["prompts/list", "result", "/result/prompts/0/title", "dropped", true, "T", "leave-out-titles"],
  ["tools/call", "result", "/result/content/0", "replaced", false, { type: "audio" }, "replace-audio-by-text"],
  ["tools/call", "result", "/result/content/0", "replaced", false, { type: "resource_link" }, "replace-resource-links-by-text"],
];
for (const [method, kind, pointer, loss, cosmetic, value, name] of LOSSES) {
  test(`${loss} at ${pointer} is ${name}`, () => {
    const found = reasonsOfLoss(down, { method, kind }, { pointer, kind: loss, cosmetic }, value);
    assert.deepEqual(found.map(({ decision }) => decision.name), [name]);
    assert.match(found[0].step.page, /^docs\/steps\/2025-\d\d-\d\d\.md$/);
  });
}

test("a field that is only not named says which revision does not name it", () => {
  const [{ step, decision }] = reasonsOfLoss(down, { method: "tools/call", kind: "result" }, { pointer: "/result/structuredContent", kind: "dropped", cosmetic: false });
  assert.deepEqual([step.from, decision.do, decision.reason], ["2025-06-18", "drop", "2025-03-26 does not name this field."]);
});

test("what a newer revision requires says so on the way up", () => {
  const up = steps("2024-11-05", "2026-07-28");
  const found = reasonsOfLoss(up, { method: "tools/list", kind: "result" }, { pointer: "/result/ttlMs", kind: "added", cosmetic: false });
  assert.deepEqual(found.map(({ decision }) => decision.name), ["stamp-time-to-live"]);
});

test("a refusal is found by what it says, and else by its method", () => {
  const said = "cannot translate elicitation/create from 2025-11-25 to 2025-06-18 at /params: This client's revision cannot open a URL for a person: https://example.com/x?a=(b";
  const [asked] = reasonsOfRefusal(down, { method: "elicitation/create", kind: "request" }, said);
  assert.equal(asked.decision.name, "refuse-url-elicitation");
  const [gone] = reasonsOfRefusal(down, { method: "tasks/get", kind: "request" }, "no such thing");
  assert.equal(gone.decision.method, "tasks/get");
});

test("a notification that was swallowed, a method nobody knows, and pointers that are odd", () => {
  const at = (method, kind, pointer, loss) => reasonsOfLoss(down, { method, kind }, { pointer, kind: loss, cosmetic: false });
  assert.equal(at("notifications/tasks/status", "notification", "", "swallowed")[0].decision.do, "swallow");
  for (const odd of ["", "/", "/__proto__/constructor", "/result/tools/x/y/z", "nonsense", `${"/a".repeat(500)}`]) {
    assert.deepEqual(at("never/heard", "result", odd, "dropped"), []);
    at("tools/list", "result", odd, "dropped");
  }
  assert.deepEqual(at("constructor", "result", "/result", "dropped"), []);
});
