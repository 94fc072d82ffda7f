/// <reference path="./plugin.d.ts" />
// ==UserScript==
// @name         PLUGIN
// @description  Says hello, and marks what it has seen
// @version      0.1.0
// @match        text
// @grant        none
// @timeout      1000
// ==/UserScript==

// Before the webhook request: change ctx.req, ctx.reply(text) to the sender, ctx.skip() the request.
/** @param {RequestContext} ctx */
function onRequest(ctx) {
  console.log('from', ctx.msg.sender.user_name);
  ctx.req.headers['X-Plugin'] = 'PLUGIN';
  if (/^hello\b/i.test(ctx.msg.content)) ctx.reply('Hello!');
}

// After the webhook's answer: read ctx.res, ctx.reply(text).
/** @param {ResponseContext} ctx */
function onResponse(ctx) {
  if (ctx.res.status >= 400) console.warn('the webhook answered', ctx.res.status);
}
