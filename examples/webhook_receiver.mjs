// Receives webhooks and checks who sent them. Needs nothing but Node:
//
//     WEBHOOK_SECRET=... node webhook_receiver.mjs

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const secret = process.env.WEBHOOK_SECRET;
if (!secret) throw new Error("WEBHOOK_SECRET is not set");

const digest = (key, ...parts) => parts.reduce((mac, part) => mac.update(part), createHmac("sha256", key));
const equal = (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

// X-Signature over the body, or the Standard Webhooks headers over id, time and body.
function verify(headers, body) {
  const given = headers["x-signature"];
  if (given !== undefined) return equal(given, "sha256=" + digest(secret, body).digest("hex"));
  const [id, at] = [headers["webhook-id"] ?? "", headers["webhook-timestamp"] ?? ""];
  if (!/^\d+$/.test(at) || Math.abs(Date.now() / 1000 - Number(at)) > 300) return false;
  const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : secret;
  const expected = "v1," + digest(key, `${id}.${at}.`, body).digest("base64");
  return (headers["webhook-signature"] ?? "").split(" ").some((one) => equal(one, expected));
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const verified = verify(request.headers, body);
  console.log(verified ? "verified" : "refused", body.toString());
  response.writeHead(verified ? 200 : 401, { "Content-Type": "application/json" });
  response.end(JSON.stringify(verified ? { reply: "thank you" } : { error: "bad signature" }));
});

const [host, port] = (process.env.LISTEN ?? "127.0.0.1:3000").split(":");
server.listen(Number(port), host, () => console.log(`ready http://${host}:${server.address().port}/`));
