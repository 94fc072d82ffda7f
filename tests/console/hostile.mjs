// Two hundred hostile texts in everything that people control: shown as text, nothing runs, the layout holds, and what
// cannot be seen is shown as a sign.
import assert from 'node:assert/strict';
import { base, close, enter, open, picture, surprises } from './browser.mjs';

const RUN = 'globalThis.pwned=1';
const kinds = [
  `<script>${RUN}</script>`, `<img src=x onerror=${RUN}>`, `"><svg onload=${RUN}>`, `' onmouseover='${RUN}`,
  `</textarea><script>${RUN}</script>`, `</title><script>${RUN}</script>`, `--><script>${RUN}</script>`,
  `<iframe srcdoc="<script>parent.pwned=1</script>">`, `<a href="javascript:${RUN}">x</a>`, `javascript:${RUN}`,
  `<style>*{display:none}</style>`, `<base href="//evil.example/">`, `<form action="//evil.example">`,
  `<meta http-equiv=refresh content="0;url=//evil.example">`, `<math><mtext><script>${RUN}</script>`, '{{7*7}}${7*7}',
  '&lt;script&gt;&#x3c;script&#x3e;', '%3Cscript%3E%0d%0aSet-Cookie: a=b', '<![CDATA[<script>]]>', '<template><b>', '<!--',
  '\u202egnp.exe', '\u2066\u202elevel\u2069', '\u202a\u202b\u202c\u202d', 'a\u0007b\u0008c\u001b[31md', '\u007f\u0085\u009f',
  'مرحبا بالعالم 123', 'שלום (abc) 42', 'عربي <b> עברית', 'e' + '\u0301'.repeat(500), '👩‍💻'.repeat(200), '\u{e0041}\u{1f3f4}',
  'x'.repeat(4_000), 'Wörter '.repeat(600), '字'.repeat(2_000), '\n'.repeat(300) + 'end', '\t'.repeat(200) + 'end', "' OR 1=1 --",
  '../../../etc/passwd', 'https://evil.example/' + 'a'.repeat(1_900),
];
const wraps = [(text) => text, (text) => `order ${text} 42`, (text) => text + text, (text) => `"${text}"`, (text) => `{"a":${JSON.stringify(text)}}`];
const texts = wraps.flatMap((wrap) => kinds.map(wrap));
assert.equal(texts.length, 200);
texts.push('y'.repeat(65_536));
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

const page = await open({ viewport: { width: 390, height: 844 } }, /status of 4\d\d/);
page.on('dialog', (dialog) => surprises.push(`a dialog: ${dialog.message()}`));
await enter(page, 'ann');
const api = async (path) => (await (await page.request.get(base + path)).json()).data;
const bot = (await api('/api/bots')).items[0];
const channel = (await api(`/api/bots/${bot.id}/channels`)).items[0];

// The texts as messages, and as ids of people where they are short enough. A lone surrogate is no text in JSON, and NUL
// is none in a database: the network, or the hub, refuses them and goes on.
const said = texts.map((text, n) => {
  const from = n % 4 === 0 && Buffer.byteLength(text) <= 100 ? { from_user_id: text } : {};
  return { wx_id: bot.wx_id, text, ...from };
});
const send = (messages) => page.request.post(`${process.env.SIM_URL}/_sim/messages`, {
  headers: { 'Content-Type': 'application/json' }, data: typeof messages === 'string' ? messages : JSON.stringify({ messages }),
});
for (let at = 0; at < said.length; at += 20) {
  const response = await send(said.slice(at, at + 20));
  assert.equal(response.status(), 200, await response.text());
}
const lone = await send(`{"wx_id":"${bot.wx_id}","text":"lone \\ud800 surrogate"}`);
assert.ok([200, 400].includes(lone.status()), await lone.text());
await send(`{"wx_id":"${bot.wx_id}","text":"a \\u0000 byte"}`);
await send([{ wx_id: bot.wx_id, text: 'the last one' }]);
const items = async () => (await api(`/api/bots/${bot.id}/messages?limit=200&direction=inbound`)).items;
for (let waited = 0; (await items())[0]?.content !== 'the last one'; waited += 1) {
  assert.ok(waited < 150, 'the messages do not arrive');
  await page.waitForTimeout(200);
}

