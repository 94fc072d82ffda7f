// Messages stays open while the hub is killed and started again, and behind proxies that hold streams back or cut them:
// what happens is shown, and every message is there once, without a reload. Ten tabs share one stream.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = await mkdtemp(join(tmpdir(), 'hub-outage-'));
let hub;
// The hub has one address for its whole life.
const target = await new Promise((done) => {
  const free = createServer().listen(0, '127.0.0.1', () => {
    const { port } = free.address();
    free.close(() => done(port));
  });
});

// Starts the hub.
async function start() {
  hub = spawn(process.env.PROGRAM, ['--listen', `127.0.0.1:${target}`], {
    env: {
      PATH: process.env.PATH, HUB_DATA_DIR: folder, HUB_SIM_LISTEN: '127.0.0.1:0', HUB_RATE_DEFAULT: '100000',
      HUB_RATE_AUTH_PER_IP: '1000', HUB_RATE_AUTH_PER_ACCOUNT: '1000', HUB_LOG_FORMAT: 'json', HUB_PUBLIC_URL: process.env.HUB_URL,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  const found = new Promise((done, fail) => {
    const look = (piece) => {
      log += piece;
      if (log.includes('hub-server started')) done();
    };
    hub.stdout.on('data', look);
    hub.stderr.on('data', look);
    hub.on('exit', () => fail(new Error(`the hub ended: ${log}`)));
    setTimeout(() => fail(new Error(`the hub does not start: ${log}`)), 30_000).unref();
  });
  await found;
}
const kill = () => new Promise((done) => {
  hub.once('exit', done);
  hub.kill('SIGKILL');
});

// The proxy between browser and hub: `pass`, `hold` (a stream is not passed on), `cut` (a stream ends after some time).
let mode = 'pass';
let streams = 0;
let opened = 0;
const proxy = createServer((asked, answer) => {
  const isStream = asked.url.startsWith('/api/events');
  const sent = request({ port: target, host: '127.0.0.1', path: asked.url, method: asked.method, headers: asked.headers });
  sent.on('response', (got) => {
    if (isStream) {
      streams += 1;
      opened += 1;
      answer.on('close', () => (streams -= 1));
      if (mode === 'hold') return void got.resume();
      if (mode === 'cut') setTimeout(() => answer.destroy(), 2_000);
    }
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
    got.on('error', () => answer.destroy());
  });
  sent.on('error', () => answer.destroy());
  answer.on('close', () => sent.destroy());
  asked.pipe(sent);
});
await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
process.env.HUB_URL = `http://localhost:${proxy.address().port}`;
const { base, close, enter, open } = await import('./browser.mjs');

await start();
// An outage is in the console of the browser.
const page = await open({}, /Failed to load resource|net::ERR|EventSource/);
await enter(page, 'ann');
const api = async (path, data) => {
  const options = { headers: { Origin: base }, data, method: data ? 'POST' : 'GET' };
  const response = await page.request.fetch(base + path, options);
  const { success, data: found, error } = await response.json();
  assert.ok(success, `${path}: ${JSON.stringify(error)}`);
  return found;
};
const botOf = async () => (await api('/api/bots')).items[0].id;
const say = async (bot, text) => api(`/api/bots/${bot}/sim/messages`, { text });
const connection = (state) => page.locator(`[data-connection=${state}]`).waitFor({ timeout: 30_000 });
const keys = (view = page) => view.locator('[data-region=messages] tbody tr').evaluateAll((all) => all.map((row) => row.dataset.key));
const until = async (what, is, limit = 30_000) => {
  for (const end = Date.now() + limit; ; ) {
    if (await is()) return;
    if (Date.now() > end) assert.fail(`${what}: ${page.url()} ${await page.locator('main').innerText()}`);
    await new Promise((done) => setTimeout(done, 200));
  }
};
// The list and the API agree, and no row is there twice. Rows that wait are inserted as a person would.
const isWhole = async (text, count, view = page) => {
  const pill = view.locator('button.pill');
  if (await pill.count()) await pill.first().click({ timeout: 1_000 }).catch(() => {});
  const found = await keys(view);
  const stored = (await api(`/api/messages?limit=200&q=${encodeURIComponent(text)}`)).items.map(({ id }) => id);
  assert.equal(new Set(found).size, found.length, 'a row is there twice');
  return stored.length >= count && stored.length === found.length && stored.every((id) => found.includes(id));
};

const bot = await botOf();
await page.goto(`${base}/console/messages?limit=200&q=burst`);
await connection('live');
// Without a reload: this goes with the document.
await page.evaluate(() => (window.isSame = true));
for (let n = 0; n < 25; n += 1) await say(bot, `burst ${n}`);
await until('25 messages arrive', () => isWhole('burst', 25));
console.log('25 messages');

await kill();
await page.locator('[data-connection=connecting], [data-connection=offline], [data-connection=polling]').waitFor();
console.log(`the hub is gone: ${await page.locator('[data-connection]').textContent()}`);
await start();
await connection('live');
await until('the bot is back', async () => (await api(`/api/bots/${bot}`)).status === 'online');
for (let n = 25; n < 50; n += 1) await say(bot, `burst ${n}`);
await until('50 messages are there once', () => isWhole('burst', 50), 60_000);
assert.equal(await page.evaluate(() => window.isSame), true, 'the page was loaded again');
console.log('killed and started again: every message once');

mode = 'hold';
await page.goto(`${base}/console/messages?limit=200&q=held`);
await connection('polling');
await say(bot, 'held back');
await until('a message arrives by polling', () => isWhole('held', 1));
console.log('behind a proxy that holds streams back: polled');

mode = 'cut';
await page.goto(`${base}/console/messages?limit=200&q=cut`);
await connection('live');
opened = 0;
for (let n = 0; n < 10; n += 1) {
  await say(bot, `cut ${n}`);
  await new Promise((done) => setTimeout(done, 1_200));
}
await until('messages arrive over streams that are cut', () => isWhole('cut', 10));
assert.ok(opened >= 2, `${opened} streams`);
console.log(`behind a proxy that cuts streams: ${opened} streams, every message once`);

mode = 'pass';
await page.goto('about:blank');
await until('the stream ends', async () => streams === 0);
const tabs = [];
for (let n = 0; n < 10; n += 1) {
  const tab = await page.context().newPage();
  await tab.goto(`${base}/console/messages?limit=200&q=tabs`);
  tabs.push(tab);
}
const isLive = (tab) => tab.locator('[data-connection=live]').waitFor({ timeout: 30_000 });
await Promise.all(tabs.map(isLive));
assert.equal(streams, 1, 'ten tabs share one stream');
await page.goto(`${base}/console/messages?limit=200&q=tabs`);
await isLive(page);
assert.equal(streams, 1);
await tabs[0].close();
await until('another tab continues the stream', async () => streams === 1 && opened > 2);
await say(bot, 'tabs 1');
await page.bringToFront();
await until('a message arrives after the first tab was closed', () => isWhole('tabs', 1));
console.log('ten tabs: one stream, and the eleventh opens');

await kill();
proxy.closeAllConnections();
proxy.close();
await rm(folder, { recursive: true, force: true });
await close();
