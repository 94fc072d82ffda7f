// Follows a channel with the library `ws`: acknowledges each message, names no place when it comes back, and tells
// what it got, line by line. Reads the hub's address from stdin as the Python client does.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.env.CLIENT_MODULES}/`);
const WebSocket = require('ws');
const key = process.argv[2];
const tell = (event, fields = {}) => console.log(JSON.stringify({ event, ...fields }));

let base;
let socket;

function connect() {
  const mine = new WebSocket(`${base.replace('http://', 'ws://')}/api/v1/channels/connect?api_key=${key}&ack=true`);
  socket = mine;
  mine.on('message', (text) => {
    const frame = JSON.parse(text);
    if (frame.type === 'init') tell('open');
    if (frame.type !== 'message') return;
    tell('message', { seq: frame.data.seq, content: frame.data.content });
    mine.send(JSON.stringify({ type: 'ack', data: { seq: frame.data.seq } }));
  });
  mine.on('error', () => {});
  mine.on('close', () => setTimeout(() => socket === mine && connect(), 100));
}

createInterface({ input: process.stdin }).on('line', (line) => {
  base = line;
  const old = socket;
  connect();
  old?.terminate();
}).on('close', () => process.exit(0));
