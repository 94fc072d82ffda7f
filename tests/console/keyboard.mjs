// A person with a keyboard alone: ten stories. After each step the focus is somewhere, and can be seen.
import assert from 'node:assert/strict';
import { base, close, open, password, picture } from './browser.mjs';

const page = await open({ locale: 'en-US' });
await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);

const focused = () => page.evaluate(() => {
  const { tagName, textContent, id } = document.activeElement;
  return `${tagName}#${id} ${textContent.trim()}`;
});
// A form that leads back to its page opens a page with the same address.
const opened = () => page.evaluate(() => `${location} ${performance.timeOrigin}`);
// Presses keys one after the other. On a page that was just opened, the focus is where the reader begins.
async function press(...keys) {
  for (const key of keys) {
    const before = await focused();
    const here = await opened();
    await page.keyboard.press(key);
    // While another page is opened there is nothing to ask.
    const isLost = async () =>
      (await focused().catch(() => '')).startsWith('BODY') && (await opened().catch(() => '')) === here;
    for (let tries = 0; (await isLost()) && !before.startsWith('BODY'); tries += 1) {
      assert.ok(tries < 100, `${key} lost the focus at ${page.url()}: ${before}`);
      await page.waitForTimeout(50);
    }
  }
}
// The browser ignores keys until the new page is painted.
async function arrives(path) {
  const isThere = (url) => (path.test ? path.test(url.pathname + url.search) : url.pathname === path);
  await page.waitForURL(isThere, { waitUntil: 'load' });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
}
const has = (selector, text) => page.locator(selector).filter({ hasText: text }).first().waitFor();

// Tabs until the focused element has this text.
async function tabTo(text, limit = 80) {
  for (let count = 0; count < limit; count += 1) {
    await page.keyboard.press('Tab');
    const now = await focused();
    assert.ok(!now.startsWith('BODY'), `the focus is lost at ${page.url()} on the way to ${text}`);
    if (now.endsWith(` ${text}`)) {
      const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
      assert.notEqual(outline, 'none', `the focus cannot be seen on ${now}`);
      return;
    }
  }
  assert.fail(`${text} cannot be reached at ${page.url()}; the focus is at ${await focused()}`);
}
// Opens the palette, types, and chooses the first entry.
async function palette(text) {
  await press('Control+k');
  await page.locator('dialog.palette[open]').waitFor();
  await page.keyboard.type(text);
  await has('.palette [role=option][aria-selected=true]', text);
  await page.keyboard.press('Enter');
}

await page.goto(`${base}/login`);
await page.locator('#new-username').focus();
await page.keyboard.type('ann');
await press('Tab');
await page.keyboard.type(password);
await press('Enter');
await arrives('/console');
console.log('1: signed in');

await press('Tab');
assert.match(await focused(), /Skip to content/);
await press('Enter', 'Tab');
assert.ok(await page.evaluate(() => document.activeElement.closest('main')), await focused());
await page.reload();
await tabTo('Bots');
await press('Enter');
await arrives('/console/bots');
await tabTo('demo');
await press('Enter');
await arrives(/\/console\/bots\/bot_\w+$/);
await tabTo('Language and theme');
await press('Enter');
assert.ok(await page.locator('details.menu[open]').count());
await press('Escape');
assert.equal(await page.locator('details.menu[open]').count(), 0);
assert.match(await focused(), /Language and theme/);
console.log('2: through the navigation with Tab');

await tabTo('Delete bot…');
await press('Enter');
await arrives(/ask=delete/);
// What destroys nothing has the focus first.
assert.match(await focused(), /Cancel/);
await press('Enter');
await arrives(/\/console\/bots\/bot_\w+$/);
console.log('3: a deletion asked for and cancelled');

