// A network that fails for half a minute while a list is open: the page reports it, and then has what it missed.
import assert from 'node:assert/strict';
import { base, close, enter, open } from './browser.mjs';

const page = await open({}, /ERR_INTERNET_DISCONNECTED|ERR_NETWORK|net::ERR/);
await enter(page, 'ann');
const { data } = await (await page.request.get(`${base}/api/bots`)).json();
const say = async (text) => {
  const message = { wx_id: data.items[0].wx_id, text };
  const sent = await page.request.post(`${process.env.SIM_URL}/_sim/messages`, { data: message });
  assert.equal(sent.status(), 200, await sent.text());
};
const connection = (state, timeout) => page.locator(`[data-connection=${state}]`).waitFor({ timeout });
const row = (text) => page.locator('[data-region=messages] tr').filter({ hasText: text });

await page.goto(`${base}/console/messages`);
await connection('live', 10_000);
await page.context().setOffline(true);
const lost = Date.now();
await connection('offline', 10_000);
console.log(`shown after ${Date.now() - lost} ms`);
assert.match(await page.locator('[data-connection]').innerText(), /\w+/);
// What was loaded stays, and a form says that it was not sent.
assert.ok((await row('').count()) > 0);
await say('written while offline');
await page.waitForTimeout(Math.max(0, 30_000 - (Date.now() - lost)));
await page.context().setOffline(false);
const back = Date.now();
await connection('live', 40_000);
console.log(`live again after ${Date.now() - back} ms`);
await page.locator('.pill').or(row('written while offline')).first().waitFor();
if (await page.locator('.pill').count()) await page.locator('.pill').click();
await row('written while offline').first().waitFor();
assert.equal(await row('written while offline').count(), 1);
await close();
