// Secrets are in the answer that shows them once, and nowhere else: no address, title, history, storage, log of the page,
// fragment, form that is shown again, or compressed answer.
import assert from 'node:assert/strict';
import { base, close, enter, open, password } from './browser.mjs';

const page = await open({}, /status of 4\d\d/);
const planted = new Map([['password', password]]);
const shown = [];
page.on('response', async (response) => {
  if (!response.url().startsWith(base)) return;
  const body = await response.text().catch(() => '');
  shown.push({ address: response.url(), method: response.request().method(), body, headers: response.headers() });
});
const titles = new Set();
page.on('framenavigated', async () => titles.add(`${page.url()} ${await page.title().catch(() => '')}`));
await enter(page, 'ann');
const token = (await page.context().cookies()).find(({ name }) => /session/.test(name)).value;
planted.set('session', token);
const api = async (path) => (await (await page.request.get(base + path)).json()).data;
const bot = (await api('/api/bots')).items[0];
const button = (name) => page.getByRole('button', { name, exact: true }).first();

// A key, a channel key and a webhook secret, as a person makes them.
await page.goto(`${base}/console/account/keys`);
await page.locator('#create-name').fill('nightly');
await button('Create key').click();
const secret = async (name, pattern) => {
  const code = page.locator('.copied code').filter({ hasText: pattern }).first();
  await code.waitFor();
  planted.set(name, await code.textContent());
};
await secret('API key', /^hubu_/);
await page.getByRole('link', { name: 'I have saved it' }).click();
await page.goto(`${base}/console/bots/${bot.id}`);
await page.locator('#create_channel-name').fill('orders');
await button('Create channel').click();
await secret('channel key', /^hubc_/);
await page.locator('main a.button').first().click();
const webhook = `${page.url().split('?')[0]}/webhook`.replace('/overview', '');
await page.goto(webhook);
planted.set('webhook secret', 'whsec-Planted-4711-secret');
planted.set('refused secret', 'whsec-Refused-0815-secret');
const fields = async (url, value) => {
  await page.locator('#save-url').fill(url);
  await page.locator('[name="auth.method"]').selectOption('hmac').catch(() => {});
  await page.locator('[name="auth.secret"]').fill(value);
  await button('Save webhook').click();
};
await fields('http://127.0.0.1:1/', planted.get('refused secret'));
await page.locator('.refused').first().waitFor();
assert.equal(await page.locator('[name="auth.secret"]').inputValue(), '', 'a refused form shows the secret again');
await fields('https://receiver.example/hook', planted.get('webhook secret'));
await page.locator('.refused').waitFor({ state: 'detached' });
await page.goto(webhook);
assert.equal(await page.locator('[name="auth.secret"]').inputValue(), '');
// A password that is refused.
await page.goto(`${base}/console/account/security`);
planted.set('refused password', 'Planted-refused-4711');
await page.locator('[name=old_password]').fill(planted.get('refused password'));
await page.locator('[name=new_password]').fill(`${planted.get('refused password')}-new`);
await page.locator('form:has([name=new_password]) button[name=do]').click();
await page.locator('.refused').first().waitFor();
for (const path of ['/console', '/console/account/keys', `/console/bots/${bot.id}`, new URL(webhook).pathname, '/console/messages']) {
  await page.goto(base + path);
}
await page.goBack();
await page.waitForLoadState('load');

const stored = await page.evaluate(async () => JSON.stringify([
  { ...localStorage }, { ...sessionStorage }, history.state, document.cookie, document.title,
  'indexedDB' in globalThis ? await indexedDB.databases() : [], await caches.keys().catch(() => []),
]));
// The session is in a cookie that scripts cannot read; the API key and that of the channel are in one answer each.
const once = new Set(['API key', 'channel key']);
for (const [name, value] of planted) {
  assert.ok(value.length > 8, name);
  for (const text of [stored, ...titles, ...shown.map(({ address }) => address)]) {
    assert.ok(!text.includes(value) && !text.includes(encodeURIComponent(value)), `${name} is in ${text.slice(0, 200)}`);
  }
  const containing = shown.filter(({ body }) => body.includes(value));
  assert.equal(containing.length, once.has(name) ? 1 : 0, `${name} is in ${containing.map(({ address, method }) => `${method} ${address}`)}`);
  for (const { headers, method } of containing) {
    assert.equal(method, 'POST', name);
    assert.equal(headers['content-encoding'], undefined, `${name} is in a compressed answer`);
    assert.equal(headers['cache-control'], 'no-store', name);
  }
}
assert.ok(shown.length > 20 && shown.some(({ headers }) => headers['content-encoding'] === 'gzip'), `${shown.length} answers`);
console.log(`${planted.size} secrets, ${shown.length} answers`);
await close();
