// People at the sign-in page, one after the other. Prints what it has seen; any surprise ends it.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(join(process.env.MODULES, 'x.js'));
const { chromium } = require('playwright-core');
const base = process.env.HUB_URL;
// Whoever signs in here stays at the page.
const login = `${base}/login?redirect=/login`;
const folder = await mkdtemp(join(tmpdir(), 'hub-browser-'));
const args = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];
const violations = [];
const browsers = [];

async function open(name, locale = 'en-US') {
  const context = await chromium.launchPersistentContext(join(folder, name), {
    executablePath: process.env.CHROMIUM, args, locale, viewport: { width: 900, height: 1100 },
  });
  browsers.push(context);
  const page = context.pages()[0] ?? (await context.newPage());
  page.setDefaultTimeout(20_000);
  page.on('console', (line) => {
    if (/content security policy/i.test(line.text())) violations.push(line.text());
  });
  page.on('pageerror', (error) => violations.push(String(error)));
  const cdp = await context.newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  return { context, page, cdp };
}

async function authenticator(cdp) {
  const options = {
    protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true,
    isUserVerified: true, automaticPresenceSimulation: true,
  };
  return (await cdp.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId;
}

async function picture(page, name) {
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `${name}.png`), fullPage: true });
}

const problem = (page) => page.locator('#problem').textContent();

async function isInside(page, name) {
  await page.locator('#inside').waitFor({ state: 'visible' }).catch(async () => {
    assert.fail(`nobody is signed in at ${page.url()}: ${await page.locator('body').innerText()}`);
  });
  assert.equal(await page.locator('#who').textContent(), name);
}

