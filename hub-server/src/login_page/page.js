// What the pages about signing in share: their words, how they ask the hub, and how they say what came of it.
'use strict';

const at = (id) => document.getElementById(id);
const textsOf = (name) =>
  new Map([...document.querySelectorAll(`#texts [data-${name}]`)].map((text) => [text.dataset[name], text.textContent]));
const spoken = Object.fromEntries(textsOf('name'));
// The hub's own sentences in the page's language, where that is not English.
const told = textsOf('told');
const query = new URLSearchParams(location.search);
// The path below which a reverse proxy serves the hub.
const base = document.documentElement.dataset.base ?? '';

function say(name) {
  at('problem').textContent = '';
  at('message').textContent = spoken[name] ?? '';
}

function complain(text) {
  at('message').textContent = '';
  at('problem').textContent = text;
  // On a small screen the form may be far below.
  at('problem').scrollIntoView({ block: 'nearest' });
}

async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(base + path, {
      method,
      headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Error(spoken.unreachable);
  }
  const json = await answer.json().catch(() => null);
  if (!json?.success) throw Object.assign(new Error(refusal(json?.error)), { reason: json?.error?.reason });
  return json.data;
}

// What the hub says of a refusal, in the words of the page where it has them.
function refusal(error) {
  if (!error) return spoken.unreachable;
  const labels = { username: 'new-username', password: 'new-password', new_password: 'new-password' };
  const fields = (error.details ?? []).map(({ field, reason }) => {
    const label = document.querySelector(`label[for="${labels[field]}"]`)?.textContent ?? field;
    return `${label}: ${told.get(reason) ?? reason}`;
  });
  if (fields.length > 0) return fields.join(' · ');
  return told.get(error.message) ?? told.get(error.code) ?? error.message;
}

// Runs one act at a time, with its button out of reach, and shows what went wrong.
async function act(button, work) {
  if (button.disabled) return;
  button.disabled = true;
  say('working');
  try {
    await work();
  } catch (error) {
    complain(explain(error));
  } finally {
    button.disabled = false;
  }
}

function explain(error) {
  if (error.name === 'NotAllowedError' || error.name === 'AbortError') return spoken.cancelled;
  if (error.name === 'InvalidStateError') return spoken.exists;
  if (error.name === 'SecurityError') return spoken.insecure;
  return error.message;
}

function on(id, event, work) {
  const element = at(id);
  element?.addEventListener(event, (happened) => {
    happened.preventDefault();
    void act(element.matches('form') ? element.querySelector('[type=submit]') : element, work);
  });
}

// The same page in the other language.
at('language').search = (() => {
  const other = new URLSearchParams(query);
  other.set('lang', at('language').hreflang);
  return other.toString();
})();
