// ==UserScript==
// @name        keyworder
// @description Says what a message is about, in a header and in the body
// @version     1.0.0
// @match       text
// @timeout     1000
// ==/UserScript==

const STOP = new Set(['a', 'an', 'and', 'as', 'for', 'in', 'is', 'it', 'its', 'let', 'me', 'my', 'on', 'please', 'the', 'to']);

function keywords(text) {
  const counts = new Map();
  for (const raw of text.toLowerCase().split(/[^\p{L}\p{N}]+/u)) {
    if (raw.length < 3 || STOP.has(raw)) continue;
    counts.set(raw, (counts.get(raw) || 0) + 1);
  }
  return [...counts]
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, 8)
    .map(([word, count]) => ({ word, count }));
}

function onRequest(ctx) {
  const found = keywords(ctx.msg.content);
  ctx.req.headers['X-About'] = found.length > 0 ? 'something' : 'nothing';
  ctx.req.body.keywords = found;
}
