// Follows every link of the console, in two languages, two themes and two sizes. Each page is accessible, fits, and is
// kept for the validator, and looks as it is described in `layout/`.
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { base, close, crawl, enter, kind, open, picture } from './browser.mjs';
import { clipped, describe } from './layout.mjs';

const axe = await readFile(process.env.AXE, 'utf8');
const found = new Map();
const layouts = new Map();

// In all variants a page has to fit; in two of them it is also checked for accessibility and kept for the validator.
async function check(page, path, name) {
  const isWhole = ['en-light-wide', 'zh-dark-phone'].includes(name);
  const response = await page.goto(base + path);
  assert.equal(response.status(), 200, path);
  assert.equal(await page.locator('h1').count(), 1, path);
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wider <= 0, `${path} is ${wider} px wider than the window (${name})`);
  const html = await page.evaluate(async (path) => (await fetch(path)).text(), path);
  assert.deepEqual(await page.evaluate(clipped), [], `${path} cuts texts off (${name})`);
  const file = kind(path).replace(/\W+/g, '-').replace(/^-|-$/g, '');
  const [language, , width] = name.split('-');
  layouts.set(file, `${layouts.get(file) ?? ''}# ${language} ${width}\n${await page.evaluate(describe)}\n`);
  if (!isWhole) return;
  await writeFile(join(process.env.PAGES, `${name}${path.replace(/\W+/g, '-').slice(0, 120)}.html`), html);
  await picture(page, `${name}${path.replace(/\W+/g, '-').slice(0, 120)}`);
  // A region that is loaded again is dimmed meanwhile; its colours are judged without that.
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('[aria-busy] { opacity: 1 !important; }');
    document.adoptedStyleSheets.push(sheet);
  });
  await page.evaluate(axe);
  const violations = await page.evaluate(async () => {
    const result = await globalThis.axe.run();
    return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(', ')}`);
  });
  assert.deepEqual(violations, [], `${path} (${name})`);
}

const person = await open();
await enter(person, 'ann');
// The longest words fit everywhere.
const long = 'Wort'.repeat(10);
const api = async (method, path, data) => {
  const answer = await person.request.fetch(base + path, { method, data, headers: { Origin: base } });
  assert.equal(answer.status(), 200, await answer.text());
  return (await answer.json()).data;
};
const [bot] = (await api('GET', '/api/bots')).items;
const [channel] = (await api('GET', `/api/bots/${bot.id}/channels`)).items;
await api('PUT', `/api/bots/${bot.id}`, { name: long });
await api('PUT', `/api/bots/${bot.id}/channels/${channel.id}`, { name: long });
await api('PUT', '/api/user/profile', { display_name: long });
// Every delivery of the demo has ended.
while ((await api('GET', '/api/traces?status=pending')).items.length > 0) await person.waitForTimeout(100);
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

const folder = join(import.meta.dirname, 'layout');
if (process.env.HUB_UPDATE_REFERENCE) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder);
  for (const [file, text] of layouts) await writeFile(join(folder, `${file}.txt`), text);
}
const described = new Map();
for (const file of await readdir(folder)) described.set(parse(file).name, await readFile(join(folder, file), 'utf8'));
for (const [file, text] of layouts) {
  assert.equal(text, described.get(file), `layout/${file}.txt; HUB_UPDATE_REFERENCE=1 writes what is there now`);
}
assert.deepEqual([...described.keys()].sort(), [...layouts.keys()].sort());

const stranger = await open({ viewport: { width: 360, height: 740 } });
await stranger.goto(`${base}/login`);
await stranger.evaluate(axe);
const violations = await stranger.evaluate(async () => (await globalThis.axe.run()).violations.map(({ id }) => id));
assert.deepEqual(violations, []);
await close();
