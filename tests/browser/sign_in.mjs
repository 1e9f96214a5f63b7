// Somebody who signs in with Chromium: `node sign_in.mjs FOLDER PROGRAM NAME URL`, with puppeteer in FOLDER.
//
// Fills in the forms of the pages it is led to, until a page has none; keeps a picture of that one as NAME.png, and its
// text as NAME.txt.

import { renameSync, writeFileSync } from "node:fs";

const [folder, program, name, url] = process.argv.slice(2);
const { default: puppeteer } = await import(`${folder}/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js`);
const options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"];
const browser = await puppeteer.launch({ executablePath: program, headless: true, args: options, timeout: 60_000 });
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 900, height: 600 });
  await page.goto(url, { waitUntil: "load", timeout: 60_000 });
  while (await page.$("form")) {
    for (const [field, text] of [["login", "ann"], ["password", "hers"], ["secret", "secret-of-ann"]])
      if (await page.$(`input[name=${field}]`)) await page.type(`input[name=${field}]`, text);
    await Promise.all([page.waitForNavigation({ timeout: 60_000 }), page.click("button[type=submit]")]);
  }
  await page.screenshot({ path: `${name}.png` });
  writeFileSync(`${name}.new`, await page.evaluate(() => document.body.innerText));
  renameSync(`${name}.new`, `${name}.txt`);
} finally {
  await browser.close();
}
