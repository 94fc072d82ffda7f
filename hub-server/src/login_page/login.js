// The sign-in page. It speaks to the API like any other client and keeps nothing. `page.js` comes before it.
import { createPasskey, hasPasskeys, usePasskey } from './passkey.js';

// The hub takes no longer one.
const LONGEST_PATH = 2048;

// A path of this hub, or nothing.
function wanted() {
  const path = query.get('redirect');
  if (!path || path.length > LONGEST_PATH || !path.startsWith('/') || path.startsWith('//')) return null;
  if (/[\\\s\x00-\x20]/.test(path)) return null;
  return new URL(path, location.origin).origin === location.origin ? path : null;
}

// --- Passkeys ------------------------------------------------------------------------------------------

function requirePasskeys() {
  if (!hasPasskeys()) throw new Error(spoken.insecure);
}

async function makePasskey(who) {
  requirePasskeys();
  const { flow_id, publicKey } = await ask('POST', '/api/auth/passkey/register/begin', who);
  return ask('POST', '/api/auth/passkey/register/finish', { flow_id, ...(await createPasskey(publicKey)) });
}

async function signInWithPasskey(username) {
  requirePasskeys();
  const { flow_id, publicKey } = await ask('POST', '/api/auth/passkey/login/begin', username ? { username } : {});
  return ask('POST', '/api/auth/passkey/login/finish', { flow_id, ...(await usePasskey(publicKey)) });
}

// --- What is shown -------------------------------------------------------------------------------------

function show(section) {
  for (const id of ['entrance', 'inside', 'confirmation']) at(id).hidden = id !== section;
}

// The first page for who has just signed in: the one that the address names, else the console.
async function enter(me) {
  await entered(me, wanted() ?? '/console');
}

async function entered(me, path = wanted()) {
  closeQr();
  // True until now, and not after signing out.
  if (at('returning').hidden) {
    at('register').remove();
    document.getElementById('first-account')?.remove();
    at('returning').hidden = false;
    at('entrance-title').textContent = document.querySelector('#sign-in [type=submit]').textContent;
  }
  if (path && !query.has('qr')) {
    location.assign(base + path);
    return;
  }
  at('who').textContent = me.display_name === me.username ? me.username : `${me.display_name} (${me.username})`;
  at('go-on').href = base + (path ?? '/console');
  if (query.has('qr')) {
    await openCode();
    return;
  }
  show('inside');
  say('signedIn');
  at('inside-title').focus();
  await showLetIn().catch((error) => complain(explain(error)));
}

// The field that comes next: of the form to register if there is no account, or if the link contains a token.
function firstField() {
  if (!at('returning').hidden && !brought) return at('username');
  const ticket = at('ticket');
  return ticket && !ticket.value ? ticket : (document.getElementById('new-username') ?? at('username'));
}

function leave() {
  show('entrance');
  firstField().focus();
}

// --- Another device lets this one in --------------------------------------------------------------------

let socket = null;

function closeQr() {
  socket?.close();
  socket = null;
  at('qr').hidden = true;
  at('show-qr').setAttribute('aria-expanded', 'false');
}

async function showQr() {
  closeQr();
  const login = await ask('POST', '/api/auth/qr/generate');
  at('qr-image').src = `data:image/svg+xml,${encodeURIComponent(login.qr_svg)}`;
  at('qr-link').href = login.qr_text;
  at('qr-link').textContent = login.qr_text;
  at('qr-code').textContent = login.user_code;
  at('qr').hidden = false;
  at('show-qr').setAttribute('aria-expanded', 'true');
  at('message').textContent = '';
  watch(login);
}

function watch(login) {
  const path = new URL(`${base}/api/auth/qr/status`, location.href);
  path.protocol = path.protocol.replace('http', 'ws');
  path.search = new URLSearchParams({ qr_id: login.qr_id, poll_secret: login.poll_secret });
  const own = new WebSocket(path);
  socket = own;
  own.addEventListener('message', async (event) => {
    const { type, data } = JSON.parse(event.data);
    if (type === 'qr_status') {
      const words = { waiting: 'waiting', scanned: 'scanned', expired: 'expired', cancelled: 'refused' };
      at('qr-status').textContent = spoken[words[data.status]] ?? '';
    } else if (type === 'qr_session') {
      const { qr_id, poll_secret } = login;
      try {
        await enter(await ask('POST', '/api/auth/qr/exchange', { qr_id, poll_secret, exchange: data.exchange }));
      } catch (error) {
        complain(error.message);
      }
    }
  });
  own.addEventListener('error', () => {
    if (socket === own) at('qr-status').textContent = spoken.unreachable;
  });
}

// --- This device lets another one in --------------------------------------------------------------------

// A session that is too old lets no one in: a new one does, on the page that confirms who is here, and comes back.
function confirmIfTooOld({ reason }) {
  if (reason !== 'session_too_old') return false;
  const back = `/login?qr=${encodeURIComponent(query.get('qr'))}`;
  location.assign(`${base}/console/confirm?${new URLSearchParams({ back })}`);
  return true;
}