async function says(page, where, text) {
  // No `waitForFunction`: the page's policy forbids what it does.
  await page.locator(`#${where}`).filter({ hasText: text }).waitFor({ state: 'attached' }).catch(async () => {
    assert.fail(`${where} says "${await page.locator(`#${where}`).textContent()}", not "${text}"`);
  });
}

try {
  const { page, cdp, context } = await open('ada');
  const first = await authenticator(cdp);

  await page.goto(login);
  await page.locator('#entrance').waitFor({ state: 'visible' });
  await picture(page, 'entrance');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'username');

  // Cancelled: the person is not recognised.
  await page.locator('summary').click();
  await page.locator('#new-username').fill('ada');
  await cdp.send('WebAuthn.setUserVerified', { authenticatorId: first, isUserVerified: false });
  await page.locator('#create-passkey').click();
  await says(page, 'problem', 'Nothing was changed');
  await cdp.send('WebAuthn.setUserVerified', { authenticatorId: first, isUserVerified: true });
  console.log('cancelled');

  await page.locator('#create-passkey').click();
  await isInside(page, 'ada');
  console.log('registered');
  assert.ok((await context.cookies()).find((cookie) => cookie.name === 'session').httpOnly);

  await page.locator('#sign-out').click();
  await page.locator('#entrance').waitFor({ state: 'visible' });
  await page.goto(login);
  await page.locator('#entrance').waitFor({ state: 'visible' });
  await page.locator('#passkey').click();
  await isInside(page, 'ada');
  console.log('signed in without a name');

  await page.locator('#sign-out').click();
  await page.locator('#entrance').waitFor({ state: 'visible' });
  await page.goto(login);
  await page.locator('#username').fill('ada');
  await page.locator('#passkey').click();
  await isInside(page, 'ada');
  console.log('signed in with a name');

  // The same device twice, then another one.
  await page.locator('#add-passkey [type=submit]').click();
  await says(page, 'problem', 'has a passkey for this account already');
  await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: first });
  const second = await authenticator(cdp);
  await page.locator('#passkey-name').fill('Second');
  await page.locator('#add-passkey [type=submit]').click();
  await says(page, 'message', 'The passkey was added');
  await picture(page, 'inside');
  const names = await page.evaluate(async () => {
    const list = await (await fetch('/api/auth/passkey/list')).json();
    return list.data.items.map((passkey) => passkey.name);
  });
  assert.deepEqual(names, ['Second', 'Passkey']);
  await page.locator('#sign-out').click();
  await page.locator('#entrance').waitFor({ state: 'visible' });
  await page.goto(login);
  await page.locator('#passkey').click();
  await isInside(page, 'ada');
  console.log('signed in with a second key');

  // Another origin: the browser itself refuses.
  await page.goto(`${base.replace('localhost', '127.0.0.1')}/login`);
  await page.locator('#entrance').waitFor({ state: 'visible' });
  await page.locator('#passkey').click();
  await says(page, 'problem', 'does not allow passkeys at this address');
  console.log('wrong origin');

  // With the keyboard alone, first wrongly.
  const bob = await open('bob');
  await bob.page.goto(login);
  await bob.page.locator('#entrance').waitFor({ state: 'visible' });
  await bob.page.keyboard.type('bob');
  await bob.page.keyboard.press('Tab');
  await bob.page.keyboard.type('wrong password');
  await bob.page.keyboard.press('Enter');
  await says(bob.page, 'problem', 'username or password is wrong');
  await bob.page.locator('#password').fill('correct horse battery');
  await bob.page.keyboard.press('Enter');
  await isInside(bob.page, 'bob');
  assert.equal(await bob.page.evaluate(() => document.activeElement.id), 'inside-title');
  console.log('password by keyboard');

  // A third browser is let in by bob, in Chinese.
  const screen = await open('screen', 'zh-CN');
  await screen.page.goto(login);
  await screen.page.locator('#show-qr').click();
  await screen.page.locator('#qr').waitFor({ state: 'visible' });
  await says(screen.page, 'qr-status', '正在等待');
  assert.ok(await screen.page.evaluate(() => document.getElementById('qr-image').naturalWidth > 0));
  await picture(screen.page, 'qr');
  const code = await screen.page.locator('#qr-code').textContent();
  await bob.page.goto(await screen.page.locator('#qr-link').getAttribute('href'));
  await bob.page.locator('#confirmation').waitFor({ state: 'visible' });
  assert.match(await bob.page.locator('#asker-program').textContent(), /Chrome/);
  await picture(bob.page, 'confirmation');
  await says(screen.page, 'qr-status', '已打开');
  await bob.page.locator('#user-code').fill(code.toLowerCase());
  await bob.page.locator('#confirm [type=submit]').click();
  await says(bob.page, 'message', 'That device is signed in');
  await isInside(screen.page, 'bob');
  console.log('let in by another device');

  // Bob is notified when he returns, and revokes it.
  await bob.page.goto(login);
  await bob.page.locator('#let-in').waitFor({ state: 'visible' });
  await picture(bob.page, 'let-in');
  await bob.page.locator('#let-in-list button').click();
  await says(bob.page, 'message', 'That device is signed out');
  await bob.page.locator('#let-in').waitFor({ state: 'hidden' });
  await screen.page.reload();
  await screen.page.locator('#entrance').waitFor({ state: 'visible' });
  await picture(screen.page, 'entrance-zh');
  console.log('ended from afar');

  // A wrong code ends it.
  await screen.page.locator('#show-qr').click();
  await screen.page.locator('#qr').waitFor({ state: 'visible' });
  await bob.page.goto(await screen.page.locator('#qr-link').getAttribute('href'));
  await bob.page.locator('#user-code').fill('BBBB-BBBB');
  await bob.page.locator('#confirm [type=submit]').click();
  await says(bob.page, 'problem', 'the code is wrong');
  await says(screen.page, 'qr-status', '已拒绝');
  console.log('a wrong code');

  const provider = screen.page.locator('[data-provider]');
  if ((await provider.count()) > 0) {
    await provider.first().click();
    await isInside(screen.page, 'A Person (mockperson)');
    console.log('by a provider');
  }
  await screen.page.goto(`${base}/login?error=declined`);
  await says(screen.page, 'problem', '服务提供方未完成登录');

  // Bob has lost his password, and opens the link of an administrator on a small screen, in the dark.
  const lost = await open('lost', 'zh-CN');
  await lost.page.setViewportSize({ width: 360, height: 740 });
  await lost.page.emulateMedia({ colorScheme: 'dark' });
  await lost.page.goto(login);
  await lost.page.locator('summary').click();
  await lost.page.locator('#new-username').fill('carol');
  await lost.page.locator('#new-password').fill('password1');
  await lost.page.locator('#register [type=submit]').click();
  await says(lost.page, 'problem', '密码: 太容易被猜到');
  // What went wrong is seen, however far down the form is.
  assert.ok(await lost.page.evaluate(() => {
    const { top, bottom } = document.getElementById('problem').getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  }));
  await lost.page.goto(process.env.RESET_LINK);
  await lost.page.locator('#set-password').waitFor({ state: 'visible' });
  assert.equal(await lost.page.evaluate(() => document.activeElement.id), 'new-password');
  await picture(lost.page, 'reset-zh-dark-small');
  // The other language keeps the link.
  await lost.page.locator('#language').click();
  await lost.page.waitForURL(/lang=en/);
  await lost.page.keyboard.type('password1');
  await lost.page.keyboard.press('Tab');
  await lost.page.keyboard.type('password2');
  await lost.page.keyboard.press('Enter');
  await says(lost.page, 'problem', 'not the same');
  await lost.page.locator('#again').fill('password1');
  await lost.page.keyboard.press('Enter');
  await says(lost.page, 'problem', 'New password: is too easy to guess');
  await picture(lost.page, 'reset-problem');
  await lost.page.locator('#new-password').fill('a much better passphrase');
  await lost.page.locator('#again').fill('a much better passphrase');
  await lost.page.keyboard.press('Enter');
  await says(lost.page, 'whose', 'bob');
  assert.equal(await lost.page.evaluate(() => document.activeElement.id), 'to-sign-in');
  assert.ok(!lost.page.url().includes('hubr_'));
  assert.ok(!(await lost.page.locator('#language').getAttribute('href')).includes('hubr_'));
  await picture(lost.page, 'reset-done');
  await bob.page.goto(login);
  await bob.page.locator('#entrance').waitFor({ state: 'visible' });
  await lost.page.keyboard.press('Enter');
  await lost.page.locator('#username').waitFor({ state: 'visible' });
  await lost.page.goto(login);
  await lost.page.locator('#username').fill('bob');
  await lost.page.locator('#password').fill('a much better passphrase');
  await lost.page.keyboard.press('Enter');
  await isInside(lost.page, 'bob');
  await lost.page.goto(process.env.RESET_LINK);
  await lost.page.locator('#new-password').fill('yet another passphrase');
  await lost.page.locator('#again').fill('yet another passphrase');
  await lost.page.keyboard.press('Enter');
  await says(lost.page, 'problem', '链接不正确、已使用或已过期');
  await lost.page.goto(`${base}/login/reset?lang=en`);
  await says(lost.page, 'problem', 'This link is incomplete');
  assert.equal(await lost.page.locator('#set-password').isVisible(), false);
  console.log('a lost password');

  assert.deepEqual(violations, []);
  console.log('all of it');
} finally {
  for (const browser of browsers) await browser.close().catch(() => {});
  await rm(folder, { recursive: true, force: true });
}
