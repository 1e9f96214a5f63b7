// What `looking.py` measures, in Chromium: `node looking.mjs FOLDER PROGRAM URL MESSAGES ROUNDS`.

import { readFileSync } from "node:fs";

const [folder, program, url, messages, rounds] = process.argv.slice(2);
const { default: puppeteer } = await import(`${folder}/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js`);
const options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"];
const browser = await puppeteer.launch({ executablePath: program, headless: true, args: options, timeout: 60_000, protocolTimeout: 600_000 });
const FILTERS = ["kind:error", 'method:tools/call session:2 lost:* "fox"', "fox", "supper -dog", "nowhere", "is:slow", ""];
const least = (values) => Math.min(...values);

try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  const session = await page.createCDPSession();
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => 1000 * (await session.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value;
  await page.goto(url, { waitUntil: "load" });
  const all = (wanted) => Number(/([\d,]+) messages/.exec(document.getElementById("counts").innerText)?.[1].replaceAll(",", "")) >= wanted;
  await page.waitForFunction(all, { timeout: 600_000, polling: 200 }, Number(messages));

  for (const [name, step] of [["a wheel's step a frame", 100], ["a page a frame", 840], ["a random jump a frame", 0]]) {
    const seen = [];
    for (let round = 0; round < rounds; round += 1) {
      const before = await busy();
      const { frames, ms } = await page.evaluate(scroll, step);
      seen.push({ rate: (frames * 1000) / ms, cpu: ((await busy()) - before) / frames });
    }
    const [best, cpu] = [Math.max(...seen.map((one) => one.rate)), least(seen.map((one) => one.cpu))];
    console.log(`  ${name.padEnd(44)} ${best.toFixed(0).padStart(4)} frames/s  ${cpu.toFixed(1).padStart(6)} ms of a processor a frame`);
  }
  for (const text of FILTERS) {
    const seen = [];
    for (let round = 0; round < rounds; round += 1) {
      await page.evaluate(filter, "-"); // nothing that was found before helps
      const before = await busy();
      const times = await page.evaluate(filter, text);
      seen.push({ ...times, cpu: (await busy()) - before });
    }
    const [first, whole, cpu] = ["first", "whole", "cpu"].map((name) => least(seen.map((one) => one[name])).toFixed(0).padStart(4));
    console.log(`  filter ${(text || "none").padEnd(42)} ${first} ms to the first, ${whole} ms to all, ${cpu} ms of a processor`);
  }
  await session.send("HeapProfiler.enable");
  await session.send("HeapProfiler.collectGarbage");
  const { processInfo } = await (await browser.target().createCDPSession()).send("SystemInfo.getProcessInfo");
  const sizes = processInfo.filter((one) => one.type === "renderer").map((one) => held(one.id));
  console.log(`  memory of the page: ${Math.max(...sizes).toFixed(0)} MB, its share of libraries among them`);
} finally {
  await browser.close();
}

/** @param {number} step In pixels; 0: anywhere. */
function scroll(step) {
  return new Promise((done) => {
    const list = document.querySelector("frame-list");
    list.follow(false);
    const most = list.scrollHeight - list.clientHeight;
    const [began, wanted] = [performance.now(), 120];
    let frames = 0;
    const tick = () => {
      if (frames === wanted) return done({ frames, ms: performance.now() - began });
      frames += 1;
      list.scrollTop = step === 0 ? Math.random() * most : (list.scrollTop + step) % most;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
}

/** Type a filter; give when the first answer was drawn, and when all were found. */
function filter(text) {
  return new Promise((done) => {
    const box = document.getElementById("filter");
    const began = performance.now();
    box.value = text;
    box.dispatchEvent(new Event("input"));
    let first = 0;
    const look = () => {
      if (document.getElementById("list").ariaBusy === "true") requestAnimationFrame(() => setTimeout(look));
      else done({ first, whole: performance.now() - began });
    };
    requestAnimationFrame(() => {
      document.getElementById("list").getBoundingClientRect(); // laid out; only painting is left
      first = performance.now() - began;
      setTimeout(look);
    });
  });
}

function held(pid) {
  try {
    return Number(/Pss:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf-8"))[1]) / 1024;
  } catch {
    return NaN;
  }
}
