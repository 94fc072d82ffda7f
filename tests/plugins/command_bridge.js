// ==WebhookPlugin==
// @name         command-bridge
// @description  Hands commands to a service, and its answers to the chat
// @version      1.3.0
// @author       another author
// @namespace    https://plugins.example/
// @match        text
// @grant        reply,skip
// @timeout      2
// ==/WebhookPlugin==

// In the form of plugins that are published for other hubs: ES5, `reply` and `skip` as globals, a text for a body,
// one `ctx` for everything.
var COMMAND = /^\/(\w+)\s*(.*)$/;

function onRequest(ctx) {
  var found = COMMAND.exec((ctx.msg.content || '').replace(/^\s+/, ''));
  if (!found) {
    reply('Commands begin with a slash, ' + ctx.msg.sender + '.');
    skip();
    return;
  }
  var body = JSON.parse(ctx.req.body);
  ctx.req.url = ctx.req.url + '?command=' + encodeURIComponent(found[1]);
  ctx.req.headers['X-Command'] = found[1];
  ctx.req.body = JSON.stringify({ command: found[1], rest: found[2], channel: body.channel_id });
}

function onResponse(ctx) {
  if (ctx.res.body === null) {
    reply({ forward: true });
    return;
  }
  var answer = JSON.parse(ctx.res.body);
  if (answer.image) {
    reply(answer.image);
  } else if (answer.file) {
    reply({ base64: answer.file, filename: answer.name });
  } else {
    reply(answer.text);
  }
}
