// Checks the signatures of a request that was pasted, in the browser: the secret is not sent. It finds the same causes
// as `hub-cli signature verify`.

import { word } from './page.js';

/** @typedef {{ ok: boolean, text: string }} Finding */
/** @typedef {{ header: string, form: string, digests: string[], key: Bytes, head: string }} Expected */
/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

/** How old, or how far ahead, a timestamp may be, in seconds. */
const TOLERANCE = 300;
const encoder = new TextEncoder();

/** @param {Bytes} bytes */
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** The bytes behind base64; `null` for other texts. @param {string} text @returns {Bytes | null} */
function base64(text) {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

/** The HMAC in hex. @param {Bytes} key @param {string} text */
async function hmac(key, text) {
  // WebCrypto takes no empty key; a zero byte is the same key.
  const raw = key.length ? key : new Uint8Array(1);
  const imported = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return hex(new Uint8Array(await crypto.subtle.sign('HMAC', imported, encoder.encode(text))));
}

/** A sentence of the page with its values. @param {string} name @param {Record<string, string | number>} [values] */
const say = (name, values = {}) =>
  Object.entries(values).reduce((text, [key, value]) => text.replace(`{${key}}`, String(value)), word(`signature_${name}`));

/** The headers in a text, by their names in lower case, with `-` for `_` and without `HTTP_`. @param {string} text */
function headersOf(text) {
  const found = new Map();
  for (const line of text.split('\n')) {
    const [, name, value] = /^\s*([\w-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    const plain = name?.toLowerCase().replaceAll('_', '-').replace(/^http-/, '');
    if (plain && !found.has(plain)) found.set(plain, { name, value });
  }
  return found;
}

/** The bodies that commonly become this one, with the cause. @param {string} body @returns {[string, string][]} */
function changedBodies(body) {
  const string = /"(?:[^"\\]|\\.)*"|\s+|[^"\s]+/g;
  /** @type {[string, string][]} */
  const bodies = [[`${body}\n`, 'newline_lost'], [body.replaceAll('\n', '\r\n'), 'line_ends']];
  if (body.endsWith('\n')) bodies.push([body.slice(0, -1), 'newline_added']);
  try {
    // As the hub writes JSON: no white space, and the necessary escapes only.
    const compact = body.replace(string, (part) =>
      part.startsWith('"') ? JSON.stringify(JSON.parse(part)) : part.trim());
    bodies.push([compact, 'serialized']);
  } catch {
    // Not JSON.
  }
  return bodies;
}

/** The keys that a signer commonly derives from the secret, with the cause. @param {string} secret @returns {[Bytes, string][]} */
function otherKeys(secret) {
  const bare = secret.replace(/^whsec_/, '');
  const decoded = base64(bare);
  /** @type {[Bytes, string][]} */
  const keys = [
    [encoder.encode(secret), 'key_text'],
    [encoder.encode(bare), 'key_bare'],
    [encoder.encode(`whsec_${bare}`), 'key_prefix'],
    [encoder.encode(secret.trim()), 'key_space'],
  ];
  if (decoded) keys.push([decoded, 'key_decoded']);
  return keys;
}

/** What is wrong with one signature. @param {Expected} expected @param {string} secret @param {string} body */
async function verify({ header, form, digests, key, head }, secret, body) {
  if (!digests.length) return { ok: false, text: say('malformed', { header, form }) };
  /** @param {Bytes} key @param {string} body */
  const isSigned = async (key, body) => digests.includes(await hmac(key, head + body));
  if (await isSigned(key, body)) return { ok: true, text: say('matches', { header }) };
  for (const [other, cause] of changedBodies(body)) {
    if (await isSigned(key, other)) return { ok: false, text: say(cause, { header }) };
  }
  for (const [other, cause] of otherKeys(secret)) {
    if (await isSigned(other, body)) return { ok: false, text: say(cause, { header }) };
  }
  return { ok: false, text: say('secret_or_body', { header }) };
}

