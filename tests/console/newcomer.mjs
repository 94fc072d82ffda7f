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

// In Chinese, the person has a phone.
const isChinese = process.env.SPOKEN === 'zh';
const words = (english, chinese) => (isChinese ? chinese : english);
const phone = { locale: 'zh-CN', colorScheme: 'dark', viewport: { width: 390, height: 844 }, hasTouch: true };
// The refusals of forms are part of the story.
const page = await open(isChinese ? phone : {}, /status of 4\d\d/);
const show = async (name) => {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wider <= 0, `${page.url()} is ${wider} px wider than the window`);
  assert.equal(await page.locator('html').getAttribute('lang'), words('en', 'zh-CN'));
  await picture(page, words(name, `phone-${name}`));
};
const heading = () => page.locator('h1').textContent();
const link = (name) => page.getByRole('link', { name, exact: true }).first();
const button = (name) => page.getByRole('button', { name, exact: true }).first();
const shows = async (locator, text, timeout) => {
  const found = page.locator(locator).filter({ hasText: text }).first();
  await found.waitFor({ state: 'visible', timeout }).catch(async () => {
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
assert.equal(await heading(), words('Home', '首页'));
await show('home');
console.log('the first account');

await link(words('Messages', '消息')).click();
await shows('[data-region=messages]', 'Ada');
console.log("the demo's messages are there");

await page.goto(`${base}/console/playground`);
await page.locator('#write-text').fill('order 4711');
await button(words('Send', '发送')).click();
// Without a reload: the message, its delivery and the reply of the demo.
await shows('[data-region=conversation] tr', 'order 4711');
await shows('[data-region=conversation] tr', '4711 is on its way');
await show('playground');
console.log('written as Ada, answered by the demo');

const row = page.locator('[data-region=conversation] tr').filter({ hasText: 'order 4711' }).first();
await row.locator('.outcome a').first().click();
assert.match(await heading(), words(/^Trace tr_/, /^追踪 tr_/));
assert.ok((await page.locator('.waterfall tbody tr').count()) >= 3);
await show('trace');
console.log('a trace');

await link(words('Bots', '机器人')).click();
await link(words('Bind an account', '绑定账号')).click();
await page.locator('#start-network').selectOption('sim');
await page.locator('#start-name').fill('shop');
await page.locator('form.fields button[name=do]').first().click();
await page.locator('svg.qr, .qr svg').first().waitFor({ state: 'visible' });
await show('bind');
await page.locator('#scan_as-from').fill('Cleo');
await button(words('Scan with a simulated phone', '用模拟手机扫码')).click();
await page.locator('main a.button[href*="/console/bots/bot_"]').first().click();
assert.equal(await heading(), 'shop');
await shows('[data-region=connection]', words('Online', '在线'));
const bot = pathOf(page.url());
const account = (await (await page.request.get(base + bot.replace('/console', '/api'))).json()).data;
console.log('a bot of her own');

await page.locator('#create_channel-name').fill('orders');
await button(words('Create channel', '创建频道')).click();
await page.locator('.copied code').filter({ hasText: /^hubc_/ }).first().waitFor();
await page.locator('main a.button').first().click();
await page.locator('.tabs').getByRole('link', { name: 'Webhook' }).click();
const webhook = page.url();
await page.locator('#save-url').fill('http://127.0.0.1:1/');
await button(words('Save webhook', '保存 webhook')).click();
await shows('.refused', 'HUB_EGRESS_ALLOW');
await shows('.refused', '127.0.0.1:1');
await show('private-address');
console.log('a private address is refused, with the setting that allows it');

await page.locator('#save-url').fill(`http://127.0.0.1:${port}/`);
await page.locator('[name=auto_reply][type=checkbox]').check();
await button(words('Save webhook', '保存 webhook')).click();
await page.locator('.refused').waitFor({ state: 'detached' });
await page.goto(webhook);
await button(words('Send test', '发送测试')).click();
await shows('[data-region=test]', '200');
assert.equal(received.length, 1);
await show('webhook-test');
console.log('a test that arrives');

await stop();
const say = (text) =>
  page.request.post(`${process.env.SIM_URL}/_sim/messages`, { data: { wx_id: account.wx_id, text } });
await say('order while broken');
await page.goto(`${base}/console/messages?q=broken`);
const broken = await shows('[data-region=messages] tr', 'order while broken');
await broken.locator('.reason').first().waitFor();
await broken.locator('.outcome a').first().click();
await shows('[data-region=explanation]', words(/connect|refused/i, /没有响应|重试/));
await show('broken');
console.log('the reason of a failure');

assert.equal(await page.locator('button[value=replay]').count(), 0, 'what waits is not replayed');
await start();
// By the next attempt of the schedule.
await shows('[data-region=explanation]', words(/delivered/i, /次尝试时投递到/), 60_000);
assert.ok(received.some(({ body }) => JSON.stringify(body).includes('order while broken')));
await show('mended');
const mended = page.url();
await page.locator('form:has(button[value=replay]) button').last().click();
await page.waitForURL((url) => url.pathname !== new URL(mended).pathname);
await shows('[data-region=explanation]', words(/delivered/i, /已投递/));
await show('replayed');
console.log('mended and replayed');

await page.goto(`${base}/console/messages?q=broken`);
await page.locator('[data-region=messages] tbody input[type=checkbox]').first().check();
await shows('output[data-count]', '1');
await page.locator('button[value=selected]').click();
await shows('main', words('1 delivery will be sent again', '将重新投递 1 条'));
await show('replay-preview');
await button(words('Replay 1 delivery', '重放 1 条投递')).click();
await page.waitForURL(/\/console\/replays\/rpl_/);
await shows('[data-region=replay]', words('1 of 1 finished', '已完成 1 / 1'));
await show('replay');
console.log('a selected delivery replayed');

await stop();
await close();
