// What fits a filter, found a slice at a time while more comes: `PAGE` is the folder of the page's modules.

import assert from "node:assert/strict";
import { test } from "node:test";

const { Conversation } = await import(`${process.env.PAGE}/model.js`);
const { Sieve } = await import(`${process.env.PAGE}/sieve.js`);
const { readFilter } = await import(`${process.env.PAGE}/filter.js`);

const line = (direction, side, connection, frame, more = {}) => JSON.stringify({ time: "2026-01-31T09:15:02.000001Z", process: 1, session: "session 1", side, connection, direction, frame, ...more });
const call = (id, text) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "t", arguments: { text } } });
const result = (id, text) => ({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } });

function make(filter, calls = 0) {
  const conversation = new Conversation();
  for (let id = 1; id <= calls; id += 1) conversation.add(line("received", "client", 1, call(id, `number ${id}`)));
  const sieve = new Sieve(conversation);
  sieve.start(readFilter(filter, () => conversation.isOver));
  return { conversation, sieve };
}
const ids = (sieve) => sieve.found.map((one) => Number(one.id));

test("the newest is found first, a slice at a time, and all of it in order in the end", () => {
  const { sieve } = make("number", 1000);
  sieve.sift(-1);
  assert.equal(sieve.isBusy, true);
  const first = ids(sieve);
  assert.ok(first.length > 0 && first.length < 100);
  assert.deepEqual(first, Array.from({ length: first.length }, (_, at) => 1001 - first.length + at));
  while (sieve.isBusy) sieve.sift(-1);
  assert.deepEqual(ids(sieve), Array.from({ length: 1000 }, (_, at) => at + 1));
});

test("what comes while older ones are looked at stands behind them", () => {
  const { conversation, sieve } = make("number", 200);
  sieve.sift(-1);
  conversation.add(line("received", "client", 1, call(201, "number 201")));
  conversation.add(line("received", "client", 1, call(202, "another")));
  sieve.takeIn();
  sieve.sift(Infinity);
  assert.deepEqual(ids(sieve), Array.from({ length: 201 }, (_, at) => at + 1));
});

test("a message is found once what is looked for is known of it, and goes once it is not so any more", () => {
  const open = make("is:open", 2);
  open.sieve.sift(Infinity);
  assert.deepEqual(ids(open.sieve), [1, 2]);
  open.conversation.add(line("sent", "client", 1, result(1, "done")));
  open.sieve.takeIn();
  assert.deepEqual(ids(open.sieve), [2]);

  const lost = make("lost:*");
  lost.conversation.add(line("received", "server", 2, result(7, "x")));
  lost.sieve.takeIn();
  assert.deepEqual(ids(lost.sieve), []);
  const losses = [{ pointer: "/result/x", kind: "dropped", bytes: 1, cosmetic: false }];
  lost.conversation.add(line("translated", "server", undefined, undefined, { method: "", before: result(7, "x"), after: result(7, "x"), losses }));
  lost.sieve.takeIn();
  assert.deepEqual(ids(lost.sieve), [7]);
});

test("what is not kept any more is not found any more, and what was not looked at yet is not waited for", () => {
  for (const ms of [-1, Infinity]) {
    const { conversation, sieve } = make("number", 500);
    sieve.sift(ms);
    conversation.most = 20_000;
    conversation.add(line("received", "client", 1, call(501, "number 501")));
    sieve.takeIn();
    sieve.sift(Infinity);
    assert.equal(sieve.isBusy, false);
    assert.deepEqual(sieve.found, conversation.messages);
    assert.ok(conversation.messages.length < 100);
    assert.equal(conversation.touched.size, 0);
  }
});

test("a text is looked for in frames alone, in capitals or not, and as it is rather than as JSON writes it", () => {
  for (const [filter, wanted] of [["connection", []], ['"session 1"', []], ["NUMBER", [1, 2, 3]], ['"said \\"so\\""', [3]], ['-"said \\"so\\""', [1, 2]], ["a\\b", [3]]]) {
    const { conversation, sieve } = make("", 2);
    conversation.add(line("received", "client", 1, call(3, 'number 3 said "so" at a\\b')));
    sieve.start(readFilter(filter));
    sieve.sift(Infinity);
    assert.deepEqual(ids(sieve), wanted, filter);
  }
});

test("a text is looked for in what came and in what went on", () => {
  const { conversation, sieve } = make("");
  conversation.add(line("received", "client", 1, call(1, "as it came")));
  conversation.add(line("translated", "client", undefined, undefined, { method: "tools/call", before: call(1, "as it came"), after: call(1, "as it went"), losses: [] }));
  conversation.add(line("sent", "server", 2, call(1, "as it went")));
  for (const filter of ['"it came"', '"it went"']) {
    sieve.start(readFilter(filter));
    sieve.sift(Infinity);
    assert.equal(sieve.found.length, 1, filter);
  }
});
