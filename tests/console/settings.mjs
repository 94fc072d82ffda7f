// The settings of people and the limits of browsers: each page can be used, or says why not.
import assert from 'node:assert/strict';
import { base, close, enter, open, picture } from './browser.mjs';

const PAGES = ['/console', '/console/messages', '/console/playground', '/console/bots', '/console/account', '/console/help/keys'];
const fits = async (page, name) => {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wider <= 0, `${page.url()} is ${wider} px wider than the window (${name})`);
};

const first = await open();
await enter(first, 'ann');

// 200 % and 400 % of a window of 1280 × 1024, as browsers zoom; forced colours; no motion.
for (const [name, options] of [
  ['zoom-200', { viewport: { width: 640, height: 512 }, deviceScaleFactor: 2 }],
  ['zoom-400', { viewport: { width: 320, height: 256 }, deviceScaleFactor: 4 }],
  ['forced-colours', { forcedColors: 'active' }],
  ['no-motion', { reducedMotion: 'reduce' }],
]) {
  const page = await open(options);
  await enter(page, 'ann', 'sign_in');
  for (const path of PAGES) {
    await page.goto(base + path);
    await fits(page, name);
    if (path === '/console/messages') await picture(page, name);
    if (name === 'no-motion') {
      const moving = await page.evaluate(() => document.getAnimations().length);
      assert.equal(moving, 0, path);
    }
  }
  await page.keyboard.press('Control+k');
  await page.locator('dialog.palette[open]').waitFor();
  const { right, bottom } = await page.locator('dialog.palette').evaluate((one) => one.getBoundingClientRect().toJSON());
  const size = page.viewportSize();
  assert.ok(right <= size.width && bottom <= size.height, `the palette is cut off (${name})`);
  if (name === 'forced-colours') {
    // What is chosen differs in more than a colour that the browser replaces.
    const outline = await page.locator('.palette [aria-selected=true]').evaluate((one) => getComputedStyle(one).outlineStyle);
    assert.equal(outline, 'solid');
  }
  await page.context().close();
  console.log(name);
}

// Twice as large a text, which some browsers set without the rest of the page.
const large = await open();
await enter(large, 'ann', 'sign_in');
for (const path of PAGES) {
  await large.goto(base + path);
  await large.evaluate(() => {
    for (const one of document.querySelectorAll('body, body *')) {
      const size = parseFloat(getComputedStyle(one).fontSize);
      one.dataset.size = String(size * 2);
    }
    for (const one of document.querySelectorAll('[data-size]')) one.style.fontSize = `${one.dataset.size}px`;
  });
  await fits(large, 'text-200');
  if (path === '/console/messages') await picture(large, 'text-200');
}
console.log('text-200');

// Without what one stream for all tabs needs, each tab has a stream.
for (const missing of ['locks', 'BroadcastChannel']) {
  const page = await open();
  await page.addInitScript((name) => {
    if (name === 'locks') delete Navigator.prototype.locks;
    else delete globalThis[name];
  }, missing);
  await enter(page, 'ann', 'sign_in');
  await page.goto(`${base}/console/playground`);
  assert.equal(await page.evaluate((name) => name in (name === 'locks' ? navigator : globalThis), missing), false);
  await page.locator('[data-connection=live]').waitFor();
  await page.locator('#write-text').fill(`without ${missing}`);
  await page.getByRole('button', { name: 'Send', exact: true }).first().click();
  await page.locator('[data-region=conversation] tr').filter({ hasText: `without ${missing}` }).first().waitFor();
  await page.context().close();
  console.log(`without ${missing}`);
}

// Without cookies no one can sign in: the page says so.
const page = await open();
const cdp = await page.context().newCDPSession(page);
await cdp.send('Emulation.setDocumentCookieDisabled', { disabled: true });
await page.goto(`${base}/console`);
assert.equal(await page.evaluate(() => navigator.cookieEnabled), false);
await page.locator('#problem').filter({ hasText: 'Cookies are off' }).waitFor({ timeout: 10_000 });
console.log('without cookies: explained');
await close();
