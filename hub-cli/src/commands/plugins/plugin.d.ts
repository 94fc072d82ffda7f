// The API of plugins of Message Hub. No timers, no modules, no eval; `fetch` reaches the hosts of @connect.

/** The message, as the webhook gets it. Frozen. */
interface Message {
  readonly type: 'message';
  readonly content: string;
  /** user_name: the name on the network, or else the remark on the contact; empty when neither is known. */
  readonly sender: { readonly user_id: string; readonly user_name: string };
  readonly sessionID: string;
  readonly contextToken: string;
  /** 1 text, 3 image, 34 voice, 43 video, 49 file, 0 something else. */
  readonly msg_type: number;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly bot_id: string;
  readonly channel_id: string;
  /** Id of the message: the same on every attempt. */
  readonly id: string;
  /** Parts, when the message is more than one text. */
  readonly items?: readonly unknown[];
}

/** The request to the webhook, without what authenticates it. */
interface HubRequest {
  /** On the webhook's host, or on a host of @connect; elsewhere no credential is sent. */
  url: string;
  /** GET, POST, PUT, PATCH or DELETE. */
  method: string;
  /** Names in any case; each has one spelling: Content-Type. */
  headers: Record<string, string>;
  /** An object when the body is JSON. A string is sent as it is, anything else as JSON. */
  body: any;
}

/** The answer of the webhook. */
interface HubResponse {
  readonly status: number;
  /** Names in any case; each has one spelling: Content-Type. */
  readonly headers: Readonly<Record<string, string>>;
  /** null when it is binary. */
  readonly body: string | null;
}

/** A text, a `data:` URI, a file, or the webhook's answer as it is. */
type Reply = string | { base64: string; filename?: string } | { forward: true };

interface FetchInit {
  method?: string;
  headers?: Record<string, string>;
  body?: string | object;
}

interface FetchAnswer {
  readonly status: number;
  readonly ok: boolean;
  /** Names in any case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  text(): Promise<string>;
  json(): Promise<any>;
}

interface BaseContext {
  readonly msg: Message;
  /** JSON of at most 64 KiB: what onRequest leaves here, onResponse of the same delivery finds. */
  state: any;
  /** To the sender, at once; at most ten, texts of at most 64 KiB. The request is still sent unless it is skipped. */
  reply(what: Reply): void;
  /** To hosts of @connect, at most five, within the plugin's time. */
  fetch(url: string, init?: FetchInit): Promise<FetchAnswer>;
}

interface RequestContext extends BaseContext {
  req: HubRequest;
  /** Nothing is sent to the webhook, and no further plugin runs. */
  skip(): void;
}

interface ResponseContext extends BaseContext {
  readonly req: Readonly<HubRequest>;
  readonly res: HubResponse;
}

declare function reply(what: Reply): void;
declare function skip(): void;
declare function fetch(url: string, init?: FetchInit): Promise<FetchAnswer>;
declare const console: Record<'log' | 'info' | 'warn' | 'error' | 'debug', (...values: unknown[]) => void>;
