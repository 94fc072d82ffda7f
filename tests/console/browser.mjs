// A browser whose pages may load nothing but the hub, and what every script about the console needs.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.MODULES, 'x.js'));
const { chromium } = require('playwright-core');
// Where people reach the hub, without a `/` at the end. It has a path when a proxy serves the hub below one.
export const base = process.env.HUB_URL;
const { origin, pathname } = new URL(base);
export const prefix = pathname.replace(/\/$/, '');
// The path of an address as the hub knows it.
export const pathOf = (address) => new URL(address).pathname.slice(prefix.length);
export const password = 'tr0mbone solo';
const args = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

// What no page may cause: errors of scripts, violations of the policy, requests to other hosts.
export const surprises = [];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });

// The password of a proxy before the hub, which a browser sends along once it was asked for it.
const [username, word] = (process.env.BASIC ?? '').split(':');
const httpCredentials = word ? { username, password: word, origin, send: 'always' } : undefined;

// A person with a browser of their own. `expected` matches lines of the console that belong to the story.
export async function open(options = {}, expected = /^$/) {
  const context = await browser.newContext({
    locale: 'en-US', viewport: { width: 1280, height: 800 }, httpCredentials,
    ignoreHTTPSErrors: Boolean(process.env.SELF_SIGNED), ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on('console', (line) => {
    if (['error', 'warning'].includes(line.type()) && !expected.test(line.text())) {
      surprises.push(`${page.url()}: ${line.text()}`);
    }
  });
  page.on('pageerror', (error) => surprises.push(`${page.url()}: ${error}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    const isHub = url.origin === origin && `${url.pathname}/`.startsWith(`${prefix}/`);
    if (url.protocol !== 'data:' && !isHub) surprises.push(`${page.url()} asks ${url}`);
  });
  return page;
}

// Registers or signs in with the form of the page, as a browser without script would.
export async function enter(page, username, action = 'register') {
  const form = new URLSearchParams({ do: action, username, password });
  const response = await page.request.post(`${base}/login`, {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: origin },
    data: form.toString(),
    maxRedirects: 0,
  });
  assert.equal(response.status(), 303, await response.text());
}

// Ends a session as a cleared browser does. The page is left first: it asks for news, which would be refused.
export async function forget(page) {
  await page.goto('about:blank');
  await page.context().clearCookies();
}

// Links of one kind lead to pages of one kind.
export const kind = (path) =>
  path.replace(/[a-z]+_[0-9A-HJKMNP-TV-Z]{26}/g, ':id').replace(/\/contacts\/[^?]+/, '/contacts/:person').replace(/([?&]\w+)=[^&]*/g, '$1');

// Follows every link of the console from its first page, and visits one page of each kind.
export async function crawl(page, visit) {
  const todo = ['/console'];
  const seen = new Set();
  while (todo.length > 0) {
    const path = todo.shift();
    if (seen.has(kind(path))) continue;
    seen.add(kind(path));
    await visit(path);
    const links = await page.locator(`a[href^="${prefix}/console"], a[href^="?"]`).evaluateAll(
      (all, length) => all.map(({ href }) => new URL(href)).map(({ pathname, search }) => pathname.slice(length) + search),
      prefix.length,
    );
    todo.push(...links.filter((link) => !link.startsWith('/console/assets')));
  }
  return [...seen].sort();
}

export async function picture(page, name) {
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `${name}.png`), fullPage: true });
}

// Ends the browser, and the run if there was a surprise.
export async function close() {
  await browser.close();
  assert.deepEqual(surprises, []);
  console.log('all of it');
}
