// Live pages: regions of a page that follow the events of the hub, and forms that are sent without leaving the page.
// A region has a name (`data-region`) and the events on which it depends (`data-live`): kinds, or `kind:id`. On such an
// event the page is requested again, and what changed in the region is replaced. The pages work without it.

import { announce, base, prepare, word } from './page.js';

/** @typedef {'connecting' | 'live' | 'polling' | 'offline' | 'signed_out'} State */
/** @typedef {{ type: string, id?: string, resync?: boolean, [name: string]: unknown }} HubEvent */
/** @typedef {{ event?: HubEvent, state?: State, position?: string, isQuestion?: boolean }} Note */

/** Between two requests of a page, in milliseconds. */
const MIN_INTERVAL = 500;
/** Between two requests while there is no stream. */
const POLL_INTERVAL = 5_000;
/** A stream that has not begun by then is held back by a proxy. */
const HELLO_TIMEOUT = 5_000;
/** Until a form with a file is given up, in milliseconds; 50 MiB take a while. */
const UPLOAD_TIMEOUT = 600_000;
/** A region that is still being loaded is marked then. */
const BUSY_AFTER = 150;
/** Before a stream is opened again that was refused. */
const RETRY_AFTER = [2_000, 5_000, 15_000, 30_000];
const KINDS = ['hello', 'resync', 'message', 'trace', 'sent', 'media', 'bot', 'plugin', 'review', 'app'];

/* ---- Loading ---- */

/**
 * Loads a page of the console as a document, without running anything in it.
 * @param {string} address
 * @param {string} region
 * @param {FormData} [form] With a file, it is sent as it is.
 * @returns {Promise<{ page: Document, status: number, address: URL }>}
 */
export function load(address, region, form) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(form ? 'POST' : 'GET', address);
    request.responseType = 'document';
    request.setRequestHeader('X-Fragment', region);
    request.onload = () => {
      const page = request.responseXML;
      if (page) resolve({ page, status: request.status, address: new URL(request.responseURL || address, location.href) });
      else reject(new Error('no page'));
    };
    request.onerror = () => reject(new Error('no answer'));
    request.ontimeout = request.onerror;
    const texts = [...(form ?? [])].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []));
    const hasFile = texts.length < [...(form ?? [])].length;
    request.timeout = hasFile ? UPLOAD_TIMEOUT : 30_000;
    request.send(form && !hasFile ? new URLSearchParams(texts) : (form ?? null));
  });
}

/* ---- Replacing what changed ---- */

/** @param {Node} node */
const keyOf = (node) => (node instanceof Element ? (node.getAttribute('data-key') ?? (node.id || null)) : null);

/** Whether a person typed into a field or chose something in it. @param {Element} field */
function isTouched(field) {
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(field.tagName) && field === document.activeElement) return true;
  if (field instanceof HTMLSelectElement) return [...field.options].some((one) => one.selected !== one.defaultSelected);
  if (field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
  if (!(field instanceof HTMLInputElement)) return false;
  return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
}

/** Whether an attribute belongs to the person or to a script, not to the page. @param {Element} element @param {string} name */
const isKept = (element, name) =>
  (name === 'open' && (element instanceof HTMLDetailsElement || element instanceof HTMLDialogElement)) ||
  (name === 'hidden' && element.matches('[data-copy], [data-script]')) ||
  (name === 'aria-busy' && element instanceof HTMLFormElement) ||
  (/^(value|checked)$/.test(name) && isTouched(element));

/** @param {Element} from @param {Element} to */
function morphElement(from, to) {
  if (from instanceof HTMLTimeElement && to instanceof Element && from.dateTime === to.getAttribute('datetime')) return;
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !isKept(from, name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !isKept(from, name)) from.setAttribute(name, value);
  }
  if (!isTouched(from)) morphChildren(from, to);
}

/** @param {Node} from @param {Node} to */
function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from instanceof Element && to instanceof Element) return morphElement(from, to);
  const selection = getSelection();
  const isSelected = selection && !selection.isCollapsed && selection.containsNode(from, true);
  if (!isSelected && from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
}

