// An app of a Message Hub. Needs nothing but Node 20:
//
//     HUB_URL=http://localhost:9800 node app.mjs
//
// /hello is answered at once, /picture with an image, /tell through the bot API; what people write to @handle comes back.

import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const HUB = (process.env.HUB_URL ?? "http://localhost:9800").replace(/\/+$/, "");
const STATE = process.env.STATE ?? "app-state.json";
const MAX_BODY = 1 << 20;
const MAX_SKEW = 300; // seconds
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
let listen = process.env.LISTEN ?? "127.0.0.1:3000";

// What the hub gave us per installation: a token to call it, and the secret it signs with. Survives restarts.
const known = existsSync(STATE) ? JSON.parse(readFileSync(STATE, "utf8")) : {};

function keep(id, token, secret) {
  known[id] = { token, secret };
  writeFileSync(`${STATE}.new`, JSON.stringify(known), { mode: 0o600, flush: true });
  renameSync(`${STATE}.new`, STATE);
}

function installation(id) {
  // Installed by hand, token and secret are in the environment.
  const byHand = { token: process.env.APP_TOKEN ?? "", secret: process.env.WEBHOOK_SECRET ?? "" };
  return Object.hasOwn(known, id) ? known[id] : byHand;
}

// Installations that were begun: state → verifier and the way back. The oldest of a hundred is forgotten.
const begun = new Map();

function callHub(path, body, headers = {}) {
  return fetch(HUB + path, { method: "POST", body, headers, signal: AbortSignal.timeout(8000) });
}

// Whether the hub sent this, and lately: HMAC-SHA256 of "timestamp:body".
function isSigned(headers, body) {
  const at = headers["x-timestamp"] ?? "";
  const { secret } = installation(headers["x-installation-id"] ?? "");
  if (!secret || !/^[0-9]{1,15}$/.test(at) || Math.abs(Date.now() / 1000 - Number(at)) > MAX_SKEW) return false;
  const digest = createHmac("sha256", secret).update(`${at}:`).update(body).digest("hex");
  const [given, expected] = [Buffer.from(headers["x-signature"] ?? ""), Buffer.from(`sha256=${digest}`)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

// The reply to the sender. An event may arrive twice: the same event gets the same reply.
async function answerTo(envelope) {
  const { type, id, data } = envelope.event;
  if (type === "message.text") return { reply: `You said: ${data.content}` };
  if (type !== "command") return {};
  if (data.command === "picture") {
    return { reply: "Here it is", reply_type: "image", reply_base64: PNG, reply_name: "picture.png" };
  }
  if (data.command === "tell") {
    // Sent before the event is answered: if this process dies in between, the hub tells the event again, and the
    // key makes that a repetition.
    const message = { to: data.sender.id, content: data.text || "(nothing)", trace_id: envelope.trace_id };
    const sent = await callHub("/bot/v1/messages/send", JSON.stringify(message), {
      Authorization: `Bearer ${installation(envelope.installation_id).token}`,
      "Content-Type": "application/json",
      "Idempotency-Key": id,
    });
    if (!sent.ok) throw new Error(`the hub answered ${sent.status}`);
    return { reply_async: true };
  }
  return { reply: "Hello! I know /hello, /picture and /tell." };
}

// The hub sends the browser of the bot's owner here; we send it to the hub's question.
function setUp(query) {
  if (query.get("hub") !== HUB) return { status: 400, body: { error: "another hub" } };
  const [state, verifier] = [randomBytes(24).toString("base64url"), randomBytes(48).toString("base64url")];
  const appId = query.get("app_id") ?? "";
  const redirectUri = `http://${listen}/callback`;
  if (begun.size >= 100) begun.delete(begun.keys().next().value);
  begun.set(state, { appId, verifier, redirectUri, returnUrl: query.get("return_url") ?? "" });
  const question = new URLSearchParams({
    response_type: "code",
    client_id: appId,
    redirect_uri: redirectUri,
    bot_id: query.get("bot_id") ?? "",
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  return { location: `${HUB}/api/auth/oauth/authorize?${question}` };
}

// The browser brings a code; we exchange it for a token.
async function callBack(query) {
  const flow = begun.get(query.get("state"));
  begun.delete(query.get("state"));
  if (!flow || !query.has("code")) {
    return { status: 400, body: { error: query.get("error") ?? "not begun here" } };
  }
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    client_id: flow.appId,
    code: query.get("code"),
    redirect_uri: flow.redirectUri,
    code_verifier: flow.verifier,
  });
  const answer = await callHub("/api/auth/oauth/token", form);
  if (!answer.ok) return { status: 502, body: { error: "the hub gave no token" } };
  const granted = await answer.json();
  keep(granted.installation_id, granted.access_token, granted.webhook_secret);
  console.log("installed", granted.installation_id);
  if (flow.returnUrl.startsWith(`${HUB}/`)) return { location: flow.returnUrl };
  return { body: { installed: granted.installation_id } };
}

async function take(request, body) {
  let envelope;
  try {
    envelope = JSON.parse(body);
  } catch {
    return { status: 400, body: { error: "not JSON" } };
  }
  if (envelope?.type === "url_verification") return { body: { challenge: envelope.challenge } };
  if (!isSigned(request.headers, body)) {
    console.log("refused");
    return { status: 401, body: { error: "bad signature" } };
  }
  try {
    const reply = await answerTo(envelope);
    console.log("answered", envelope.event.type, envelope.event.id);
    return { body: reply };
  } catch {
    return { status: 503, body: { error: "the hub does not take the message; tell it again" } };
  }
}

async function read(request) {
  const pieces = [];
  let length = 0;
  for await (const piece of request) {
    length += piece.length;
    if (length > MAX_BODY) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

async function route(request) {
  const url = new URL(request.url, "http://app");
  if (request.method === "POST" && url.pathname === "/events") {
    const body = await read(request);
    return body ? take(request, body) : { status: 413, body: { error: "too long" } };
  }
  if (request.method === "GET" && url.pathname === "/setup") return setUp(url.searchParams);
  if (request.method === "GET" && url.pathname === "/callback") return callBack(url.searchParams);
  return { status: 404, body: { error: "not here" } };
}

const server = createServer(async (request, response) => {
  const answer = await route(request).catch(() => ({ status: 502, body: { error: "the hub does not answer" } }));
  if (answer.location) return response.writeHead(302, { Location: answer.location }).end();
  response.writeHead(answer.status ?? 200, { "Content-Type": "application/json" }).end(JSON.stringify(answer.body));
});
const [, host, port] = /^(.*):([0-9]+)$/.exec(listen);
server.listen(Number(port), host, () => {
  listen = `${host}:${server.address().port}`;
  console.log(`ready http://${listen}`);
});
