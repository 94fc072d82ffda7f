// A person whose browser runs no script uses the forms of the console.
import assert from 'node:assert/strict';
import { base, close, open, password, picture } from './browser.mjs';

const page = await open({ javaScriptEnabled: false }, /40\d/);
const notice = () => page.locator('.notice').textContent();
const heading = () => page.locator('h1').textContent();
const go = (name) => page.getByRole('link', { name, exact: true }).first().click();

await page.goto(base);
assert.match(page.url(), /\/login\?redirect=%2Fconsole$/);
await page.locator('#new-username').fill('ann');
await page.locator('#new-password').fill('ann');
await page.locator('#register').evaluate((form) => (form.noValidate = true)).catch(() => {});
await page.locator('#new-password').fill('password1');
await page.locator('#register [type=submit]').click();
assert.match(await page.locator('#problem').textContent(), /Password: is too easy to guess/);
assert.equal(await page.locator('#new-username').inputValue(), 'ann');
await page.locator('#new-password').fill(password);
await page.locator('#register [type=submit]').click();
await page.waitForURL(`${base}/console`);
assert.equal(await heading(), 'Home');
console.log('registered');

await go('Bots');
await page.getByRole('link', { name: 'demo' }).click();
assert.equal(await heading(), 'demo');
await page.locator('#rename-name').fill('  ');
await page.getByRole('button', { name: 'Rename' }).click();
assert.match(await page.locator('.refused').textContent(), /Nothing was changed/);
assert.equal(await page.locator('#rename-name').getAttribute('aria-invalid'), 'true');
await picture(page, 'refused');
await page.locator('#rename-name').fill('demo <b>two</b>');
await page.getByRole('button', { name: 'Rename' }).click();
assert.match(await notice(), /renamed/);
assert.equal(await heading(), 'demo <b>two</b>');
console.log('renamed');

await go('Account');
await go('API keys');
await page.locator('#create-name').fill('nightly');
await page.getByRole('button', { name: 'Create key' }).click();
assert.equal(await heading(), 'Key created');
const key = await page.locator('.copied code').first().textContent();
assert.match(key, /^hubu_/);
// Sent again by a reload, the form gives the same key.
await page.reload();
assert.equal(await page.locator('.copied code').first().textContent(), key);
await page.getByRole('link', { name: 'I have saved it' }).click();
await page.getByRole('link', { name: 'Revoke…' }).click();
await page.getByRole('button', { name: 'Revoke key nightly' }).click();
assert.match(await notice(), /revoked/);
console.log('a key created and revoked');

await go('Messages');
await page.locator('[data-region=messages] tbody input[type=checkbox]').first().check();
await page.locator('button[value=selected]').click();
assert.equal(await heading(), 'Replay deliveries');
await page.locator('button[value=start_replay]').click();
await page.waitForURL(/\/console\/replays\/rpl_/);
assert.equal(await heading(), 'Replay');
assert.match(await notice(), /started/);
console.log('a selected delivery replayed');

await go('Bots');
await go('Bind an account');
await page.locator('#start-network').selectOption('sim');
await page.locator('button[value=start]').click();
await page.locator('button[value=confirm]').click();
assert.match(await page.locator('#state').textContent(), /Scan the code/);
await page.locator('button[value=scan_as]').click();
assert.match(await page.locator('#state').textContent(), /Bound/);
console.log('a bot bound with a simulated phone');

await go('Account');
await go('API keys');

await page.getByText('Language and theme').click();
await page.getByLabel('Language').selectOption('zh');
await page.getByLabel('Theme').selectOption('dark');
await page.getByRole('button', { name: 'Apply' }).click();
assert.equal(await heading(), 'API 密钥');
assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
console.log('in Chinese and dark');

await page.locator('details.menu summary').last().click();
await page.getByRole('button', { name: '退出登录' }).click();
await page.waitForURL(/\/login/);
await page.goBack();
await page.waitForURL(/\/login\?redirect=/);
await page.locator('#username').fill('ann');
await page.locator('#password').fill('wrong password');
await page.locator('#sign-in [type=submit]').click();
assert.match(await page.locator('#problem').textContent(), /用户名或密码不正确/);
await page.locator('#password').fill(password);
await page.locator('#sign-in [type=submit]').click();
await page.waitForURL(/\/console\/account\/keys/);
console.log('signed in again, back where the person was');
await close();