/**
 * Makes the children of an element like those of another. Children with a key are found by it, others by their order;
 * what stays is not moved, so that focus, scroll position and typed text stay too.
 * @param {Element} from
 * @param {Element} to
 */
export function morphChildren(from, to) {
  const left = new Set(from.childNodes);
  /** @param {Node} wanted */
  const take = (wanted) => {
    const key = keyOf(wanted);
    for (const node of left) {
      if (node.nodeName === wanted.nodeName && keyOf(node) === key) {
        left.delete(node);
        return node;
      }
    }
    return null;
  };
  const placed = [...to.childNodes].map((wanted) => ({ wanted, node: take(wanted) }));
  for (const node of left) {
    const isFocused = node.contains(document.activeElement) && document.activeElement !== document.body;
    const neighbour = node instanceof Element ? (node.nextElementSibling ?? node.previousElementSibling) : null;
    from.removeChild(node);
    const next = neighbour?.querySelector('a[href], button, input, select, textarea');
    if (isFocused && next instanceof HTMLElement) next.focus();
  }
  placed.forEach(({ wanted, node }, index) => {
    const child = node ?? document.importNode(wanted, true);
    const here = from.childNodes[index] ?? null;
    if (here !== child) from.insertBefore(child, here);
    if (node) morph(node, wanted);
  });
}

/* ---- Regions ---- */

/** @param {ParentNode} root @param {string} name */
const region = (root, name) => root.querySelector(`[data-region="${CSS.escape(name)}"]`);

const live = () => [...document.querySelectorAll('[data-region][data-live]')].filter((one) => one instanceof HTMLElement);

/** @param {ParentNode} root */
const rows = (root) => [...root.querySelectorAll('tbody > [data-key]')];

let pill = /** @type {HTMLButtonElement | null} */ (null); // It inserts the rows that wait.

/** @param {Element} here @param {number} count */
function showPill(here, count) {
  if (!pill?.isConnected) {
    pill = Object.assign(document.createElement('button'), { type: 'button', className: 'pill' });
    pill.addEventListener('click', insertRows);
    here.before(pill);
  }
  pill.textContent = word('new_rows').replace('{count}', String(count));
}

let insertsRows = false; // With the next answer.
function insertRows() {
  insertsRows = true;
  for (const one of live()) if (one.hasAttribute('data-held')) makeStale(one);
}

/**
 * Replaces a region. New rows at the top of a held list wait until the person wants them.
 * @param {Element} here
 * @param {Element} there
 */
function replace(here, there) {
  const known = new Set(rows(here).map(keyOf));
  const fresh = rows(there).filter((row) => !known.has(keyOf(row)));
  announce(fresh);
  if (here.hasAttribute('data-held') && known.size && !insertsRows) {
    if (fresh.length) showPill(here, fresh.length);
    else pill?.remove();
    // All are new: the rows that are shown are on a later page by now.
    if (fresh.length === rows(there).length) return;
    for (const row of fresh) row.remove();
  } else if (here.hasAttribute('data-held')) {
    pill?.remove();
  }
  morphElement(here, there);
}

/** @type {Set<string>} */
const stale = new Set();
let [timer, isLoading] = [0, false];
let lastLoad = -MIN_INTERVAL;

/** @param {HTMLElement} one */
function makeStale(one) {
  stale.add(one.dataset.region ?? '');
  schedule(MIN_INTERVAL);
}

/** Loads what is stale, at most so often; only in a tab that is visible. @param {number} interval */
function schedule(interval) {
  if (timer || isLoading || document.hidden || !stale.size || state === 'signed_out') return;
  timer = setTimeout(refresh, Math.max(0, lastLoad + interval - performance.now()));
}

