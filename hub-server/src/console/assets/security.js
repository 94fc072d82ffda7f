// A passkey is added to the account of the signed-in user, or used to confirm a change: by the operations that the
// sign-in page uses, too.

import { load, morphChildren } from './live.js';
import { base, prepare, say, word } from './page.js';
import { askHub, createPasskey, hasPasskeys, usePasskey } from './passkey.js';

/** A refusal of the hub. */
class Refusal extends Error {
  /** @param {{ message: string, reason?: string, details?: { reason: string }[] }} error */
  constructor(error) {
    super(error.details?.[0]?.reason ?? error.message);
    this.isTooOld = error.reason === 'session_too_old';
  }
}

/** @param {string} step @param {object} body */
async function post(step, body) {
  const json = await askHub(step, body);
  if (!json.success) throw new Refusal(json.error);
  return json.data;
}

/** What happened, in the language of the page if there is a word for it. @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) return String(error);
  const words = new Map([
    ['NotAllowedError', 'passkey_cancelled'],
    ['AbortError', 'passkey_cancelled'],
    ['InvalidStateError', 'passkey_exists'],
    ['SecurityError', 'passkey_unavailable'],
    ['TypeError', 'not_sent'],
  ]);
  if (error instanceof Refusal && error.isTooOld) return word('passkey_too_old');
  return word(words.get(error.name) ?? '') || error.message;
}

/** @param {HTMLFormElement} form */
async function add(form) {
  const field = form.querySelector('input');
  const name = field?.value.trim();
  const { flow_id, publicKey } = await post('register/begin', name ? { name } : {});
  await post('register/finish', { flow_id, ...(await createPasskey(publicKey)) });
  form.reset();
  const { page } = await load(location.href, 'main');
  const [here, there] = [document, page].map((one) => one.querySelector('[data-region="main"]'));
  if (here && there) morphChildren(here, there);
  prepare();
}

/** A new session in place of the present one, and the page from which the user came. @param {HTMLFormElement} form */
async function confirm(form) {
  const { username, back } = form.dataset;
  const { flow_id, publicKey } = await post('login/begin', { username });
  await post('login/finish', { flow_id, ...(await usePasskey(publicKey)) });
  location.assign(base + back);
}

/** @param {HTMLFormElement} form */
async function submit(form) {
  const button = form.querySelector('button');
  const problem = form.querySelector('[data-problem]');
  const hint = form.querySelector('[data-confirm]');
  if (!button || button.disabled || !problem) return;
  button.disabled = true;
  problem.textContent = '';
  const show = (/** @type {boolean} */ isTooOld) => hint instanceof HTMLElement && (hint.hidden = !isTooOld);
  show(false);
  try {
    if ('back' in form.dataset) return await confirm(form);
    await add(form);
    say(word('passkey_added'));
    const done = document.querySelector('[data-added]');
    if (done) done.textContent = word('passkey_added');
  } catch (error) {
    problem.textContent = reasonOf(error);
    show(error instanceof Refusal && error.isTooOld);
  } finally {
    button.disabled = false;
    button.focus();
  }
}

for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (!(form instanceof HTMLFormElement)) continue;
  form.hidden = !hasPasskeys();
  const missing = document.querySelector('[data-no-passkey]');
  if (missing instanceof HTMLElement) missing.hidden = !form.hidden;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit(form);
  });
}
