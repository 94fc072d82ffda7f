// A model that the person's program runs answers in a channel: its test on the page, new rows that are announced to
// screen readers, and the run of a plugin that is downloaded as a test.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { base, close, enter, open } from './browser.mjs';

const port = Number(process.env.RECEIVER_PORT);
let status = 200;
const asked = [];
const model = createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => (body += piece));
  request.on('end', () => {
    asked.push({ path: request.url, key: request.headers.authorization, body: JSON.parse(body) });
    response.writeHead(status, { 'Content-Type': 'application/json' });
    const message = { role: 'assistant', content: `You wrote: ${asked.at(-1).body.messages.at(-1).content}` };
    const answer = { choices: [{ index: 0, message, finish_reason: 'stop' }], usage: { prompt_tokens: 11, completion_tokens: 7 } };
    response.end(JSON.stringify(status === 200 ? answer : { error: { message: 'no such key' } }));
  });
});
await new Promise((done) => model.listen(port, '127.0.0.1', done));

const page = await open();
await enter(page, 'ann');
const button = (name) => page.getByRole('button', { name, exact: true }).first();
const shows = (locator, text) =>
  page.locator(locator).filter({ hasText: text }).first().waitFor({ state: 'visible' }).catch(async () => {
    assert.fail(`${page.url()} does not show "${text}" in ${locator}: ${await page.locator('main').innerText()}`);
  });
const api = async (method, path, data) => {
  const response = await page.request.fetch(`${base}/api${path}`, { method, data, headers: { Origin: new URL(base).origin } });
  assert.ok(response.ok(), `${path}: ${await response.text()}`);
  return (await response.json()).data;
};
const bot = (await api('GET', '/bots')).items[0];
const channels = `/bots/${bot.id}/channels`;
const channel = (await api('GET', channels)).items[0];

await page.goto(`${base}/console${channels}/${channel.id}/ai`);
await page.locator('#save-source').selectOption('custom');
await page.locator('#save-base_url').fill(`http://127.0.0.1:${port}/v1`);
await page.locator('#save-api_key').fill('sk-of-ann');
await page.locator('#save-model').fill('small');
await page.locator('[name=enabled][type=checkbox]').check();
// What is saved is tested, even if saving takes a while.
const slowly = async (route) => {
  if (route.request().postData()?.includes('do=save')) await new Promise((done) => setTimeout(done, 1_000));
  await route.continue();
};
await page.route('**/ai', slowly);
await page.locator('form:has([name=base_url]) button[value=save]').click();
await button('Ask the model').click();
await shows('.tested', 'You wrote:');
await shows('.tested', '11');
await page.unroute('**/ai', slowly);
assert.deepEqual([asked[0].path, asked[0].key, asked[0].body.model], ['/v1/chat/completions', 'Bearer sk-of-ann', 'small']);
console.log('a model that answers');

status = 401;
await button('Ask the model').click();
await shows('.tested', 'no such key');
assert.ok(!(await page.content()).includes('sk-of-ann'));
status = 200;
console.log('a model that refuses the key');

const script = readFileSync(process.env.PLUGIN, 'utf8');
const plugin = await api('POST', '/plugins', { script });
await api('POST', `${channels}/${channel.id}/plugins/install`, { plugin_id: plugin.id });
await page.goto(`${base}/console/messages`);
const announced = page.locator('[data-announcement]');
const say = (text) => page.request.post(`${process.env.SIM_URL}/_sim/messages`, { data: { wx_id: bot.wx_id, text } });
await say('order 77 please');
await announced.filter({ hasText: /^New: [1-9]\d*\. Failed: 0\.$/ }).waitFor({ state: 'attached' });
await page.locator('button.pill').click();
await shows('[data-region=messages] tr', 'order 77 please');
console.log('new rows are announced');

const rows = page.locator('[data-region=messages] tr');
const row = rows.filter({ hasText: 'order 77 please', hasNotText: 'You wrote' }).first();
await row.locator('.outcomes a').first().click();
await page.locator('[data-region=cases] a').first().waitFor();
const [download] = await Promise.all([page.waitForEvent('download'), page.locator('[data-region=cases] a').first().click()]);
assert.match(download.suggestedFilename(), /^tr_\w+\.json$/);
const made = JSON.parse(readFileSync(await download.path(), 'utf8')).data;
assert.equal(made.plugin, 'tagger');
assert.ok(made.files.some(({ name, content }) => name.endsWith('.js') && content === script));
const test = JSON.parse(made.files.find(({ name }) => name.endsWith('.case.json')).content);
assert.ok(test.message.content.includes('please') && test.expect, JSON.stringify(test));
console.log('the run of a plugin as a test');
model.close();
model.closeAllConnections();
await close();