/** Whether a timestamp is close to now. @param {string} header @param {string} value @returns {Finding[]} */
function fresh(header, value) {
  if (!/^-?\d+$/.test(value)) return [{ ok: false, text: say('no_number', { header }) }];
  const age = Math.round(Date.now() / 1000 - Number(value));
  if (age > TOLERANCE) return [{ ok: false, text: say('too_old', { header, seconds: age }) }];
  if (-age <= TOLERANCE) return [];
  return [{ ok: false, text: say(Number(value) > 1e11 ? 'milliseconds' : 'too_early', { header, seconds: -age }) }];
}

/** `X-Signature` over the body. @param {string} value @returns {Promise<Finding & { sure?: boolean }>} */
async function own(value, /** @type {string} */ secret, /** @type {string} */ body) {
  const header = 'X-Signature';
  const digits = value.replace(/^sha256=/, '');
  const key = encoder.encode(secret);
  const form = say('form_own');
  const isForm = /^sha256=[0-9a-f]{64}$/.test(value);
  if (!isForm) {
    // The right digest in another form is the commonest mistake of one's own signer.
    const expected = await hmac(key, body);
    if (digits.toLowerCase() === expected) return { ok: false, text: say(value === digits ? 'no_prefix' : 'upper_case', { header }) };
    if (hex(base64(digits) ?? new Uint8Array()) === expected) return { ok: false, text: say('is_base64', { header }) };
  }
  return verify({ header, form, digests: isForm ? [digits] : [], key, head: '' }, secret, body);
}

/** `webhook-signature` over id, timestamp and body. */
async function standard(/** @type {Map<string, { name: string, value: string }>} */ headers, /** @type {string} */ secret, /** @type {string} */ body) {
  const header = 'webhook-signature';
  const [id, at] = ['webhook-id', 'webhook-timestamp'].map((name) => headers.get(name)?.value);
  /** @type {Finding[]} */
  const missing = [['webhook-id', id], ['webhook-timestamp', at]].flatMap(([name, value]) =>
    value ? [] : [{ ok: false, text: say('absent', { header: name ?? '' }) }]);
  if (!id || !at) return missing;
  const values = (headers.get(header)?.value ?? '').split(/\s+/).filter((one) => one.startsWith('v1,'));
  const digests = values.map((one) => hex(base64(one.slice(3)) ?? new Uint8Array())).filter((one) => one.length === 64);
  const decoded = secret.startsWith('whsec_') ? base64(secret.slice(6)) : null;
  const key = decoded ?? encoder.encode(secret);
  const head = `${id}.${at}.`;
  const form = say('form_standard');
  if (!digests.length && values.some((one) => /^[0-9a-f]{64}$/i.test(one.slice(3)))) {
    return [...fresh('webhook-timestamp', at), { ok: false, text: say('is_hex', { header }) }];
  }
  return [...fresh('webhook-timestamp', at), await verify({ header, form, digests, key, head }, secret, body)];
}

/** All findings. @param {string} text @param {string} body @param {string} secret @returns {Promise<Finding[]>} */
async function check(text, body, secret) {
  const headers = headersOf(text);
  const [mine, theirs] = [headers.get('x-signature'), headers.get('webhook-signature')];
  if (!mine && !theirs) return [{ ok: false, text: say('none') }];
  const findings = [];
  if (mine) {
    findings.push(await own(mine.value, secret, body));
    if (mine.name !== 'X-Signature') findings.push({ ok: true, text: say('case', { header: 'X-Signature', name: mine.name }) });
  }
  if (theirs) findings.push(...(await standard(headers, secret, body)));
  return findings;
}

/** @param {HTMLFormElement} form */
async function run(form) {
  const field = (/** @type {string} */ name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value;
  const place = form.querySelector('[data-findings]');
  if (!place) return;
  const findings = await check(field('headers'), field('body'), field('secret'));
  place.replaceChildren(...findings.map(({ ok, text }) =>
    Object.assign(document.createElement('li'), { className: ok ? 'ok' : 'error', textContent: `${ok ? '✓' : '✗'} ${text}` })));
}

for (const form of document.querySelectorAll('form[data-signature]')) {
  if (!(form instanceof HTMLFormElement)) continue;
  // Browsers have it on https and on localhost.
  form.hidden = !crypto.subtle;
  const hint = document.querySelector('[data-signature-hint]');
  if (hint instanceof HTMLElement) hint.hidden = !form.hidden;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void run(form);
  });
}
