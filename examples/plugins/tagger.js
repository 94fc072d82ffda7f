// ==UserScript==
// @name         tagger
// @description  Marks messages about an order, and notifies the sender of the result
// @version      1.2.0
// @author       Message Hub
// @match        text
// @grant        none
// @timeout      1000
// ==/UserScript==

// Before the request: what is about an order says so, in a header and in the body.
function onRequest(ctx) {
  const found = /\border\s+#?(\d+)\b/i.exec(ctx.msg.content);
  if (!found) return;
  const order = Number(found[1]);
  console.log('order seen:', order);
  ctx.req.headers['X-Kind'] = 'order';
  ctx.req.body.order = order;
  ctx.state.order = order;
}

// After the answer: `ctx.state` is what onRequest left there.
function onResponse(ctx) {
  const { order } = ctx.state;
  if (order === undefined) return;
  if (ctx.res.status !== 200) {
    ctx.reply(`Order ${order} could not be looked up, please try again`);
    return;
  }
  const { status } = JSON.parse(ctx.res.body ?? '{}');
  if (status) ctx.reply(`Order ${order}: ${status}`);
}