async function refresh() {
  timer = 0;
  isLoading = true;
  lastLoad = performance.now();
  const names = [...stale];
  stale.clear();
  const marks = setTimeout(() => names.forEach((name) => region(document, name)?.setAttribute('aria-busy', 'true')), BUSY_AFTER);
  let interval = MIN_INTERVAL;
  try {
    const { page, status, address } = await load(location.href, names.join(' '));
    if (address.pathname.startsWith(`${base}/login`)) return note({ state: 'signed_out' });
    if (status === 200) {
      for (const name of names) {
        const [here, there] = [region(document, name), region(page, name)];
        if (here && there) replace(here, there);
      }
      insertsRows = false;
      prepare();
    }
    if (live().length) show(state);
  } catch {
    names.forEach((name) => stale.add(name));
    interval = POLL_INTERVAL;
    show('offline');
  } finally {
    clearTimeout(marks);
    names.forEach((name) => region(document, name)?.removeAttribute('aria-busy'));
    isLoading = false;
    schedule(interval);
    expectChange();
  }
}

let waiting = 0;

/** A region that waits is loaded again, a form that waits is sent again; the number is the interval in milliseconds. */
function expectChange() {
  clearTimeout(waiting);
  const one = document.querySelector('[data-poll]');
  const again = (/** @type {HTMLElement} */ one) => (one instanceof HTMLFormElement && !document.hidden ? void send(one, null) : makeStale(one));
  if (one instanceof HTMLElement) waiting = setTimeout(again, Number(one.dataset.poll), one);
}

/* ---- Events ---- */

let state = /** @type {State} */ ('connecting');
let position = ''; // The id of the last event.
let poll = 0;
let leads = false; // This tab holds the stream.
const others = 'BroadcastChannel' in window ? new BroadcastChannel('hub-events') : null;

/** @param {State} shown */
function show(shown) {
  const element = document.querySelector('[data-connection]');
  if (!(element instanceof HTMLElement) || element.dataset.connection === shown) return;
  element.dataset.connection = shown;
  element.textContent = word(shown);
  element.hidden = false;
}

/** What the tab with the stream reports to itself and to the others. @param {Note} said */
function note(said) {
  others?.postMessage(said);
  take(said);
}

/** @param {Note} said */
function take(said) {
  const isFirst = !position;
  if (said.position) position = said.position;
  if (said.isQuestion && leads) others?.postMessage({ state, position });
  if (said.state) {
    state = said.state;
    show(state);
    clearInterval(poll);
    poll = state === 'polling' ? setInterval(() => live().forEach(makeStale), POLL_INTERVAL) : 0;
    if (state === 'signed_out') source?.close();
  }
  const event = said.event;
  if (!event) return;
  // A stream that continues after the last event has nothing to catch up with.
  const isAll = event.type === 'resync' || (event.type === 'hello' && (isFirst || event.resync !== false));
  const ids = Object.values(event);
  for (const one of live()) {
    const depends = (one.dataset.live ?? '').split(' ').some((token) => {
      const [kind, id] = token.split(':');
      return kind === event.type && (!id || ids.includes(id));
    });
    if (isAll || depends) makeStale(one);
  }
}

let source = /** @type {EventSource | null} */ (null);
let failures = 0;
let hello = 0;

/** Without a beginning in time, pages are requested from time to time. */
function expectHello() {
  clearTimeout(hello);
  hello = setTimeout(() => state !== 'signed_out' && note({ state: 'polling' }), HELLO_TIMEOUT);
}

function follow() {
  leads = true;
  source = new EventSource(`${base}/api/events${position ? `?after=${encodeURIComponent(position)}` : ''}`);
  expectHello();
  /** @param {Event} received */
  const receive = (received) => {
    if (!(received instanceof MessageEvent)) return;
    const event = /** @type {HubEvent} */ (JSON.parse(received.data));
    if (event.type === 'hello') {
      clearTimeout(hello);
      failures = 0;
      note({ state: 'live' });
    }
    note({ event, position: received.lastEventId || event.id });
  };
  for (const kind of KINDS) source.addEventListener(kind, receive);
  source.onerror = () => {
    if (state === 'signed_out') return;
    if (source?.readyState === EventSource.CLOSED) {
      // The hub refused: signed out, too many streams, or not available. The next page shows which.
      note({ state: 'polling' });
      live().forEach(makeStale);
      setTimeout(() => state !== 'signed_out' && follow(), RETRY_AFTER[Math.min(failures++, RETRY_AFTER.length - 1)]);
    } else if (state === 'live') {
      note({ state: 'connecting' });
      expectHello();
    }
  };
}