for (const [key, path] of [['m', '/console/messages'], ['a', '/console/account'], ['h', '/console'], ['b', '/console/bots']]) {
  await page.keyboard.press('g');
  await page.keyboard.press(key);
  await arrives(path);
}
await press('j');
assert.match(await focused(), /^A#/);
await press('Enter');
await arrives(/\/console\/bots\/bot_\w+$/);
console.log('4: from page to page with g, into a list with j');

await page.goto(`${base}/console/playground`);
await page.locator('#write-text').waitFor();
await page.locator('#write-text').focus();
await page.keyboard.type('order 77');
await press('Enter');
await has('[data-region=conversation] tr', 'order 77');
assert.ok(!(await focused()).startsWith('BODY'), 'the focus is lost by a form');
console.log('5: a message written');

await page.keyboard.press('Tab');
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press('g');
await page.keyboard.press('m');
await arrives('/console/messages');
await press('j', 'j', 'j', 'k');
// The second row is the message; the first one is the reply to it, which has no trace.
const row = await page.evaluate(() => document.activeElement.closest('tr')?.dataset.key);
assert.ok(row, await focused());
await press('y');
await has('[data-announcement]', 'Copied: tr_');
const copied = await page.evaluate(() => navigator.clipboard.readText());
assert.match(copied, /^tr_/);
await press('/');
assert.match(await focused(), /INPUT#filter-/);
// In a field, keys are text.
await page.keyboard.type('jfg');
assert.equal(await page.evaluate(() => document.activeElement.value), 'jfg');
await page.evaluate(() => (document.activeElement.value = ''));
await tabTo('Show');
await press('f');
await arrives(/outcome=/);
console.log('6: a list filtered, a trace id copied');

await page.goBack();
await arrives('/console/messages');
await press('j', 'Enter');
await arrives(/\/console\/messages\/bot_\w+\/msg_/);
await palette('API reference');
await arrives('/docs');
await page.goBack();
await arrives(/\/console\/messages\//);
await palette('Bots');
await arrives('/console/bots');
console.log('7: opened from the palette');

await page.goto(`${base}/console/find?q=${copied}`);
await arrives(/\/console\/traces\//);
await press('j', 'j');
const step = await page.evaluate(() => document.activeElement.closest('tr')?.dataset.key);
assert.match(step, /^step-/);
await press('Enter');
await arrives(/step=\d/);
await press('r');
assert.equal(await page.evaluate(() => document.activeElement.value), 'replay', 'one key sends nothing');
const before = page.url();
await page.keyboard.press('Enter');
await page.waitForURL((url) => url.pathname !== new URL(before).pathname);
await has('[data-region=explanation]', /./);
console.log('8: steps of a trace, and a replay');

await press('?');
await page.locator('dialog.key-help[open]').waitFor();
await has('dialog.key-help', 'Next row');
await picture(page, 'key-help');
await press('Escape');
await page.locator('dialog').waitFor({ state: 'detached' });
await page.goto(`${base}/console/help/keys`);
await tabTo('Switch them off in the profile');
await press('Enter');
await arrives('/console/account');
await page.locator('[name=keys][type=checkbox]').focus();
await press('Space');
await tabTo('Apply');
await press('Enter');
// The form leads back to the page that it is on: only what the new page says tells the two apart.
await page.locator('html[data-keys=off]').waitFor();
await arrives('/console/account');
await page.keyboard.press('g');
await page.keyboard.press('h');
await page.keyboard.press('?');
assert.equal(new URL(page.url()).pathname, '/console/account');
assert.equal(await page.locator('dialog').count(), 0);
assert.equal(await page.locator('[name=keys][type=checkbox]').isChecked(), false);
await page.locator('[name=keys][type=checkbox]').focus();
await press('Space');
await tabTo('Apply');
await press('Enter');
await page.locator('html:not([data-keys])').waitFor();
await arrives('/console/account');
console.log('9: key help, and single keys off and on');

// The palette finds what the hub finds, and every command of a page is a control that can be seen.
await press('Control+k');
await page.locator('dialog.palette[open]').waitFor();
await page.keyboard.type(copied);
await has('.palette [role=option]', copied);
await picture(page, 'palette');
await press('Enter');
await arrives(/\/console\/traces\//);
for (const path of ['/console', '/console/messages', '/console/bots', '/console/account/security', '/console/playground']) {
  await page.goto(base + path);
  const visible = await page.evaluate(() => [...document.querySelectorAll('a[href], button, summary')]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length)
    .map((one) => (one.getAttribute('aria-label') ?? one.textContent).replace(/\s+/g, ' ').trim()));
  await press('Control+k');
  await page.locator('dialog.palette[open]').waitFor();
  const commands = await page.locator('.palette [role=option]').allTextContents();
  assert.ok(commands.length >= 5, `${path}: ${commands}`);
  for (const command of commands) assert.ok(visible.includes(command), `${command} is not a control of ${path}`);
  await press('ArrowDown', 'ArrowUp', 'ArrowUp');
  assert.equal(await page.locator('.palette [aria-selected=true]').textContent(), commands.at(-1));
  await press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
}
console.log('10: every command of the palette can be seen');
await close();