let pages = 0;
async function check(path, status = 200) {
  const response = await page.goto(base + path);
  assert.equal(response.status(), status, path);
  pages += 1;
  const found = await page.evaluate((hidden) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const unseen = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const isField = node.parentElement.closest('textarea, script, template');
      if (!isField && new RegExp(hidden).test(node.data)) unseen.push(node.data.slice(0, 80));
    }
    const all = [...document.querySelectorAll('*')];
    return {
      pwned: globalThis.pwned,
      unseen,
      foreign: document.querySelectorAll(
        'script:not([src^="/console/assets/"]), iframe, base, style, object, embed, math, main meta, img:not([src^="/api/media/"])',
      ).length,
      handlers: all.flatMap((one) => [...one.attributes]).filter(({ name }) => name.startsWith('on') || name === 'style').length,
      links: [...document.querySelectorAll('a[href], form[action]')].map((one) => one.href || one.action)
        .filter((address) => !address.startsWith(location.origin)),
      wider: document.documentElement.scrollWidth - innerWidth,
    };
  }, hidden.source);
  assert.deepEqual(found, { pwned: undefined, unseen: [], foreign: 0, handlers: 0, links: [], wider: Math.min(0, found.wider) }, path);
}

// Without the replies, which come when they come.
await check('/console/messages?limit=200&direction=inbound');
await picture(page, 'hostile-messages');
const shown = await page.locator('[data-region=messages]').innerText();
for (const part of [`<script>${RUN}</script>`, '⟨U+202E⟩gnp.exe', 'a␇b␈c␛[31md', '␡⟨U+0085⟩', 'مرحبا']) {
  assert.ok(shown.includes(part), `the list does not show ${part}`);
}
const all = await items();
const special = all.filter((one, n) => n % 9 === 0 || one.content.length > 30_000);
for (const one of special) await check(`/console/messages/${bot.id}/${one.id}`);
const traces = (await api(`/api/bots/${bot.id}/traces?limit=200`)).items;
const pending = async () => (await api(`/api/bots/${bot.id}/traces?status=pending`)).items.length;
for (let waited = 0; (await pending()) > 0; waited += 1) {
  assert.ok(waited < 150, 'the deliveries do not end');
  await page.waitForTimeout(200);
}
for (const trace of traces.filter((_, n) => n % 12 === 0)) {
  await check(`/console/traces/${bot.id}/${trace.trace_id ?? trace.id}?step=4`);
}
await picture(page, 'hostile-trace');
await check(`/console/bots/${bot.id}/contacts?limit=200`);
await picture(page, 'hostile-contacts');
const people = await page.locator('main td a[href*="/contacts/"]').evaluateAll((links) => links.map((link) => link.getAttribute('href')));
assert.ok(people.length > 15, `${people.length} people`);
for (const address of people.filter((_, n) => n % 2 === 0)) await check(address);
for (const text of kinds.filter((_, n) => n % 3 === 0)) {
  const query = encodeURIComponent(text.slice(0, 200));
  await check(`/console/find?q=${query}`);
  await check(`/console/messages?q=${query}`);
}

// What the user names: also where it is refused, it comes back as text.
const post = (path, fields) => page.request.post(base + path, {
  headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: base },
  data: new URLSearchParams(fields).toString(), maxRedirects: 0,
});
const own = `/console/bots/${bot.id}`;
for (const [n, text] of kinds.entries()) {
  const name = [...text].slice(0, 60).join('');
  for (const [path, fields] of [
    [own, { do: 'rename', name }],
    ['/console/account', { do: 'save', display_name: name }],
    ['/console/account/keys', { do: 'create', name }],
    [`${own}/channels/${channel.id}/settings`, { do: 'update', name }],
    [`${own}/contacts`, { do: 'remark', user: all[0].from_user_id ?? '', remark: name }],
    [`${own}/channels/${channel.id}/webhook`, { do: 'save', url: text }],
  ]) {
    const response = await post(path, fields);
    assert.ok([200, 303, 400, 404, 409].includes(response.status()), `${path}: ${response.status()}`);
    const answer = await response.text();
    for (const part of ['<script>globalThis', '<img src=x', '<svg onload', '<iframe', '<base', '<style>*', '<math>']) {
      assert.ok(!answer.includes(part), `${path} contains ${part}`);
    }
  }
  if (n % 2) continue;
  for (const path of ['/console', '/console/bots', own, `${own}/channels/${channel.id}`, `${own}/contacts`, '/console/account/keys', '/console/account']) {
    await check(path);
  }
}
await picture(page, 'hostile-keys');
console.log(`${pages} pages`);
await close();