/** One stream per browser: the tab with the lock has it; when that tab closes, another one continues. */
function start() {
  expectChange();
  if (!live().length) return;
  show('connecting');
  if (!others || !('locks' in navigator)) return follow();
  others.onmessage = (message) => take(message.data);
  others.postMessage({ isQuestion: true });
  void navigator.locks.request('hub-events', () => {
    follow();
    return new Promise(() => {});
  });
}

/* ---- Forms ---- */

let answers = Promise.resolve(); // To all forms so far.
/** Sends a form after the answers to those before: a test uses what was just saved. @param {HTMLFormElement} form @param {HTMLElement | null} button */
function send(form, button) {
  if (form.hasAttribute('aria-busy')) return;
  const data = new FormData(form);
  const typed = JSON.stringify([...data]);
  const chosen = button ?? form.querySelector('button[name]');
  if (chosen instanceof HTMLButtonElement && chosen.name) data.append(chosen.name, chosen.value);
  form.setAttribute('aria-busy', 'true');
  form.querySelector('[data-not-sent]')?.remove();
  const answer = answers.then(() => load(form.getAttribute('action') ?? location.href, 'main', data));
  answers = answer.then((answer) => shown(form, typed, answer)).catch(() => {
    const problem = Object.assign(document.createElement('p'), { className: 'problem', textContent: word('not_sent') });
    problem.setAttribute('role', 'alert');
    problem.setAttribute('data-not-sent', '');
    form.append(problem);
  }).finally(() => {
    form.removeAttribute('aria-busy');
    expectChange();
  });
}

/** Shows the answer to a form. @param {HTMLFormElement} form @param {string} typed @param {Awaited<ReturnType<typeof load>>} answer */
function shown(form, typed, { page, status, address }) {
  const here = region(document, 'main');
  const there = region(page, 'main') ?? page.querySelector('main');
  if (!here || !there || address.pathname !== location.pathname) return location.assign(address);
  // What was typed since then stays, except for secrets.
  form.querySelectorAll('input[type=password]').forEach((one) => one instanceof HTMLInputElement && (one.value = ''));
  if (status === 200 && JSON.stringify([...new FormData(form)]) === typed) form.reset();
  morphChildren(here, there);
  document.title = page.title;
  address.searchParams.delete('done');
  if (address.href !== location.href) history.pushState(null, '', address);
  prepare();
  const next = here.querySelector('[aria-invalid="true"], [autofocus]');
  if (next instanceof HTMLElement) next.focus();
  // The button is gone: go on with what was reported.
  else if (document.activeElement === document.body) document.querySelector('main')?.focus({ preventScroll: true });
  here.querySelector('.refused, .notice')?.scrollIntoView({ block: 'nearest' });
}

document.addEventListener('submit', (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.hasAttribute('data-enhance') || event.defaultPrevented) return;
  event.preventDefault();
  send(form, event.submitter);
});
document.addEventListener('visibilitychange', () => schedule(MIN_INTERVAL));
// A stream does not notice at once that the network is gone, and has its events later. A request tells whether the hub is.
addEventListener('offline', () => live().length && (show('offline'), live().forEach(makeStale)));
addEventListener('online', () => live().length && (show(state), live().forEach(makeStale)));
// Back and forward between addresses that a form left behind, not between places of one page.
addEventListener('popstate', () => location.hash || location.reload());
// A stream that began earlier would delay the end of the loading of the page.
addEventListener('load', start);
