// Bytes, requests and nodes of every page of a hub with many messages; the time to the first byte as a ratio to the page of
// an unknown address of the same run, next to that of a hub with few messages; and a page that is open while much happens.
import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { base, close, crawl, enter, open, surprises } from './browser.mjs';

const few = process.env.FEW_URL;
const ROWS = 100;
const EVENTS = 1_000;
const SAMPLES = Number(process.env.SAMPLES ?? 12);
// In bytes as they are sent, compressed.
const BUDGET = { page: 40_960, view: 66_560, fragment: 20_480, nodes: 3_000, requests: 4 };
const FILES = { 'console.css': 14_336, 'page.js': 3_072, 'live.js': 6_144 };
// What single pages need in addition.
const MODULES = { 'security.js': 2_048, 'passkey.js': 2_048, 'signature.js': 4_096 };

const person = await open();
await enter(person, 'ann', 'sign_in');
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const cookies = new Map();

// Signs in at a hub, and keeps the cookie for requests without a browser.
async function session(url) {
  const form = new URLSearchParams({ do: 'sign_in', username: 'ann', password: 'tr0mbone solo' });
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: url };
  const response = await fetch(`${url}/login`, { method: 'POST', headers, body: form, redirect: 'manual' });
  assert.equal(response.status, 303);
  cookies.set(url, response.headers.getSetCookie().map((cookie) => cookie.split(';')[0]).join('; '));
}

// A page over a connection that is kept: milliseconds to the first byte, status, and compressed size.
function fetched(url, path, more = {}) {
  return new Promise((resolve, reject) => {
    const begin = process.hrtime.bigint();
    const headers = { Cookie: cookies.get(url), 'Accept-Encoding': 'gzip', ...more };
    get(url + path, { agent, headers }, (response) => {
      const ms = Number(process.hrtime.bigint() - begin) / 1e6;
      let size = 0;
      response.on('data', (piece) => (size += piece.length));
      response.on('end', () => resolve({ ms, size, status: response.statusCode }));
    }).on('error', reject);
  });
}

await session(base);
await session(few);

// The lists have as many rows as the budgets are for.
const own = JSON.parse(process.env.PLACES);
const places = (of) => [
  ['Messages', `/console/messages?limit=${ROWS}`],
  ['Messages that failed', `/console/messages?limit=${ROWS}&outcome=failed`],
  ['Messages, a text that none has', `/console/messages?limit=${ROWS}&q=zzzz`],
  ['Messages of a person', `/console/messages?limit=${ROWS}&user_id=person+7`],
  ['Messages since a day ago', `/console/messages?limit=${ROWS}&since=1d`],
  ['Contacts', `/console/bots/${of.bot}/contacts?limit=${ROWS}`],
  ['Contact', `/console/bots/${of.bot}/contacts/person%207`],
  ['Message', `/console/messages/${of.bot}/${of.message}`],
  ['Trace with 200 steps', `/console/traces/${of.bot}/${of.trace}?step=150`],
  ['Home', '/console'],
  ['Bot', `/console/bots/${of.bot}`],
  ['Channel', `/console/bots/${of.bot}/channels/${of.channel}`],
  ['Filter', `/console/bots/${of.bot}/channels/${of.channel}/filter`],
];

const views = [];
async function view(path) {
  const sent = [];
  const note = (request) => sent.push(request);
  person.on('requestfinished', note);
  const response = await person.goto(base + path);
  assert.equal(response.status(), 200, path);
  await person.waitForLoadState('load');
  person.off('requestfinished', note);
  // Events and pictures of people are loaded afterwards.
  const kinds = ['document', 'stylesheet', 'script', 'font'];
  const first = sent.filter((request) => kinds.includes(request.resourceType()));
  // In any order: a script may be there before the end of the document.
  const name = (request) => (request.resourceType() === 'document' ? 'page' : new URL(request.url()).pathname.split('/').pop());
  const { page, ...others } = Object.fromEntries(await Promise.all(
    first.map(async (request) => [name(request), (await request.sizes()).responseBodySize]),
  ));
  const nodes = await person.evaluate(() => document.querySelectorAll('*').length);
  const files = Object.entries(others);
  const total = files.reduce((sum, [, size]) => sum + size, page);
  const fragment = await fetched(base, path, { 'X-Fragment': 'main' });
  views.push({ path, page, total, fragment: fragment.size, nodes, requests: first.length });
  const modules = files.filter(([name]) => name in MODULES);
  assert.ok(first.length - modules.length <= BUDGET.requests, `${path}: ${first.map((request) => request.url())}`);
  assert.deepEqual(files.map(([name]) => name).filter((name) => !(name in MODULES)).sort(), Object.keys(FILES).sort(), path);
  for (const [name, size] of files) assert.ok(size <= (FILES[name] ?? MODULES[name]), `${name} has ${size} bytes`);
}

