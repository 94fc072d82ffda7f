// Below a path: every address on every page leads below it, and so do the ways in and out.
import assert from 'node:assert/strict';
import { base, close, crawl, forget, open, password, prefix } from './browser.mjs';

const page = await open();

// Addresses in attributes that leave the path.
const astray = () =>
  page.evaluate((prefix) => {
    const names = ['href', 'src', 'action', 'formaction'];
    const all = [...document.querySelectorAll(names.map((name) => `[${name}^="/"]`).join())];
    const addresses = all.flatMap((one) => names.map((name) => one.getAttribute(name) ?? ''));
    return addresses.filter((address) => address.startsWith('/') && !address.startsWith(`${prefix}/`));
  }, prefix);

const setup = process.env.SETUP_LINK;
if (setup) {
  await page.goto(setup);
  await page.locator('#new-username').fill('ann');
  await page.locator('#new-password').fill(password);
  await page.locator('#register [type=submit]').click();
  await page.waitForURL(`${base}/console`);
  const [cookie] = await page.context().cookies();
  assert.ok(cookie.secure && cookie.path === '/', JSON.stringify(cookie));
  await forget(page);
}

// A page that asks for the sign-in leads back to itself.
await page.goto(`${base}/console/messages?q=order`);
assert.equal(page.url(), `${base}/login?redirect=${encodeURIComponent('/console/messages?q=order')}`);
assert.deepEqual(await astray(), []);
await page.locator('#username').fill('ann');
await page.locator('#password').fill(password);
await page.locator('#sign-in [type=submit]').click();
await page.waitForURL(`${base}/console/messages?q=order`);

const seen = await crawl(page, async (path) => {
  const response = await page.goto(base + path);
  assert.equal(response.status(), 200, path);
  assert.deepEqual(await astray(), [], path);
});
assert.ok(seen.length >= (setup ? 10 : 20), seen.join('\n'));
console.log(`${seen.length} pages`);

// The keyboard and the search find their pages.
await page.goto(`${base}/console/account`);
await page.keyboard.press('g');
await page.keyboard.press('b');
await page.waitForURL(`${base}/console/bots`);
await page.keyboard.press('Control+k');
await page.locator('dialog[open] input').fill('Activity');
await page.locator('dialog[open]').getByText('Activity').first().waitFor();
await page.keyboard.press('Escape');
console.log('keys and search');

const document = await (await page.request.get(`${base}/openapi.json`)).json();
assert.equal(document.servers[0].url, base);
await page.goto(`${base}/docs`);
await page.getByText('/api/bots').first().waitFor();
console.log('the API and its page');

const invite = await page.request.post(`${base}/api/admin/invites`, { headers: { Origin: new URL(base).origin }, data: {} });
assert.ok((await invite.json()).data.invite_link.startsWith(`${base}/login#invite=`));

await page.goto(`${base}/console`);
await page.locator('header.top details').last().locator('summary').click();
await page.locator('button[value=sign_out]').click();
await page.waitForURL(`${base}/login`);
console.log('signed out');
await close();
