// Follows every link of the console, in two languages, two themes and two sizes. Each page is accessible, fits, and is
// kept for the validator.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { base, close, crawl, enter, open, picture } from './browser.mjs';

const axe = await readFile(process.env.AXE, 'utf8');
const found = new Map();

// In all variants a page has to fit; in two of them it is also checked for accessibility and kept for the validator.
async function check(page, path, name) {
  const isWhole = ['en-light-wide', 'zh-dark-phone'].includes(name);
  const response = await page.goto(base + path);
  assert.equal(response.status(), 200, path);
  assert.equal(await page.locator('h1').count(), 1, path);
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wider <= 0, `${path} is ${wider} px wider than the window (${name})`);
  const html = await page.evaluate(async (path) => (await fetch(path)).text(), path);
  if (!isWhole) return;
  await writeFile(join(process.env.PAGES, `${name}${path.replace(/\W+/g, '-').slice(0, 120)}.html`), html);
  await picture(page, `${name}${path.replace(/\W+/g, '-').slice(0, 120)}`);
  // A region that is loaded again is dimmed meanwhile.
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  await page.evaluate(axe);
  const violations = await page.evaluate(async () => {
    const result = await globalThis.axe.run();
    return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(', ')}`);
  });
  assert.deepEqual(violations, [], `${path} (${name})`);
}

const person = await open();
await enter(person, 'ann');
for (const [name, locale, colorScheme, width] of [
  ['en-light-wide', 'en-US', 'light', 1440],
  ['zh-dark-phone', 'zh-CN', 'dark', 360],
  ['en-dark-phone', 'en-US', 'dark', 360],
  ['zh-light-wide', 'zh-CN', 'light', 1440],
]) {
  const page = await open({ locale, colorScheme, viewport: { width, height: 800 } });
  await enter(page, 'ann', 'sign_in');
  found.set(name, await crawl(page, (path) => check(page, path, name)));
}
assert.ok(found.get('en-light-wide').length >= 9, found.get('en-light-wide').join('\n'));
console.log(found.get('en-light-wide').join('\n'));

const stranger = await open({ viewport: { width: 360, height: 740 } });
await stranger.goto(`${base}/login`);
await stranger.evaluate(axe);
const violations = await stranger.evaluate(async () => (await globalThis.axe.run()).violations.map(({ id }) => id));
assert.deepEqual(violations, []);
await close();
