// Looks at the built site as a reader without a network does, and reports what it saw: `site.mjs PACKAGES CHROMIUM SITE`.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , packages, chromium, site] = process.argv;
const resolve = createRequire(join(packages, 'package.json')).resolve;
const { default: puppeteer } = await import(pathToFileURL(resolve('puppeteer-core')).href);
const WAIT = { timeout: 20_000 };

const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND'],
});
try {
  const page = await browser.newPage();
  const report = { asked: [], failed: [], wide: [], schemes: [] };
  page.on('request', (request) => {
    if (!/^(file|data|blob):/.test(request.url())) report.asked.push(request.url());
  });
  page.on('pageerror', (error) => report.failed.push(error.message));
  page.on('requestfailed', (request) => report.failed.push(request.url()));
  await page.setViewport({ width: 390, height: 800 });
  for (const name of ['index', 'first-steps', 'proxy', 'options', 'pairs', 'api/proxy', 'internals/lifecycle']) {
    await page.goto(`${site}/${name}.html`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) report.wide.push(name);
  }
  // Zensical draws into closed roots, which replace the text of the diagram.
  await page.waitForFunction(() => document.querySelectorAll('div.mermaid').length === 4, WAIT);
  report.drawn = await page.evaluate(() => document.querySelectorAll('div.mermaid').length);

  await page.setViewport({ width: 1920, height: 1080 });
  for (const name of ['options', 'steps/2025-11-25', 'steps/2026-07-28']) {
    await page.goto(`${site}/${name}.html`);
    if (await page.evaluate(anyOverhangs)) report.wide.push(`${name} at 1920`);
  }

  await page.goto(`${site}/index.html`);
  report.title = await page.evaluate(() => document.querySelector('h1').firstChild.textContent);
  const scheme = () => page.evaluate(() => document.body.getAttribute('data-md-color-scheme'));
  for (const number of [1, 2]) {
    await page.evaluate((n) => document.querySelectorAll('[data-md-component=palette] input')[n].click(), number);
    report.schemes.push(await scheme());
  }
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${site}/index.html`);
  await page.keyboard.down('Control');
  await page.keyboard.press('k');
  await page.keyboard.up('Control');
  await page.waitForFunction(deepLinks, WAIT, '');
  await page.keyboard.type('keyring');
  report.found = await (await page.waitForFunction(deepLinks, WAIT, 'sign-in.html')).jsonValue();
  console.log(JSON.stringify(report));
} finally {
  await browser.close();
}

// Whether some text reaches over the edge of its own column, which no bar of the window shows.
function anyOverhangs() {
  return [...document.querySelectorAll('article :is(p, li)')].some((text) => text.scrollWidth > text.clientWidth + 1);
}

// The links in the window of the search, which has a root of its own, once one of them leads to `wanted`; '' waits for
// nothing but the window.
function deepLinks(wanted) {
  const roots = [...document.querySelectorAll('*')].map((element) => element.shadowRoot).filter(Boolean);
  if (wanted === '') return roots.some((root) => root.querySelector('input')) && document.hasFocus();
  const links = roots.flatMap((root) => [...root.querySelectorAll('a[href]')].map((link) => link.href));
  return links.some((link) => link.includes(wanted)) && links;
}
