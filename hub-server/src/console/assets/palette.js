// The command palette: the visible links and buttons of the page, the navigation, and what the search finds. Choosing
// an entry presses the control.

import { isVisible, removeWhenClosed } from './keys.js';
import { load } from './live.js';
import { base, word } from './page.js';

/** @typedef {{ group: string, text: string, rank: number, run: () => void }} Entry */

/** Entries that are shown. */
const MAX_SHOWN = 50;
/** After the last key, in milliseconds. */
const SEARCH_AFTER = 200;

/** @param {Element} element */
const textOf = (element) => (element.getAttribute('aria-label') ?? element.textContent ?? '').replace(/\s+/g, ' ').trim();

/** Presses a control as a person would. @param {HTMLElement} control */
function press(control) {
  control.focus();
  control.click();
}

/** The controls of the page. Those in tables are found by their text only: there are many. @returns {Entry[]} */
function commands() {
  const groups = /** @type {const} */ ([
    ['main', word('on_page'), 0],
    ['nav.rail, header.top', word('go_to'), 0],
  ]);
  return groups.flatMap(([selector, group]) =>
    [...document.querySelectorAll(selector)]
      .flatMap((root) => [...root.querySelectorAll('a[href], button, summary')])
      .filter(isVisible)
      .filter((control) => textOf(control) && !(control instanceof HTMLButtonElement && control.disabled))
      .map((control) => ({
        group,
        text: textOf(control),
        rank: control.closest('tbody, .plain-list') ? 1 : 0,
        run: () => press(control),
      })),
  );
}

/** What the search of the hub finds. @param {string} text @returns {Promise<Entry[]>} */
async function search(text) {
  const address = `${base}/console/find?${new URLSearchParams({ q: text })}`;
  const answer = await load(address, 'main').catch(() => null);
  if (!answer || answer.status !== 200) return [];
  const group = word('found');
  // An id leads to its page.
  if (answer.address.pathname !== `${base}/console/find`) {
    return [{ group, text: textOf(answer.page.querySelector('h1') ?? answer.page.body), rank: 0, run: () => location.assign(answer.address) }];
  }
  const links = [...answer.page.querySelectorAll(`[data-region="main"] a[href^="${base}/console"]`)];
  return links.map((link) => {
    const to = link.getAttribute('href') ?? '';
    return { group, text: textOf(link), rank: 0, run: () => location.assign(to) };
  });
}

/** @param {string} tag @param {Record<string, string>} attributes */
function make(tag, attributes) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Whether all words of the query are in the text. @param {string} text @param {string} query */
const matches = (text, query) => query.toLowerCase().split(/\s+/).every((part) => text.toLowerCase().includes(part));

/** Opens the palette. @param {string} [typed] */
export function open(typed = '') {
  if (document.querySelector('dialog[open]')) return;
  const own = commands();
  const dialog = /** @type {HTMLDialogElement} */ (make('dialog', { class: 'palette', 'aria-label': word('palette_title') }));
  const field = /** @type {HTMLInputElement} */ (make('input', {
    type: 'search', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-autocomplete': 'list',
    'aria-label': word('palette_help'), placeholder: word('palette_help'), autocomplete: 'off', maxlength: '200',
  }));
  const list = make('div', { id: 'palette-list', role: 'listbox', 'aria-label': word('palette_title') });
  const none = Object.assign(make('p', { role: 'status', class: 'muted' }), { hidden: true });
  const close = Object.assign(make('button', { type: 'button' }), { textContent: word('dismiss') });
  const bar = make('div', { class: 'bar' });
  bar.append(field, close);
  dialog.append(bar, list, none);
  field.value = typed;

  /** @type {Entry[]} */
  let shown = [];
  /** @type {Entry[]} */
  let found = [];
  let chosen = 0;
  let timer = 0;

  const mark = () => {
    [...list.querySelectorAll('[role=option]')].forEach((option, index) => {
      option.setAttribute('aria-selected', String(index === chosen));
      if (index === chosen) option.scrollIntoView({ block: 'nearest' });
    });
    if (shown.length) field.setAttribute('aria-activedescendant', `palette-${chosen}`);
    else field.removeAttribute('aria-activedescendant');
  };
  /** @param {Entry} entry */
  const run = (entry) => {
    dialog.close();
    entry.run();
  };
  const draw = () => {
    const query = field.value.trim();
    const fits = own.filter(({ text, rank }) => (query ? matches(text, query) : rank === 0));
    shown = [...fits, ...found].slice(0, MAX_SHOWN);
    chosen = 0;
    const groups = new Map();
    shown.forEach((entry, index) => {
      const option = make('div', { role: 'option', id: `palette-${index}` });
      option.textContent = entry.text;
      option.addEventListener('click', () => run(entry));
      const group = groups.get(entry.group) ?? make('div', { role: 'group', 'aria-label': entry.group });
      if (!groups.has(entry.group)) {
        const heading = make('p', { class: 'muted', 'aria-hidden': 'true' });
        heading.textContent = entry.group;
        group.append(heading);
      }
      groups.set(entry.group, group);
      group.append(option);
    });
    list.replaceChildren(...groups.values());
    list.hidden = !shown.length;
    none.hidden = shown.length > 0;
    none.textContent = none.hidden ? '' : word('nothing');
    mark();
  };
  const look = async () => {
    const query = field.value.trim();
    const entries = query ? await search(query) : [];
    if (field.value.trim() !== query || !dialog.open) return;
    found = entries;
    draw();
  };
  field.addEventListener('input', () => {
    found = [];
    draw();
    clearTimeout(timer);
    timer = setTimeout(look, SEARCH_AFTER);
  });
  field.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const steps = new Map([['ArrowDown', 1], ['ArrowUp', -1]]);
    const step = steps.get(event.key);
    if (step && shown.length) {
      event.preventDefault();
      chosen = (chosen + step + shown.length) % shown.length;
      mark();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (shown[chosen]) run(shown[chosen]);
    }
  });
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('close', () => clearTimeout(timer));
  removeWhenClosed(dialog);
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  draw();
  if (typed) void look();
}