async function openCode() {
  try {
    const asker = await ask('POST', '/api/auth/qr/open', { qr_id: query.get('qr') });
    at('asker-address').textContent = asker.ip;
    at('asker-program').textContent = asker.user_agent;
    at('asker-time').textContent = new Date(asker.requested_at).toLocaleString(document.documentElement.lang);
    show('confirmation');
    at('confirmation-title').focus();
  } catch (error) {
    if (confirmIfTooOld(error)) return;
    show('inside');
    complain(error.message);
  }
}

async function decide(approve) {
  const body = { qr_id: query.get('qr'), approve };
  if (approve) body.user_code = at('user-code').value;
  const refused = await ask('POST', '/api/auth/qr/confirm', body).then(() => null, (error) => error);
  if (refused && confirmIfTooOld(refused)) return;
  // Whatever came of it, this code is used up.
  query.delete('qr');
  show('inside');
  if (refused) throw refused;
  say(approve ? 'confirmed' : 'cancelledLogin');
}

// --- Who was let in by QR code lately: a person who was talked into it shall see it ----------------------

const LATELY = 7 * 24 * 60 * 60 * 1000;

async function showLetIn() {
  const all = (path) => ask('GET', `${path}?limit=200`).then((page) => page.items);
  const [happened, sessions, keys] = await Promise.all(
    ['/api/user/activity', '/api/auth/sessions', '/api/user/api-keys'].map(all),
  );
  const living = new Map([
    ...sessions.map(({ id }) => [id, `/api/auth/sessions/${id}`]),
    ...keys.map(({ id }) => [id, `/api/user/api-keys/${id}`]),
  ]);
  const letIn = happened.filter(
    ({ at: when, current, detail, target }) =>
      detail.method === 'qr' && !current && living.has(target) && Date.now() - Date.parse(when) < LATELY,
  );
  at('let-in-list').replaceChildren(...letIn.map((one) => letInEntry(one, living.get(one.target))));
  at('let-in').hidden = letIn.length === 0;
}

function letInEntry({ at: when, ip, target_name: name }, path) {
  const entry = document.createElement('li');
  const time = new Date(when).toLocaleString(document.documentElement.lang);
  entry.append([time, ip, name].filter(Boolean).join(' · '));
  const end = document.createElement('button');
  end.type = 'button';
  end.textContent = spoken.end;
  end.addEventListener('click', () => {
    void act(end, async () => {
      await ask('DELETE', path);
      say('ended');
      await showLetIn();
    });
  });
  entry.append(end);
  return entry;
}

// --- What people do -------------------------------------------------------------------------------------

on('sign-in', 'submit', async () => {
  const me = await ask('POST', '/api/auth/login', { username: at('username').value, password: at('password').value });
  at('password').value = '';
  await enter(me);
});
on('passkey', 'click', async () => enter(await signInWithPasskey(at('username').value.trim())));
on('register', 'submit', async () => {
  const body = { username: at('new-username').value, password: at('new-password').value };
  if (at('ticket')?.value) body.setup_token = at('ticket').value;
  const me = await ask('POST', '/api/auth/register', body);
  forgetTicket();
  at('new-password').value = '';
  await enter(me);
});
on('create-passkey', 'click', async () => {
  const username = at('new-username');
  if (!username.reportValidity()) return say('');
  const who = { username: username.value };
  if (at('ticket')?.value) who.setup_token = at('ticket').value;
  const me = await makePasskey(who);
  forgetTicket();
  await enter(me);
});
on('add-passkey', 'submit', async () => {
  const name = at('passkey-name').value.trim();
  await makePasskey(name ? { name } : {});
  at('passkey-name').value = '';
  say('added');
});
on('sign-out', 'click', async () => {
  await ask('POST', '/api/auth/logout');
  leave();
  say('signedOut');
});
on('show-qr', 'click', showQr);
on('confirm', 'submit', () => decide(true));
on('refuse', 'click', () => decide(false));

for (const link of document.querySelectorAll('[data-provider]')) {
  const back = query.has('qr') ? `/login?qr=${encodeURIComponent(query.get('qr'))}` : (wanted() ?? '/login');
  link.href += `?${new URLSearchParams({ redirect: back })}`;
}

// --- A link that brings the setup token or an invitation: after the `#`, which no browser sends anywhere -------

const ticket = new URLSearchParams(location.hash.slice(1));
const brought = ticket.get('setup') ?? ticket.get('invite');

function forgetTicket() {
  history.replaceState(null, '', location.pathname + location.search);
  at('language').hash = '';
}

if (brought) {
  at('language').hash = location.hash;
  if (at('ticket')) at('ticket').value = brought;
  const details = document.getElementById('new-account');
  if (details) details.open = true;
}
(async () => {
  const failed = spoken[`error_${query.get('error')}`];
  try {
    // Without a session there is no one to ask for.
    if (document.getElementById('session')) await entered(await ask('GET', '/api/auth/me'));
    else leave();
  } catch {
    leave();
  }
  if (failed) complain(failed);
  if (!navigator.cookieEnabled) complain(spoken.cookies);
})();
