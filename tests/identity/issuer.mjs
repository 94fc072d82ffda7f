// A real issuer, told to lie about one thing at a time: GET /lie?about=nonce.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.MODULES, 'x.js'));
const { OAuth2Server } = require('oauth2-mock-server');

const server = new OAuth2Server();
await server.issuer.keys.generate('RS256');
let lie = 'none';
server.service.on('beforeTokenSigning', (token) => {
  token.payload.preferred_username = 'mock.person';
  token.payload.name = 'A Person';
  const lies = {
    nonce: { nonce: 'another' },
    aud: { aud: 'another' },
    iss: { iss: 'https://evil.example' },
    exp: { exp: 1 },
    sub: { sub: '' },
  };
  Object.assign(token.payload, lies[lie]);
});
await server.start(0, '127.0.0.1');
const inner = server.service.requestHandler;
// The library's own server takes requests first for us, then for itself.
const http = require('node:http');
const outer = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname === '/lie') {
    lie = url.searchParams.get('about');
    response.end();
    return;
  }
  inner(request, response);
});
outer.listen(0, '127.0.0.1', () => {
  const url = `http://localhost:${outer.address().port}`;
  server.issuer.url = url;
  console.log(url);
});
