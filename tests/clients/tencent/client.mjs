// Tencent's own compiled modules (@tencent-weixin/openclaw-weixin 2.4.9) against the simulator.
//
// Nothing of the package is changed. Its login has the public host written into it, so requests to that host, and only
// those, are led to the simulator by a wrapper around `fetch`.

import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { register } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const LOGIN_HOST = "https://ilinkai.weixin.qq.com";
const [baseUrl, file, image, folder] = process.argv.slice(2);

register("./hooks.mjs", import.meta.url);
const load = (name) => import(pathToFileURL(path.join(process.env.CLIENT_MODULES, name)).href);

// The login writes prompts without an end of line.
const tell = (event, fields = {}) => process.stdout.write(`\n${JSON.stringify({ event, ...fields })}\n`);

const fetchAnywhere = globalThis.fetch;
globalThis.fetch = async (url, options) => {
  const target = String(url).replace(LOGIN_HOST, baseUrl);
  if (!target.startsWith(baseUrl)) throw new Error(`a request to a foreign host: ${new URL(target).host}`);
  const response = await fetchAnywhere(target, options);
  if (target.includes("get_qrcode_status")) {
    const { status } = await response.clone().json();
    if (status === "need_verifycode") tell("code_wanted");
    if (status === "scaned") tell("scanned");
  }
  return response;
};

const { startWeixinLoginWithQr, waitForWeixinLogin } = await load("auth/login-qr.js");
const { STALE_TOKEN_ERRCODE } = await load("api/session-guard.js");
const api = await load("api/api.js");
const inbound = await load("messaging/inbound.js");
const { sendMessageWeixin } = await load("messaging/send.js");
const { sendWeixinMediaFile } = await load("messaging/send-media.js");
const { downloadMediaFromItem } = await load("media/media-download.js");

const started = await startWeixinLoginWithQr({});
if (!started.qrcodeUrl) throw new Error(started.message);
tell("qr", { text: started.qrcodeUrl });
const login = await waitForWeixinLogin({ sessionKey: started.sessionKey, timeoutMs: 60_000 });
if (!login.connected) throw new Error(login.message);
tell("logged_in", { bot_id: login.accountId, user_id: login.userId, base_url: login.baseUrl });

const account = { baseUrl: login.baseUrl, token: login.botToken };
const cdnBaseUrl = `${login.baseUrl}/c2c`;

async function type(ilinkUserId, contextToken, status) {
  const config = await api.getConfig({ ...account, ilinkUserId, contextToken });
  if (config.ret !== 0 || !config.typing_ticket) throw new Error(`getconfig: ${JSON.stringify(config)}`);
  const body = { ilink_user_id: ilinkUserId, typing_ticket: config.typing_ticket, status };
  await api.sendTyping({ ...account, body });
}

async function answer(to, contextToken, text) {
  const opts = { ...account, contextToken };
  await type(to, contextToken, 1);
  const sent = await sendMessageWeixin({ to, text: `you said: ${text}`, opts });
  tell("replied", { client_id: sent.messageId, message_id: sent.serverMessageId });
  await type(to, contextToken, 2);
  await sendWeixinMediaFile({ filePath: file, to, text: "a caption", opts, cdnBaseUrl });
  await sendWeixinMediaFile({ filePath: image, to, text: "", opts, cdnBaseUrl });
  tell("sent_media");
}

async function download(item) {
  let error;
  const saveMedia = async (bytes) => {
    const saved = path.join(folder, randomUUID());
    await writeFile(saved, bytes);
    return { path: saved };
  };
  const log = () => {};
  const errLog = (text) => { error = text; };
  const saved = await downloadMediaFromItem(item, { cdnBaseUrl, saveMedia, log, errLog, label: "test" });
  if (error) throw new Error(error);
  const kinds = { image: saved.decryptedPicPath, file: saved.decryptedFilePath };
  for (const [kind, path] of Object.entries(kinds)) if (path) tell("downloaded", { kind, path });
}

async function handle(message) {
  const [item] = message.item_list;
  if (inbound.isMediaItem(item)) return download(item);
  const { text } = item.text_item;
  inbound.setContextToken(login.accountId, message.from_user_id, message.context_token);
  const context = inbound.weixinMessageToMsgContext(message, login.accountId, {});
  if (context.Body !== text) throw new Error(`the host would be handed ${JSON.stringify(context)}`);
  tell("received", {
    message_id: inbound.getWeixinMessageId(message),
    user_id: message.from_user_id,
    text,
    context_token: message.context_token,
  });
  const contextToken = inbound.getContextToken(login.accountId, message.from_user_id);
  if (text !== "bye") await answer(message.from_user_id, contextToken, text);
}

const ready = await api.notifyStart(account);
if (ready.ret !== 0) throw new Error(`notifystart: ${JSON.stringify(ready)}`);
let cursor = "";
for (;;) {
  const updates = await api.getUpdates({ ...account, get_updates_buf: cursor });
  if (updates.errcode === STALE_TOKEN_ERRCODE) break;
  if ((updates.ret ?? 0) !== 0 || updates.errcode) throw new Error(`getupdates: ${JSON.stringify(updates)}`);
  cursor = updates.get_updates_buf || cursor;
  for (const message of updates.msgs ?? []) await handle(message);
}
tell("expired");
await api.notifyStop(account);
tell("stopped");
process.exit(0);
