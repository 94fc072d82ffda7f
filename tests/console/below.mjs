// A reverse proxy as people configure it, and a story through it: it serves the hub below a path that it strips, sends
// another `Host`, and ends TLS if it has a key.
import * as http from 'node:http';
import * as https from 'node:https';

const { CERTIFICATE: cert, HUB_URL, KEY: key, STORY, TARGET_PORT } = process.env;
const { pathname, port } = new URL(HUB_URL);

const proxy = (key ? https : http).createServer({ cert, key }, (asked, answer) => {
  if (!asked.url.startsWith(`${pathname}/`) && asked.url !== pathname) {
    answer.writeHead(404);
    return void answer.end('not the hub');
  }
  const sent = http.request({
    host: '127.0.0.1', port: TARGET_PORT, method: asked.method, path: asked.url.slice(pathname.length) || '/',
    headers: { ...asked.headers, host: 'backend.internal:8080' },
  });
  sent.on('response', (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
    got.on('error', () => answer.destroy());
  });
  sent.on('error', () => answer.destroy());
  answer.on('close', () => sent.destroy());
  asked.pipe(sent);
});
await new Promise((done) => proxy.listen(port, '127.0.0.1', done));
await import(`./${STORY}`);
proxy.close();
proxy.closeAllConnections();
