// Single keys. Each does what a visible control does: elements name their key in `aria-keyshortcuts`.

import { load } from './live.js';
import { base, say, word } from './page.js';

/** The second key after `g`, and the page of the navigation to which it leads. */
const PLACES = new Map([
  ['h', '/console'],
  ['m', '/console/messages'],
  ['b', '/console/bots'],
  ['p', '/console/plugins'],
  ['a', '/console/account'],
]);
/** Until a `g` is forgotten, in milliseconds. */
const SEQUENCE = 1500;
let lastG = -SEQUENCE;

/** What is in closed details has a place, too, but cannot be seen. @param {Element | null | undefined} element @returns {element is HTMLElement} */
export const isVisible = (element) =>
  element instanceof HTMLElement && element.getClientRects().length > 0 && (element.checkVisibility?.() ?? true);

/** The first visible element. @param {string} selector @param {ParentNode} root */
const find = (selector, root = document) => [...root.querySelectorAll(selector)].find(isVisible);

/** The links that open the rows of the lists. */
function rows() {
  const all = [...document.querySelectorAll('main tbody tr, main .plain-list > li')];
  const link = (/** @type {Element} */ row) => find('a[data-open]', row) ?? find('a[href]', row);
  return all.flatMap((row) => {
    const opens = link(row);
    return opens ? [{ row, opens }] : [];
  });
}

/** The row with the focus, or else the marked one. */
function current() {
  const all = rows();
  const at = all.findIndex(({ row }) => row.contains(document.activeElement));
  return { all, at: at < 0 ? all.findIndex(({ row }) => row.hasAttribute('aria-current')) : at };
}

/** @param {number} by */
function move(by) {
  const { all, at } = current();
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
  next?.opens.focus();
  next?.row.scrollIntoView({ block: 'nearest' });
}

function select() {
  const { all, at } = current();
  const box = find('input[type=checkbox]', all[at]?.row);
  if (all[at] && box) box.click();
}

/** Copies the trace id of the row with the focus. */
async function copyTrace() {
  const { all, at } = current();
  const link = find('a[href*="/console/traces/"]', all[at]?.row);
  const id = link instanceof HTMLAnchorElement && all[at] ? link.pathname.split('/').pop() : null;
  if (!id || !navigator.clipboard) return;
  await navigator.clipboard.writeText(id);
  say(`${word('copied')}: ${id}`);
}

/** The focus returns to where it was, or else to the content. @param {HTMLDialogElement} dialog */
export function removeWhenClosed(dialog) {
  dialog.addEventListener('close', () => {
    dialog.remove();
    if (document.activeElement === document.body) document.querySelector('main')?.focus({ preventScroll: true });
  });
}

/** The key help over the page; the page with the same if it cannot be loaded. */
async function help() {
  const address = `${base}/console/help/keys`;
  const { page } = await load(address, 'main').catch(() => ({ page: null }));
  const content = page?.querySelector('[data-region="main"]');
  if (!content) return location.assign(address);
  const dialog = document.createElement('dialog');
  dialog.className = 'key-help';
  const close = Object.assign(document.createElement('button'), { type: 'button', textContent: word('dismiss') });
  close.addEventListener('click', () => dialog.close());
  removeWhenClosed(dialog);
  const heading = content.querySelector('h1');
  if (heading) {
    const title = Object.assign(document.createElement('h2'), { id: 'help-title', textContent: heading.textContent });
    heading.replaceWith(title);
    dialog.setAttribute('aria-labelledby', title.id);
  }
  content.removeAttribute('data-region');
  dialog.append(close, document.importNode(content, true));
  document.body.append(dialog);
  dialog.showModal();
}

/** What a control of the page does for its key: links and buttons are pressed, but nothing is sent with one key. */
function activate(/** @type {HTMLElement} */ control) {
  const sends = control instanceof HTMLButtonElement && control.type === 'submit';
  control.focus();
  control.scrollIntoView({ block: 'nearest' });
  if (!sends && control.matches('a[href], button')) control.click();
}

/** @param {string} key */
export function press(key) {
  const isPlace = performance.now() - lastG < SEQUENCE;
  lastG = key === 'g' ? performance.now() : -SEQUENCE;
  if (isPlace) {
    const link = find(`nav.rail a[href="${base}${PLACES.get(key) ?? ''}"]`);
    if (link) return link.click();
  }
  if (key === 'j') return move(1);
  if (key === 'k') return move(-1);
  if (key === 'x') return select();
  if (key === 'n') return find('button.pill')?.click();
  if (key === '?') return void help();
  if (key === '/') return (find('main form[role=search] input[type=search]') ?? find('form.find input'))?.focus();
  const control = find(`main [aria-keyshortcuts="${CSS.escape(key)}"]`);
  if (control) return activate(control);
  if (key === 'y') void copyTrace();
}
