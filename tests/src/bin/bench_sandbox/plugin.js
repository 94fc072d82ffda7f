// ==UserScript==
// @name        order-desk
// @description Reads orders, hides what is private, and tells the desk in its own words.
// @version     1.0.0
// @match       text
// ==/UserScript==

const ORDER = /\border\s+#?(\d{1,8})\b/gi;
const PHONE = /\+?\d[\d -]{7,}\d/g;
const MAIL = /[\w.+-]+@[\w-]+\.[\w.]+/g;

const STOP = new Set(['a', 'an', 'and', 'for', 'in', 'is', 'my', 'of', 'on', 'please', 'the', 'to', 'with', 'you']);

function orders(text) {
  const found = [];
  for (const match of text.matchAll(ORDER)) found.push(Number(match[1]));
  return found.sort((a, b) => a - b);
}

function redact(text) {
  return text
    .replace(MAIL, (mail) => mail[0] + '***@' + mail.split('@')[1])
    .replace(PHONE, (phone) => phone.slice(0, 3) + '***');
}

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

function priority(text, found) {
  let score = found.length;
  if (/\b(urgent|asap|today|broken)\b/i.test(text)) score += 5;
  if (text.includes('!')) score += 1;
  return score > 4 ? 'high' : score > 1 ? 'normal' : 'low';
}

function onRequest(ctx) {
  const text = ctx.msg.content;
  const found = orders(text);
  ctx.req.headers['X-Priority'] = priority(text, found);
  ctx.req.headers['X-Orders'] = found.join(',');
  ctx.req.body = {
    id: ctx.msg.sessionID,
    from: ctx.msg.sender.user_name,
    text: redact(text),
    orders: found,
    keywords: keywords(text),
    original: { ...ctx.req.body, content: undefined },
    items: (ctx.req.body.items || []).filter((item) => item.type === 'text').map((item) => item.text.trim()),
  };
  if (found.length === 0 && text.length > 400) ctx.reply('Which order is this about?');
}
