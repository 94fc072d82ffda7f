// What every page has: buttons that copy, times in the time zone of the browser, menus that close, the keyboard.
// The pages work without it.

/** The path below which a reverse proxy serves the hub. */
export const base = document.documentElement.dataset.base ?? '';

/** The word of the page that a template contains. @param {string} name */
export const word = (name) => {
  const template = document.querySelector(`template[data-word="${name}"]`);
  return template instanceof HTMLTemplateElement ? (template.content.textContent ?? '') : '';
};

/** What screen readers read out next. @param {string} text */
export function say(text) {
  const place = document.querySelector('[data-announcement]');
  if (place) place.textContent = text;
}

/** Copies the text next to a button. @param {HTMLButtonElement} button */
async function copy(button) {
  const text = button.parentElement?.querySelector('code')?.textContent ?? '';
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = word('copied');
  say(word('copied'));
  setTimeout(() => (button.textContent = before), 2000);
}

const DAY = 24 * 60 * 60 * 1000;
const lang = document.documentElement.lang;

/** Times of the last day are relative to now, others local; the title has the exact ones. */
function showTimes() {
  const relative = new Intl.RelativeTimeFormat(lang, { numeric: 'auto' });
  for (const element of document.querySelectorAll('time[datetime]')) {
    if (!(element instanceof HTMLTimeElement)) continue;
    const at = new Date(element.dateTime);
    const away = at.getTime() - Date.now();
    const size = Math.abs(away);
    const [unit, length] = size < 60_000 ? ['second', 1000] : size < 3_600_000 ? ['minute', 60_000] : ['hour', 3_600_000];
    const local = at.toLocaleString(lang);
    const text =
      size < DAY
        ? relative.format(Math.trunc(away / Number(length)), /** @type {Intl.RelativeTimeFormatUnit} */ (unit))
        : local;
    // A text that did not change keeps its node, and with it what is selected.
    if (element.textContent !== text) element.textContent = text;
    element.title = `${local} · ${element.dateTime}`;
  }
}

/** Makes what only scripts can do visible. */
export function prepare() {
  for (const button of document.querySelectorAll('button[data-copy]')) {
    if (button instanceof HTMLButtonElement) button.hidden = !navigator.clipboard;
  }
  for (const form of document.querySelectorAll('form[data-counts]')) count(form);
  showTimes();
}

/** The number of chosen rows is on the button of their form. @param {Element} form */
function count(form) {
  const chosen = form.querySelectorAll('tbody input:checked').length;
  const output = form.querySelector('output[data-count]');
  if (output) output.textContent = chosen ? String(chosen) : '';
}

document.addEventListener('change', (event) => {
  const form = event.target instanceof Element ? event.target.closest('form[data-counts]') : null;
  if (form) count(form);
});
document.addEventListener('click', (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const button = target?.closest('button[data-copy]');
  if (button instanceof HTMLButtonElement) void copy(button);
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    if (!target || !menu.contains(target)) menu.removeAttribute('open');
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    menu.removeAttribute('open');
    const summary = menu.querySelector('summary');
    if (summary instanceof HTMLElement) summary.focus();
  }
});

// A file that is too large is refused before it is sent.
document.addEventListener('change', ({ target }) => {
  if (!(target instanceof HTMLInputElement) || !target.dataset.maxBytes) return;
  const isTooLarge = [...(target.files ?? [])].some((file) => file.size > Number(target.dataset.maxBytes));
  target.setCustomValidity(isTooLarge ? word('too_large') : '');
  target.reportValidity();
});

/* ---- Announcements ---- */

/** Between two announcements, in milliseconds. */
const QUIET = 10_000;
/** The keys of the rows that were announced or are about to be. @type {Set<string>} */
const announced = new Set();
const counts = { rows: 0, failed: 0 };
let announcing = 0;

/** Announces new rows of a list, all that came within ten seconds together. @param {Element[]} rows */
export function announce(rows) {
  if (document.documentElement.dataset.announcements === 'off') return;
  for (const row of rows) {
    const key = row.getAttribute('data-key') ?? '';
    if (announced.has(key)) continue;
    announced.add(key);
    counts.rows += 1;
    if (row.querySelector('.badge.error')) counts.failed += 1;
  }
  if (!counts.rows || announcing) return;
  const speak = () => {
    announcing = 0;
    if (!counts.rows) return;
    say(word('announced').replace('{count}', String(counts.rows)).replace('{failed}', String(counts.failed)));
    counts.rows = counts.failed = 0;
    announcing = setTimeout(speak, QUIET);
  };
  speak();
}

/* ---- Keyboard ---- */

const FIELDS = 'input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable]';

/** @type {Promise<typeof import('./keys.js')> | undefined} One promise, so that keys stay in their order. */
let keys;

// Palette and keys are loaded when they are first used.
document.addEventListener('keydown', async (event) => {
  const { key, ctrlKey, metaKey, altKey, shiftKey, target } = event;
  if (!word('palette_title') || event.isComposing) return;
  if ((ctrlKey || metaKey) && !altKey && !shiftKey && key.toLowerCase() === 'k') {
    event.preventDefault();
    return (await import('./palette.js')).open();
  }
  const isOff = document.documentElement.dataset.keys === 'off' || document.querySelector('dialog[open]');
  const isInField = target instanceof Element && target.closest(FIELDS);
  if (isOff || isInField || ctrlKey || metaKey || altKey || key.length !== 1 || key === ' ') return;
  // Firefox searches with it.
  if (key === '/') event.preventDefault();
  (await (keys ??= import('./keys.js'))).press(key);
});
document.querySelector('form.find input')?.addEventListener('click', async (event) => {
  const field = event.currentTarget;
  if (field instanceof HTMLInputElement) (await import('./palette.js')).open(field.value);
});

// The notice stays on the page; a reload or a bookmark does not repeat it.
const address = new URL(location.href);
if (address.searchParams.has('done')) {
  address.searchParams.delete('done');
  history.replaceState(history.state, '', address);
}

prepare();
setInterval(showTimes, 10_000);
