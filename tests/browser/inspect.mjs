// Somebody who looks at the page of --inspect with Chromium: `node inspect.mjs FOLDER PROGRAM URL DOWNLOADS`, with
// puppeteer and axe in FOLDER.
//
// Does what a person does, by keyboard and by mouse, and prints what was seen as one JSON object.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, program, url, downloads] = process.argv.slice(2);
const { default: puppeteer } = await import(`${folder}/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js`);
const axe = readFileSync(`${folder}/node_modules/axe-core/axe.min.js`, "utf-8");
const options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"];
const browser = await puppeteer.launch({ executablePath: program, headless: true, args: options, timeout: 60_000 });
const HOSTILE = ["<img src=x onerror=globalThis.ran=1>", "</script><script>globalThis.ran=1</script>", "<!--<script>", "javascript:globalThis.ran=1", "\u001b[31mred", "\u202eevil", "((((*", "__proto__", "constructor", "${7*7}{{7*7}}"];
const seen = { problems: [], requests: [], axe: {} };

async function open(address, width = 1440, scheme = "light") {
  const page = await browser.newPage();
  await page.setViewport({ width, height: 900 });
  const features = scheme === "forced" ? [{ name: "forced-colors", value: "active" }] : [{ name: "prefers-color-scheme", value: scheme }];
  await (await page.createCDPSession()).send("Emulation.setEmulatedMedia", { features });
  page.on("console", (message) => message.type() === "error" && seen.problems.push(message.text()));
  page.on("pageerror", (error) => seen.problems.push(error.message));
  page.on("dialog", (dialog) => {
    seen.problems.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => seen.requests.push(request.url()));
  await page.goto(address, { waitUntil: "load", timeout: 60_000 });
  // What comes before the last one is long, and takes its time on a busy machine.
  const all = () => [...document.querySelectorAll(".row .what")].some((what) => what.textContent.startsWith("server ended"));
  await page.waitForFunction(all, { timeout: 60_000 });
  return page;
}

const text = (page, selector) => page.$eval(selector, (element) => element.innerText);
const count = (page, selector) => page.$$eval(selector, (elements) => elements.length);
async function settle(page) {
  for (let frame = 0; frame < 3; frame += 1) await page.evaluate(() => new Promise(requestAnimationFrame));
}
async function rows(page) {
  // Only rows that are seen are in the document.
  await page.setViewport({ width: 1440, height: 6000 });
  await settle(page);
  const found = await page.$$eval(".row", (all) => all.map((row) => row.querySelector(".what").innerText));
  await page.setViewport({ width: 1440, height: 900 });
  await settle(page);
  return found;
}
async function press(page, ...keys) {
  for (const key of keys) {
    await page.keyboard.press(key);
    await settle(page);
  }
}
async function judge(page, name) {
  // Run as the tester's own code: the page's policy lets no script in that is not its own.
  const session = await page.createCDPSession();
  const { result } = await session.send("Runtime.evaluate", {
    expression: `${axe}; axe.run(document, { resultTypes: ["violations"] }).then((found) => JSON.stringify(found.violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map((node) => node.html.slice(0, 120))])))`,
    awaitPromise: true,
    returnByValue: true,
  });
  seen.axe[name] = JSON.parse(result.value);
}

try {
  const page = await open(url);
  await settle(page);
  seen.address = page.url();
  seen.waiting = await count(page, ".row .node.waiting");
  seen.endless = await page.evaluate(() => document.getAnimations().filter((one) => one.effect.getTiming().iterations === Infinity).length);
  seen.messages = await text(page, "#counts");
  seen.sequence = await rows(page);
  await judge(page, "sequence");

  // By keyboard alone.
  await press(page, "g", "j", "Enter");
  seen.chosen = await text(page, "#frame h2");
  seen.linked = page.url().includes("frame=2");
  await press(page, "l");
  seen.lost = await text(page, "#frame .losses");
  seen.sides = await count(page, "#frame .side");
  seen.gone = await count(page, "#frame .json .gone");
  await judge(page, "frame");
  await press(page, "r");
  seen.raw = await count(page, "#frame .raw");
  await press(page, "r", "Escape");
  seen.left = await page.$eval("#frame", (element) => element.hidden);
  await press(page, "/");
  await page.keyboard.type('method:tools/call -"nowhere"');
  await press(page, "Enter");
  seen.filtered = await text(page, "#counts");
  seen.kept = page.url();
  await press(page, "/");
  await page.keyboard.down("Control");
  await press(page, "a");
  await page.keyboard.up("Control");
  await page.keyboard.type("kind:request session:*img*");
  await press(page, "Enter", "g", "Enter");
  seen.headers = await text(page, "#frame .http");
  await judge(page, "headers");
  await press(page, "Escape", "?");
  seen.help = await page.$eval("#help", (element) => element.open);
  await judge(page, "help");
  await press(page, "Escape", "G", "k", "k", "Enter", "c");
  seen.copied = (await text(page, "#frame h2")).length > 0 && (await page.$eval("#said", (said) => said.textContent));
  await press(page, "Escape", "p");
  seen.held = await text(page, "#state");
  await press(page, "p", "/");
  await page.keyboard.down("Control");
  await press(page, "a");
  await page.keyboard.up("Control");
  await press(page, "Backspace", "Enter");
  const follows = () => page.$eval("#follow", (button) => button.getAttribute("aria-pressed"));
  const before = await follows();
  await press(page, "f");
  seen.follows = [before, await follows()].sort();
  await press(page, "g", "e");
  seen.failed = await count(page, ".row.selected.failure");
  await press(page, "s");
  await page.waitForSelector("#share[open] .preview", { timeout: 60_000 });
  await press(page, "Tab", "n");
  seen.form = await page.$eval("#share select", (select) => [document.activeElement === select, select.value]);
  await press(page, "Escape", "2");
  seen.sessions = await text(page, "#sessions");
  // Down to the first of what can be opened, as Tab finds it.
  await page.focus("#sessions");
  for (let step = 0; step < 40 && !(await page.evaluate(() => document.activeElement.tagName === "SUMMARY")); step += 1) await press(page, "Tab");
  await press(page, "Enter");
  await page.waitForSelector(".explained[open] li", { timeout: 60_000 });
  await press(page, "Enter");
  seen.behind = await count(page, "#sessions .behind");
  await judge(page, "sessions");
  await press(page, "3");
  await settle(page);
  seen.charts = await count(page, "#time svg");
  await judge(page, "time");
  await press(page, "1");

  // By mouse alone.
  await page.click("#filter", { count: 3 });
  await page.keyboard.press("Backspace");
  await settle(page);
  await page.click(".counts .lost");
  await settle(page);
  seen.lostOnly = await count(page, ".row.is-lost");
  await page.click(".row");
  await settle(page);
  await page.click("#frame .pointer");
  await settle(page);
  seen.pointed = await count(page, "#frame .pointed");
  await page.click("#frame .close-view");
  await page.click("#tab-sessions");
  await page.click(".explained summary");
  await page.waitForSelector(".explained li", { timeout: 60_000 });
  await page.click(".behind button");
  await settle(page);
  seen.ofServer = await page.$eval("#filter", (box) => box.value);
  await page.click("#tab-sequence");
  await page.click("#pause");
  seen.paused = await text(page, "#state");
  await page.click("#pause");

  // What is shared.
  const session = await browser.target().createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: downloads });
  await page.click("#filter", { count: 3 });
  await page.keyboard.press("Backspace");
  await page.click("#open-share");
  await page.waitForSelector("#share[open] .preview", { timeout: 60_000 });
  await page.type("#share textarea", "a name nobody should see");
  await settle(page);
  seen.preview = (await text(page, "#share .preview")).includes("a name nobody should see");
  await judge(page, "share");
  for (const form of ["html", "har", "ndjson"]) {
    await page.select("#share select", form);
    if (form === "har") {
      await page.focus("#share input");
      await press(page, "Enter");
    } else await page.click("#share .primary");
    for (let look = 0; look < 600 && !existsSync(`${downloads}/dragoman.${form}`); look += 1) await new Promise((done) => setTimeout(done, 100));
  }
  seen.files = readdirSync(downloads).sort();
  await page.close();

  // The file opens from disk and shows the same.
  const asked = seen.requests.length;
  const file = await open(pathToFileURL(`${downloads}/dragoman.html`).href);
  await settle(file);
  seen.again = await rows(file);
  seen.fromDisk = await text(file, "#state");
  seen.secret = await file.evaluate(() => document.documentElement.outerHTML.includes("a name nobody should see"));
  await press(file, "2");
  await file.click(".explained summary");
  await file.waitForSelector(".explained li", { timeout: 60_000 });
  seen.outside = seen.requests.slice(asked).filter((one) => !one.startsWith("file:") && !one.startsWith("data:"));
  await file.close();

  // Addresses that somebody else has made.
  seen.linkedTo = 0;
  for (const odd of HOSTILE) {
    const value = encodeURIComponent(odd);
    const other = await open(url);
    await other.evaluate((said) => { location.hash = `view=${said}&filter=${said}:${said} "${said}&frame=${said}&${said}=1`; }, value);
    await settle(other);
    seen.linkedTo += await other.$eval("#filter", (box) => box.value.length > 0);
    await other.close();
  }

  // Other widths and colours.
  for (const [width, scheme] of [[390, "light"], [390, "dark"], [1024, "dark"], [1920, "light"], [1024, "forced"]]) {
    const other = await open(url, width, scheme);
    await settle(other);
    await judge(other, `${width} ${scheme}`);
    seen[`wide ${width} ${scheme}`] = await other.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    await other.close();
  }
  seen.ran = await (await browser.pages())[0].evaluate(() => "ran" in globalThis);
} finally {
  console.log(JSON.stringify(seen));
  await browser.close();
}
