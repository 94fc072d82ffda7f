// Ways to sign in, inside the console: a passkey is added and named, also after *Confirm it is you*, and another device is
// let in. A file is sent from the page of a bot, and a signature is checked in the browser.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { base, close, enter, forget, open, password, picture } from './browser.mjs';

// Refused forms are part of the stories.
const page = await open({}, /status of 4\d\d/);
const cdp = await page.context().newCDPSession(page);
await cdp.send('WebAuthn.enable');
const authenticator = async () => (await cdp.send('WebAuthn.addVirtualAuthenticator', { options: {
  protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true,
  automaticPresenceSimulation: true,
} })).authenticatorId;
const first = await authenticator();
const shows = async (selector, text) => {
  const found = page.locator(selector).filter({ hasText: text }).first();
  await found.waitFor().catch(async () => assert.fail(`no "${text}" in ${selector}: ${await page.locator('main').innerText()}`));
  return found;
};

await enter(page, 'ann');
await page.goto(`${base}/console/account/security`);
await page.locator('#passkey-name').fill('Laptop');
await cdp.send('WebAuthn.setUserVerified', { authenticatorId: first, isUserVerified: false });
await page.getByRole('button', { name: 'Add a passkey' }).click();
await shows('[data-problem]', 'Nothing was changed');
await cdp.send('WebAuthn.setUserVerified', { authenticatorId: first, isUserVerified: true });
await page.getByRole('button', { name: 'Add a passkey' }).click();
await shows('[data-added]', 'The passkey was added');
await shows('td', 'Laptop');
assert.equal(await page.locator('[data-no-passkey]').isVisible(), false);
assert.equal(await page.locator('#passkey-name').inputValue(), '');
await picture(page, 'security');
await page.getByRole('button', { name: 'Add a passkey' }).click();
await shows('[data-problem]', 'has a passkey for this account already');
console.log('a passkey added and named, and refused twice');

await page.getByRole('button', { name: 'Delete passkey Laptop' }).click();
await shows('.notice', 'The passkey was deleted');
console.log('and deleted');

// The hub refuses a session that is too old: the page leads to the confirmation and back.
await page.route('**/api/auth/passkey/register/begin', (route) => route.fulfill({
  status: 403,
  json: { success: false, error: { code: 'FORBIDDEN', message: 'sign in again', reason: 'session_too_old', details: [] } },
}));
await page.locator('#passkey-name').fill('Phone');
await page.getByRole('button', { name: 'Add a passkey' }).click();
await shows('[data-problem]', '15 minutes');
await page.unroute('**/api/auth/passkey/register/begin');
await page.getByRole('link', { name: 'Confirm it is you' }).click();
await page.locator('[name=password]').fill(password);
await page.getByRole('button', { name: 'Confirm', exact: true }).click();
await page.waitForURL(/\/account\/security/);
await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: first });
const second = await authenticator();
await page.locator('#passkey-name').fill('Phone');
await page.getByRole('button', { name: 'Add a passkey' }).click();
await shows('td', 'Phone');
console.log('added after confirming');

// A passkey confirms, too: a new session takes the place of the present one.
const session = async () => (await page.context().cookies()).find(({ name }) => /session/.test(name)).value;
const before = await session();
await page.goto(`${base}/console/confirm?back=/console/account/security`);
await cdp.send('WebAuthn.setUserVerified', { authenticatorId: second, isUserVerified: false });
await page.getByRole('button', { name: 'Confirm with a passkey' }).click();
await shows('[data-problem]', 'Nothing was changed');
assert.equal(await session(), before);
await cdp.send('WebAuthn.setUserVerified', { authenticatorId: second, isUserVerified: true });
await page.getByRole('button', { name: 'Confirm with a passkey' }).click();
await page.waitForURL(`${base}/console/account/security`);
assert.notEqual(await session(), before);
await page.goto(`${base}/console/account/sessions`);
assert.equal(await page.locator('main tbody tr').count(), 1, 'the earlier session has ended');
await page.goto(`${base}/console/account/security`);
console.log('confirmed with a passkey');

// Another browser shows a code, and is let in here.
const device = await open({ locale: 'en-US' }, /status of 4\d\d/);
await device.goto(`${base}/login`);
await device.locator('#show-qr').click();
await device.locator('#qr').waitFor({ state: 'visible' });
const code = await device.locator('#qr-code').textContent();
await page.getByRole('link', { name: 'Let another device in' }).click();
await page.locator('[name=qr_id]').fill('nothing');
await page.getByRole('button', { name: 'Open', exact: true }).click();
await shows('.problem', 'unknown');
await page.locator('[name=qr_id]').fill(await device.locator('#qr-link').getAttribute('href'));
await page.getByRole('button', { name: 'Open', exact: true }).click();
await shows('dd', 'Chrome');
await picture(page, 'let-in');
await page.locator('[name=user_code]').fill(code.toLowerCase());
await page.getByRole('button', { name: 'Let it in' }).click();
await shows('.notice', 'That device is signed in');
await device.waitForURL(`${base}/console`);
console.log('another device let in');