// The browser keeps nothing, so that every view is a first one.
const devtools = await person.context().newCDPSession(person);
await devtools.send('Network.enable');
await devtools.send('Network.setCacheDisabled', { cacheDisabled: true });
const known = places(own).map(([, path]) => path);
await crawl(person, view);
for (const path of known) await view(path);
console.log('| page | bytes | first view | fragment | elements |\n|---|---:|---:|---:|---:|');
for (const one of views) {
  const path = one.path.replace(/[a-z]+_[0-9A-HJKMNP-TV-Z]{26}/g, ':id').replace(/cursor=[^&]*/, 'cursor');
  console.log(`| \`${path}\` | ${one.page} | ${one.total} | ${one.fragment} | ${one.nodes} |`);
}
for (const one of views) {
  assert.ok(one.page <= BUDGET.page, `${one.path} has ${one.page} bytes`);
  assert.ok(one.total <= BUDGET.view, `${one.path} has ${one.total} bytes with its files`);
  assert.ok(one.fragment <= BUDGET.fragment, `the fragment of ${one.path} has ${one.fragment} bytes`);
  assert.ok(one.nodes <= BUDGET.nodes, `${one.path} has ${one.nodes} elements`);
}

// Times: every page of both hubs and the page of an unknown address, in turns.
const pairs = places(own).map(([name, path], index) => [name, path, places(JSON.parse(process.env.FEW_PLACES))[index][1]]);
const times = new Map();
const take = (name, ms) => times.set(name, [...(times.get(name) ?? []), ms]);
for (let sample = 0; sample < SAMPLES; sample += 1) {
  for (const [name, path, other] of pairs) {
    take('empty', (await fetched(base, '/console/nowhere')).ms);
    const many = await fetched(base, path);
    assert.equal(many.status, 200, path);
    take(`many ${name}`, many.ms);
    const less = await fetched(few, other);
    assert.equal(less.status, 200, other);
    take(`few ${name}`, less.ms);
  }
}
const quantile = (name, part) => {
  const sorted = times.get(name).toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
};
const empty = quantile('empty', 0.5);
console.log(`an empty page: ${empty.toFixed(2)} ms\n| page | few messages | many messages | growth |\n|---|---:|---:|---:|`);
for (const [name] of pairs) {
  const [less, many] = [quantile(`few ${name}`, 0.5) / empty, quantile(`many ${name}`, 0.5) / empty];
  // Other programs only ever make a page slower, so that the fastest answers show what the page costs.
  const growth = quantile(`many ${name}`, 0) / quantile(`few ${name}`, 0);
  console.log(`| ${name} | ${less.toFixed(1)} | ${many.toFixed(1)} | ${growth.toFixed(2)} |`);
}

// A page that is open while a thousand messages arrive.
const api = async (method, path, data) => {
  const response = await person.request.fetch(base + path, { method, data, headers: { Origin: base } });
  assert.ok(response.ok(), await response.text());
  return response.json();
};
await api('PUT', `/api/bots/${own.bot}/channels/${own.channel}`, { enabled: false });
const { data: bot } = await api('GET', `/api/bots/${own.bot}`);
await person.goto(`${base}/console/messages?limit=${ROWS}`);
await person.locator('[data-connection=live]').waitFor();
const measure = async () => {
  await devtools.send('HeapProfiler.collectGarbage');
  const { nodes } = await devtools.send('Memory.getDOMCounters');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  return { nodes, usedSize };
};
let events = 0;
devtools.on('Network.eventSourceMessageReceived', ({ eventName }) => (events += eventName === 'message' ? 1 : 0));
// Once before, so that what the first replacement allocates counts as the beginning.
const say = async (from, count) => {
  const messages = Array.from({ length: count }, (_, n) => ({ wx_id: bot.wx_id, text: `live ${from + n}` }));
  const response = await person.request.post(`${process.env.SIM_URL}/_sim/messages`, { data: { messages } });
  assert.equal(response.status(), 200, await response.text());
};
await say(0, 1);
await person.locator('.pill').waitFor();
const before = await measure();
for (let sent = 1; sent <= EVENTS; sent += 100) await say(sent, 100);
for (let waited = 0; events < EVENTS && waited < 300; waited += 1) await person.waitForTimeout(100);
assert.ok(events >= EVENTS, `${events} events`);
await person.waitForTimeout(1_500);
const after = await measure();
console.log(`${events} events: ${before.nodes} and ${after.nodes} nodes, heap ×${(after.usedSize / before.usedSize).toFixed(2)}`);
const elements = await person.evaluate(() => document.querySelectorAll('*').length);
assert.ok(elements <= BUDGET.nodes, `${elements} elements`);
assert.ok(after.nodes <= before.nodes * 1.5, `${before.nodes} nodes became ${after.nodes}`);
assert.ok(after.usedSize <= before.usedSize * 1.5, `the heap grew from ${before.usedSize} to ${after.usedSize}`);
await person.locator('.pill').click();
await person.locator('[data-region=messages] tr').filter({ hasText: `live ${EVENTS}` }).first().waitFor();
assert.deepEqual(surprises, []);
await close();
