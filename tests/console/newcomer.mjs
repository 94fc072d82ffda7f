// The first hour of a person without a terminal: from the first account to a delivery that failed, was explained and was
// replayed. The person's phone and program are played by this script.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { base, close, enter, open, password, pathOf, picture } from './browser.mjs';

const port = Number(process.env.RECEIVER_PORT);
const received = [];
const receiver = createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => (body += piece));
  request.on('end', () => {
    received.push({ headers: request.headers, body: JSON.parse(body) });
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ reply: 'from my program' }));
  });
});
const start = () => new Promise((done) => receiver.listen(port, '127.0.0.1', done));
const stop = () => new Promise((done) => {
  receiver.close(done);
  receiver.closeAllConnections();
});
await start();

// The refusals of forms are part of the story.
const page = await open({}, /status of 4\d\d/);
const heading = () => page.locator('h1').textContent();
const link = (name) => page.getByRole('link', { name, exact: true }).first();
const button = (name) => page.getByRole('button', { name, exact: true }).first();
const shows = async (locator, text) => {
  const found = page.locator(locator).filter({ hasText: text }).first();
  await found.waitFor({ state: 'visible' }).catch(async () => {
    assert.fail(`${page.url()} does not show "${text}" in ${locator}: ${await page.locator('main').innerText()}`);
  });
  return found;
};

// With the link that the start prints, if the hub asks for a setup token.
await page.goto(process.env.SETUP_LINK || base);
await page.locator('#new-username').fill('ann');
await page.locator('#new-password').fill(password);
await page.locator('#register [type=submit]').click();
await page.waitForURL(`${base}/console`);
assert.equal(await heading(), 'Home');
await picture(page, 'home');
console.log('the first account');

await link('Messages').click();
await shows('[data-region=messages]', 'Ada');
console.log("the demo's messages are there");

await page.goto(`${base}/console/playground`);
await page.locator('#write-text').fill('order 4711');
await button('Send').click();
// Without a reload: the message, its delivery and the reply of the demo.
await shows('[data-region=conversation] tr', 'order 4711');
await shows('[data-region=conversation] tr', '4711 is on its way');
await picture(page, 'playground');
console.log('written as Ada, answered by the demo');

const row = page.locator('[data-region=conversation] tr').filter({ hasText: 'order 4711' }).first();
await row.locator('.outcome a').first().click();
assert.match(await heading(), /^Trace tr_/);
assert.ok((await page.locator('.waterfall tbody tr').count()) >= 3);
await picture(page, 'trace');
console.log('a trace');

await link('Bots').click();
await link('Bind an account').click();
await page.locator('#start-network').selectOption('sim');
await page.locator('#start-name').fill('shop');
await page.locator('form.fields button[name=do]').first().click();
await page.locator('svg.qr, .qr svg').first().waitFor({ state: 'visible' });
await picture(page, 'bind');
await page.locator('#scan_as-from').fill('Cleo');
await button('Scan with a simulated phone').click();
await page.locator('main a.button[href*="/console/bots/bot_"]').first().click();
assert.equal(await heading(), 'shop');
await shows('[data-region=connection]', 'Online');
const bot = pathOf(page.url());
const account = (await (await page.request.get(base + bot.replace('/console', '/api'))).json()).data;
console.log('a bot of her own');

await page.locator('#create_channel-name').fill('orders');
await button('Create channel').click();
await page.locator('.copied code').filter({ hasText: /^hubc_/ }).first().waitFor();
await page.locator('main a.button').first().click();
await page.locator('.tabs').getByRole('link', { name: 'Webhook' }).click();
const webhook = page.url();
await page.locator('#save-url').fill('http://127.0.0.1:1/');
await button('Save webhook').click();
await shows('.refused', 'HUB_EGRESS_ALLOW');
await shows('.refused', '127.0.0.1:1');
await picture(page, 'private-address');
console.log('a private address is refused, with the setting that allows it');

await page.locator('#save-url').fill(`http://127.0.0.1:${port}/`);
await page.locator('[name=auto_reply][type=checkbox]').check();
await button('Save webhook').click();
await page.locator('.refused').waitFor({ state: 'detached' });
await page.goto(webhook);
await button('Send test').click();
await shows('[data-region=test]', '200');
assert.equal(received.length, 1);
await picture(page, 'webhook-test');
console.log('a test that arrives');

await stop();
const say = (text) =>
  page.request.post(`${process.env.SIM_URL}/_sim/messages`, { data: { wx_id: account.wx_id, text } });
await say('order while broken');
await page.goto(`${base}/console/messages?q=broken`);
const broken = await shows('[data-region=messages] tr', 'order while broken');
await broken.locator('.reason').first().waitFor();
await broken.locator('.outcome a').first().click();
await shows('[data-region=explanation]', /connect|refused/i);
await picture(page, 'broken');
console.log('the reason of a failure');

await start();
await page.locator('form:has(button[value=replay]) button').last().click();
await page.waitForURL(/done=replayTrace|\/console\/traces\/[^?]*$/);
await shows('[data-region=explanation]', /delivered/i);
assert.ok(received.some(({ body }) => JSON.stringify(body).includes('order while broken')));
await picture(page, 'replayed');
console.log('mended and replayed');

await page.goto(`${base}/console/messages?q=broken`);
await page.locator('[data-region=messages] tbody input[type=checkbox]').first().check();
await shows('output[data-count]', '1');
await page.locator('button[value=selected]').click();
await shows('main', '1 delivery will be sent again');
await picture(page, 'replay-preview');
await button('Replay 1 delivery').click();
await page.waitForURL(/\/console\/replays\/rpl_/);
await shows('[data-region=replay]', '1 of 1 finished');
await picture(page, 'replay');
console.log('a selected delivery replayed');

// The same in Chinese, on a phone.
const small = await open({ locale: 'zh-CN', colorScheme: 'dark', viewport: { width: 390, height: 844 }, hasTouch: true });
await enter(small, 'ann', 'sign_in');
for (const path of ['/console', '/console/playground', '/console/messages', bot, pathOf(webhook)]) {
  await small.goto(base + path);
  const wider = await small.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wider <= 0, `${path} is ${wider} px wider than the phone`);
  assert.equal(await small.locator('html').getAttribute('lang'), 'zh-CN');
  await picture(small, `phone${path.replace(/\W+/g, '-')}`);
}
await small.goto(`${base}/console/playground`);
await small.locator('#write-text').fill('订单 88');
await small.locator('form:has(#write-text) button[name=do]').click();
await small.locator('[data-region=conversation] tr').filter({ hasText: '订单 88' }).first().waitFor();
console.log('in Chinese on a phone');
await stop();
await close();
