// ==WebhookPlugin==
// @name         office-hours
// @description  Answers at night itself, and sends the rest as a form with one field
// @version      1.0.0
// @author       Message Hub
// @match        text
// @grant        reply,skip
// @timeout      2
// ==/WebhookPlugin==

// The form of plugins that are published for other hubs: ES5, `reply` and `skip` as globals, a text for a body.
var OPENS = 8, CLOSES = 18;

function onRequest(ctx) {
  var hour = new Date(ctx.msg.timestamp * 1000).getUTCHours();
  if (hour < OPENS || hour >= CLOSES) {
    reply('We are here from ' + OPENS + ' to ' + CLOSES + ' o\'clock UTC. Your message waits for us.');
    skip();
    return;
  }
  ctx.req.method = 'POST';
  ctx.req.headers['Content-Type'] = 'application/x-www-form-urlencoded';
  ctx.req.body = 'text=' + encodeURIComponent(ctx.msg.content) + '&from=' + encodeURIComponent(ctx.msg.sender);
}

function onResponse(ctx) {
  if (ctx.res.status >= 400) {
    reply('Something went wrong on our side.');
  }
}
