// An app with the library `ws`: tells what it was told, line by line, acknowledges it, and answers commands over its
// socket. Takes the whole address of its socket, and connects again whenever it was lost.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.CLIENT_MODULES}/`);
const WebSocket = require('ws');
const url = process.argv[2];
const tell = (event, fields = {}) => console.log(JSON.stringify({ event, ...fields }));

function connect() {
  const socket = new WebSocket(url);
  socket.on('message', (text) => {
    const frame = JSON.parse(text);
    if (frame.type !== 'event') return tell(frame.type);
    const { type, id, data } = frame.event;
    if (type === 'command') {
      const content = `${data.command} in ${data.text}`;
      socket.send(JSON.stringify({ type: 'send', req_id: id, to: data.sender.id, content }));
    } else {
      tell('told', { text: data.content });
    }
    socket.send(JSON.stringify({ type: 'ack', id }));
  });
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(connect, 100));
}

connect();