// A wrong code ends it.
await forget(device);
await device.goto(`${base}/login`);
await device.locator('#show-qr').click();
await device.locator('#qr').waitFor({ state: 'visible' });
await page.goto(`${base}/console/account/devices`);
await page.locator('[name=qr_id]').fill(await device.locator('#qr-link').getAttribute('href'));
await page.getByRole('button', { name: 'Open', exact: true }).click();
await page.locator('[name=user_code]').fill('BBBB-BBBB');
await page.getByRole('button', { name: 'Let it in' }).click();
await shows('.refused', 'is wrong');
console.log('a wrong code');

// A picture to Ada: chosen, refused while it is too large, sent.
await page.goto(`${base}/console/bots`);
await page.getByRole('link', { name: 'demo' }).first().click();
await page.getByRole('link', { name: 'Contacts' }).click();
await page.locator('td a', { hasText: 'Ada' }).first().click();
const file = page.locator('[name=file]');
await file.evaluate((field) => (field.dataset.maxBytes = '3'));
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const picked = { name: 'dot.png', mimeType: 'image/png', buffer: png };
await file.setInputFiles(picked);
assert.equal(await file.evaluate((field) => field.validationMessage), 'The file is too large.');
await file.evaluate((field, size) => (field.dataset.maxBytes = String(size)), 50 << 20);
await file.setInputFiles({ name: 'empty.png', mimeType: 'image/png', buffer: Buffer.alloc(0) });
await page.locator('[name=content]').fill('a dot');
await page.getByRole('button', { name: 'Send', exact: true }).click();
await shows('#send-file-problem', 'is empty');
assert.equal(await page.locator('[name=content]').inputValue(), 'a dot');
await page.locator('[name=file]').setInputFiles(picked);
await page.getByRole('button', { name: 'Send', exact: true }).click();
await shows('.notice', 'accepted');
await shows('[data-region=messages] td', 'dot.png');
await picture(page, 'composer');
console.log('a picture sent');

// The signature of a pasted request, in the browser alone.
const bot = (await (await page.request.get(`${base}/api/bots`)).json()).data.items[0].id;
const channel = (await (await page.request.get(`${base}/api/bots/${bot}/channels`)).json()).data.items[0].id;
await page.goto(`${base}/console/bots/${bot}/channels/${channel}/webhook`);
const secret = 'a-secret-of-some-length';
const body = '{"type":"message","content":"order 42"}';
const sign = (text, key = secret) => createHmac('sha256', key).update(text);
const at = Math.round(Date.now() / 1000);
const requests = [];
page.on('request', (request) => requests.push(request.url()));
const own = (text, key) => `X-Signature: sha256=${sign(text, key).digest('hex')}`;
const standard = (time, text = body) =>
  `webhook-id: dlv_1\nwebhook-timestamp: ${time}\nwebhook-signature: v1,${sign(`dlv_1.${time}.${text}`).digest('base64')}`;
const whsec = `whsec_${Buffer.from('0123456789abcdef').toString('base64')}`;
for (const [headers, pasted, key, expected] of [
  [`POST /hook HTTP/1.1\n${own(body)}\n${standard(at)}`, body, secret, ['✓ X-Signature matches.', '✓ webhook-signature matches.']],
  [own(body), body, 'another-secret-of-length', ['✗ X-Signature does not match: another secret, or another body.']],
  [own(body), JSON.stringify(JSON.parse(body), null, 2), secret, ['✗ X-Signature does not match: the body was parsed and serialized again.']],
  [own(body), `${body}\n`, secret, ['newline at its end that was not signed']],
  [own(`${body}\n`), body, secret, ['lost the newline at its end']],
  [`x-signature: ${sign(body).digest('base64')}`, body, secret, ['is right but in base64', 'arrived as x-signature']],
  [`HTTP_X_SIGNATURE: sha256=${sign(body).digest('hex').toUpperCase()}`, body, secret, ['in upper case', 'arrived as HTTP_X_SIGNATURE']],
  ['X-Signature: nonsense', body, secret, ['its form is sha256=']],
  [standard(at - 1000), body, secret, ['s old, 300 s are allowed', '✓ webhook-signature matches.']],
  [standard(at * 1000), body, secret, ['is in milliseconds', '✓ webhook-signature matches.']],
  [own(body, '0123456789abcdef'), body, whsec, ['was made with the secret decoded as base64']],
  ['Content-Type: text/plain', body, secret, ['The request has no signature']],
]) {
  await page.locator('#signature-headers').fill(headers);
  await page.locator('#signature-body').fill(pasted);
  await page.locator('#signature-secret').fill(key);
  await page.locator('[data-findings]').evaluate((list) => list.replaceChildren());
  await page.getByRole('button', { name: 'Check', exact: true }).click();
  await page.locator('[data-findings] li').first().waitFor();
  const findings = await page.locator('[data-findings] li').allTextContents();
  assert.equal(findings.length, expected.length, `${headers}: ${findings}`);
  expected.forEach((text, index) => assert.ok(findings[index].includes(text), `${findings[index]}, not ${text}`));
}
assert.deepEqual(requests.filter((url) => !/api.events|favicon/.test(url)), [], 'the check sends nothing');
await picture(page, 'signature');
console.log('signatures checked in the browser');
await close();
