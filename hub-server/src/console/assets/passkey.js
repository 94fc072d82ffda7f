// Passkeys: between the JSON of the hub and what browsers take and return. The sign-in page uses this file too.

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
const bytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (letter) => letter.charCodeAt(0));

/** @param {ArrayBuffer} buffer */
const base64url = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '');

/** @typedef {{ type: 'public-key', id: string }} Entry */
/** @param {Entry[] | undefined} list */
const withBytes = (list) => (list ?? []).map((entry) => ({ ...entry, id: bytes(entry.id) }));

/** @param {Credential | null} credential @param {string[]} names */
function answerOf(credential, names) {
  if (!(credential instanceof PublicKeyCredential)) throw new DOMException('no passkey', 'NotAllowedError');
  const given = /** @type {Record<string, any>} */ (/** @type {unknown} */ (credential.response));
  const response = Object.fromEntries(names.filter((name) => given[name]).map((name) => [name, base64url(given[name])]));
  const { id, type } = credential;
  return { id, rawId: base64url(credential.rawId), type, response, clientExtensionResults: {} };
}

/** What the hub says to a step, such as `register/begin`. @param {string} step @param {object} body */
export async function askHub(step, body) {
  const base = document.documentElement.dataset.base ?? '';
  const answer = await fetch(`${base}/api/auth/passkey/${step}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return answer.json();
}

/** Whether this browser has passkeys at this address. */
export const hasPasskeys = () => 'PublicKeyCredential' in window;

/** Creates a passkey with the options of the hub, and returns what the hub wants to know of it. @param {any} options */
export async function createPasskey(options) {
  const publicKey = {
    ...options,
    challenge: bytes(options.challenge),
    user: { ...options.user, id: bytes(options.user.id) },
    excludeCredentials: withBytes(options.excludeCredentials),
  };
  return answerOf(await navigator.credentials.create({ publicKey }), ['clientDataJSON', 'attestationObject']);
}

/** Uses a passkey with the options of the hub, and returns what the hub wants to know of it. @param {any} options */
export async function usePasskey(options) {
  const publicKey = {
    ...options,
    challenge: bytes(options.challenge),
    allowCredentials: withBytes(options.allowCredentials),
  };
  const found = await navigator.credentials.get({ publicKey });
  return answerOf(found, ['clientDataJSON', 'authenticatorData', 'signature', 'userHandle']);
}
