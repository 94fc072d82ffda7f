// The commands that every page offers run as they are written, and what the page shows is in what they return.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { base, close, crawl, enter, open } from './browser.mjs';

// They show nothing that an operation returns.
const NO_DATA = ['/console/help/keys', '/console/account/devices'];
const page = await open();
await enter(page, 'ann');
// Two messages over the demo, so that there is something to show.
const listed = await page.request.get(`${base}/api/bots`);
const { wx_id } = (await listed.json()).data.items[0];
for (const text of ['order 42', 'hello <b>']) {
  const sent = await page.request.post(`${process.env.SIM_URL}/_sim/messages`, { data: { wx_id, text } });
  assert.equal(sent.status(), 200, await sent.text());
}
await page.goto(`${base}/console/playground`);
await page.locator('[data-region=conversation] tr').filter({ hasText: '42 is on its way' }).first().waitFor();

const made = await page.request.post(`${base}/api/user/api-keys`, { data: { name: 'commands' }, headers: { Origin: base } });
const { data: created } = await made.json();
const key = created.key ?? created.secret ?? created.api_key;
assert.match(String(key), /^hubu_/, JSON.stringify(created));
// `hub-cli` as it is installed: found by its name.
const bin = mkdtempSync(join(tmpdir(), 'hub-commands-'));
writeFileSync(join(bin, 'hub-cli'), `#!/bin/sh\nexec '${process.env.HUB_CLI}' "$@"\n`);
chmodSync(join(bin, 'hub-cli'), 0o755);
const env = { PATH: `${bin}:${process.env.PATH}`, HOME: bin, HUB_KEY: key };
const run = (command) => new Promise((resolve) => {
  const shell = command.replace(/^curl /, 'curl -sS --fail-with-body ');
  execFile('sh', ['-c', shell], { env, maxBuffer: 1 << 26, timeout: 20_000 }, (error, out, problem) => resolve({ error, out, problem }));
});

const signedIn = await run(`printf %s "$HUB_KEY" | hub-cli login --server '${base}' --with-token`);
assert.equal(signedIn.error, null, signedIn.problem);

// All values of an answer as texts, also those of JSON in a text.
function leaves(value, found) {
  if (value === null) return;
  if (typeof value === 'object') {
    for (const [name, inner] of Object.entries(value)) {
      found.add(name);
      leaves(inner, found);
    }
    return;
  }
  found.add(String(value));
  if (typeof value === 'string' && /^\s*[[{]/.test(value)) {
    try {
      leaves(JSON.parse(value), found);
    } catch { /* a text that only begins like JSON */ }
  }
}

const wrong = [];
let commands = 0;
let values = 0;
const done = new Map();
async function check(path) {
  const response = await page.goto(base + path);
  assert.equal(response.status(), 200, path);
  const shown = await page.evaluate(() => {
    const main = document.querySelector('main [data-region=main]');
    const texts = (selector) => [...main.querySelectorAll(selector)];
    const counted = texts('time[datetime], data[value], bdi, code').filter((one) =>
      !one.closest('[data-computed], .elsewhere, h1, .above, template') && !one.querySelector('[data-computed]'));
    return {
      commands: texts('.elsewhere .copied code').map((code) => code.textContent),
      values: counted.map((one) => [one.tagName, one.getAttribute('datetime') ?? one.getAttribute('value') ?? one.textContent]),
    };
  });
  const found = new Set();
  assert.ok(shown.commands.length > 0 || NO_DATA.includes(path), `${path} offers no command`);
  for (const command of shown.commands) {
    if (!done.has(command)) {
      done.set(command, await run(command));
      commands += 1;
    }
    const { error, out, problem } = done.get(command);
    // It waits for a person with a phone, longer than this test.
    if (command === 'hub-cli bots bind') {
      assert.match(out + problem, /qr_text|QR code/);
      continue;
    }
    if (error) wrong.push(`${path}: ${command}: ${out}${problem}`);
    else if (command.startsWith('curl')) leaves(JSON.parse(out), found);
  }
  // The address of a trace does not name the message that is explained.
  const [, bot, trace] = /^\/console\/traces\/(\w+)\/(\w+)/.exec(path) ?? [];
  if (trace) {
    const get = async (address) => (await (await page.request.get(base + address)).json()).data;
    const { message_id: message, channel_id: channel } = await get(`/api/bots/${bot}/traces/${trace}`);
    leaves(await get(`/api/bots/${bot}/messages/${message}/explain?channel_id=${channel}`), found);
  }
  const all = [...found];
  for (const [tag, value] of shown.values) {
    const text = value.trim().replace(/…$/, '');
    values += 1;
    if (!text || found.has(text)) continue;
    if (['BDI', 'CODE'].includes(tag) && all.some((one) => one.includes(text))) continue;
    wrong.push(`${path}: ${tag} ${JSON.stringify(value)} is in no answer`);
  }
}

await crawl(page, check);
console.log(`${commands} commands, ${values} values`);
assert.deepEqual([...new Set(wrong)], []);
assert.ok(commands > 25 && values > 100, `${commands} commands, ${values} values`);
await close();
