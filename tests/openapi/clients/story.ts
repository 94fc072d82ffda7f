// The story of clients/mod.rs, told with the types that openapi-typescript made: `story.js HUB SIMULATOR`.

import createClient from "openapi-fetch";
import type { components, paths } from "./hub.js";

type ErrorCode = components["schemas"]["ErrorCode"];
interface Answer<T> {
  data?: { success: true; data: T };
  error?: components["schemas"]["ErrorResponse"];
  response: Response;
}

declare const process: { argv: string[] };
const [hub, simulator] = process.argv.slice(2) as [string, string];
const password = "correct horse battery";

function passed(step: string): void {
  console.log(step);
}

function data<T>(answer: Answer<T>): T {
  if (!answer.data) throw new Error(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
  return answer.data.data;
}

function refused<T>(answer: Answer<T>, status: number, code: ErrorCode): void {
  if (answer.response.status !== status || answer.error?.error.code !== code) {
    throw new Error(`expected ${code}, got ${answer.response.status}: ${JSON.stringify(answer.error)}`);
  }
  passed(code);
}

async function control(path: string, body: unknown): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(simulator + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
}

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let n = 0; n < 200; n += 1) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("waited in vain");
}

const stranger = createClient<paths>({ baseUrl: hub, headers: { Origin: hub } });
data(await stranger.POST("/api/auth/register", { body: { username: "ada", password } }));
passed("registered");
const signedIn = await stranger.POST("/api/auth/login", { body: { username: "ada", password } });
data(signedIn);
const cookie = signedIn.response.headers.get("set-cookie")?.split(";")[0] ?? "";
passed("logged in");
const browser = createClient<paths>({ baseUrl: hub, headers: { Origin: hub, Cookie: cookie } });
const key = data(await browser.POST("/api/user/api-keys", { body: { name: "story" } })).key;
passed("key created");
const client = createClient<paths>({ baseUrl: hub, headers: { Authorization: `Bearer ${key}` } });
if (data(await client.GET("/api/auth/me")).username !== "ada") throw new Error("not ada");
passed("me");
const bind = data(await client.POST("/api/bots/bind/start", { body: { network: "sim" } }));
passed("bind started");
await control("/_sim/confirm", { qr_text: bind.qr_text });
const bot = await until(async () => {
  const step = data(await client.POST("/api/bots/bind/confirm", { body: { bind_id: bind.bind_id, wait_ms: 2000 } }));
  return step.status === "confirmed" ? step.bot : undefined;
});
passed("bind confirmed");
const path = { id: bot.id };
const channel = data(await client.POST("/api/bots/{id}/channels", { params: { path }, body: { name: "story" } }));
if (!channel.api_key.startsWith("hubc_")) throw new Error("no key");
passed("channel created");
const send = (content: string) => client.POST("/api/bots/{id}/send", { params: { path }, body: { content } });
refused(await send("hello"), 409, "WINDOW_CLOSED");
const count = 250;
const messages = Array.from({ length: count }, (_, n) => ({ wx_id: bot.wx_id, text: `order ${n}` }));
await control("/_sim/messages", { messages });
async function pages(): Promise<string[]> {
  const seen: string[] = [];
  let cursor: string | undefined;
  for (;;) {
    const query = cursor === undefined ? { limit: 100 } : { limit: 100, cursor };
    const page = data(await client.GET("/api/bots/{id}/messages", { params: { path, query } }));
    seen.push(...page.items.map((message) => message.id));
    if (page.next_cursor === null) return seen;
    cursor = page.next_cursor;
  }
}
const seen = await until(async () => {
  const found = await pages();
  return found.length >= count ? found : undefined;
});
passed("messages received");
if (seen.length !== count || new Set(seen).size !== count) throw new Error(`${seen.length} messages`);
passed("paged");
if (!data(await send("hello")).message_id.startsWith("msg_")) throw new Error("no id");
passed("sent");
const trace = await until(async () => data(await client.GET("/api/bots/{id}/traces", { params: { path } })).items[0]);
const traced = { path: { ...path, traceId: trace.trace_id } };
if (data(await client.GET("/api/bots/{id}/traces/{traceId}", { params: traced })).steps.length === 0) {
  throw new Error("no steps");
}
passed("trace read");
const unnamed = await client.POST("/api/bots/{id}/channels", { params: { path }, body: { name: "" } });
refused(unnamed, 400, "INVALID_PARAMS");
refused(await createClient<paths>({ baseUrl: hub }).GET("/api/auth/me"), 401, "UNAUTHORIZED");
const wrong = createClient<paths>({ baseUrl: hub, headers: { Authorization: "Bearer hubu_unknown" } });
refused(await wrong.GET("/api/auth/me"), 401, "INVALID_TOKEN");
refused(await client.POST("/api/user/api-keys", { body: { name: "another" } }), 403, "FORBIDDEN");
const nobody = { path: { id: "bot_01BX5ZZKBKACTAV9WEVGEMMVRZ" } };
refused(await client.GET("/api/bots/{id}", { params: nobody }), 404, "NOT_FOUND");
refused(await stranger.POST("/api/auth/register", { body: { username: "ada", password } }), 409, "CONFLICT");
refused(await send("x".repeat(2 * 1024 * 1024)), 413, "PAYLOAD_TOO_LARGE");
const guess = () => stranger.POST("/api/auth/login", { body: { username: "ada", password: "wrong horse battery" } });
await until(async () => ((await guess()).response.status === 429 ? true : undefined));
refused(await guess(), 429, "RATE_LIMITED");
