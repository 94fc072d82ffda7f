// What a page looks like, as text: its landmarks, sections, headings, tables and controls in their order, with the places
// of all that is laid out by rules and not by the length of a text. Pictures would depend on the version of the browser.
// Names that people chose, numbers and times are left out, and so is all but the first row of a list: a description
// stays the same until a page changes. Places are in steps of eight pixels, left edge and width.

export function describe() {
  const BLOCKS = 'header, nav, main, section, form, fieldset, dl, table, details, figure, dialog, pre';
  const FIELDS = 'input:not([type=hidden]), select, textarea';
  const TEXTS = 'h1, h2, h3, th, summary, button, a[href], legend, .tabs, .badge';
  const CHOSEN = 'bdi, time, code, data, output, [data-computed], [data-region=connection], .id, .muted';
  const steps = (pixels) => Math.round(pixels / 8);
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;

  // The words of the hub in an element.
  const words = (element) => {
    const copy = element.cloneNode(true);
    for (const part of copy.querySelectorAll(CHOSEN)) part.replaceWith('…');
    const text = element.matches(CHOSEN) || element.closest('bdi, td, dd, .plain-list') ? '…' : copy.textContent;
    return text.replace(/\d+/g, '#').replace(/[\s…]+/g, ' ').trim();
  };
  const labelled = (element) => {
    const label = element.labels?.[0] ?? document.getElementById(element.getAttribute('aria-labelledby'));
    return label ? words(label) : (element.getAttribute('aria-label') ?? '').replace(/\d+/g, '#');
  };
  // Where the parts of the header and of a cell are depends on their texts, and so on the fonts of the machine.
  const place = (element) => {
    if (element.parentElement.closest('header, td')) return '';
    const box = element.getBoundingClientRect();
    return `${steps(box.left + scrollX)}+${steps(box.width)}`;
  };

  const lines = [];
  const walk = (parent, depth) => {
    let rows = 0;
    for (const element of parent.children) {
      if (!isSeen(element)) continue;
      if (element.matches('tbody tr, .plain-list > li, dl > div, svg, [data-announcement]') && (rows += 1) > 1) continue;
      const name = element.localName;
      let inner = depth;
      if (element.matches(BLOCKS)) {
        const title = element.matches('form, table, nav, section') ? labelled(element) : '';
        // How wide a table is depends on its texts.
        lines.push(`${' '.repeat(depth)}${name} ${element.matches('table, details, pre') ? '' : place(element)} ${title}`.trimEnd());
        inner += 1;
      } else if (element.matches(FIELDS)) {
        const isText = element.matches('textarea, input:not([type=checkbox], [type=radio], [type=file])');
        lines.push(`${' '.repeat(depth)}${element.type} ${isText ? place(element) : ''} ${labelled(element)}`.trimEnd());
        continue;
      } else if (element.matches(TEXTS)) {
        lines.push(`${' '.repeat(depth)}${name} ${words(element)}`.trimEnd());
        if (!element.matches('.tabs')) continue;
      }
      walk(element, inner);
    }
  };
  walk(document.body, 0);
  return lines.join('\n').replace(/ {2,}(?=\S)/g, (spaces, at, all) => (at === 0 || all[at - 1] === '\n' ? spaces : ' '));
}

// Texts that are cut off although nothing says so.
export function clipped() {
  const isCut = (element) => {
    const { overflowX, textOverflow } = getComputedStyle(element);
    return (overflowX === 'hidden' || overflowX === 'clip') && textOverflow !== 'ellipsis' && element.scrollWidth > element.clientWidth + 1;
  };
  const isText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  // What screen readers alone read has one pixel.
  const isSeen = (element) => element.checkVisibility() && element.clientWidth > 1;
  const all = [...document.querySelectorAll('body *')].filter((element) => isSeen(element) && isText(element));
  return all.filter((element) => {
    for (let place = element; place && place !== document.body; place = place.parentElement) if (isCut(place)) return true;
    return false;
  }).map((element) => `${element.localName}: ${element.textContent.trim().slice(0, 60)}`);
}
