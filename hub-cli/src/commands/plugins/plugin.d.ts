/// <reference no-default-lib="true" />
/// <reference lib="es2023" />
// The API of plugins of Message Hub: the language without eval, Function, Intl, Atomics, SharedArrayBuffer and WeakRef, and
// what is declared here. No timers and no modules; `fetch` reaches the hosts of @connect.

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
  get url(): string;
  set url(value: string | URL);
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
  /** Sent as JSON unless it is a text or a form. */
  body?: string | URLSearchParams | object;
  signal?: AbortSignal;
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
  fetch(url: string | URL, init?: FetchInit): Promise<FetchAnswer>;
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
declare function fetch(url: string | URL, init?: FetchInit): Promise<FetchAnswer>;
declare const console: Record<'log' | 'info' | 'warn' | 'error' | 'debug', (...values: unknown[]) => void>;
declare function queueMicrotask(job: () => void): void;

// The globals of the web, as in browsers.

/** Throws `DataCloneError` for functions and symbols. */
declare function structuredClone<T>(value: T, options?: { transfer?: ArrayBuffer[] }): T;
declare function atob(base64: string): string;
/** Characters up to U+00FF; encode other texts with TextEncoder first. */
declare function btoa(bytes: string): string;

type Bytes = ArrayBuffer | ArrayBufferView;
type Hash = 'SHA-1' | 'SHA-256' | 'SHA-384' | 'SHA-512';

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  hash: string;
  readonly searchParams: URLSearchParams;
  toString(): string;
  toJSON(): string;
}

declare class URLSearchParams implements Iterable<[string, string]> {
  constructor(init?: string | Record<string, string> | Iterable<[string, string]>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(visit: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}

declare class TextEncoder {
  readonly encoding: 'utf-8';
  encode(text?: string): Uint8Array;
  encodeInto(text: string, into: Uint8Array): { read: number; written: number };
}

/** Every encoding of browsers, GBK among them. */
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: Bytes, options?: { stream?: boolean }): string;
}

declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

/** Without `timeout`, since there are no timers. */
declare class AbortSignal {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: unknown;
  onabort: ((event: { type: 'abort'; target: AbortSignal }) => void) | null;
  throwIfAborted(): void;
  addEventListener(
    type: 'abort',
    listener: (event: { type: 'abort'; target: AbortSignal }) => void,
    options?: { once?: boolean },
  ): void;
  removeEventListener(type: 'abort', listener: (event: { type: 'abort'; target: AbortSignal }) => void): void;
}

declare class CryptoKey {
  private constructor();
  readonly type: 'secret';
  readonly extractable: boolean;
  readonly algorithm: { readonly name: 'HMAC'; readonly hash: { readonly name: Hash }; readonly length: number };
  readonly usages: readonly ('sign' | 'verify')[];
}

declare const crypto: {
  /** Arrays of integers, at most 65,536 bytes. */
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
  readonly subtle: {
    digest(hash: Hash | { name: Hash }, data: Bytes): Promise<ArrayBuffer>;
    importKey(
      format: 'raw',
      key: Bytes,
      algorithm: { name: 'HMAC'; hash: Hash | { name: Hash } },
      extractable: boolean,
      usages: ('sign' | 'verify')[],
    ): Promise<CryptoKey>;
    exportKey(format: 'raw', key: CryptoKey): Promise<ArrayBuffer>;
    sign(algorithm: 'HMAC' | { name: 'HMAC' }, key: CryptoKey, data: Bytes): Promise<ArrayBuffer>;
    verify(algorithm: 'HMAC' | { name: 'HMAC' }, key: CryptoKey, signature: Bytes, data: Bytes): Promise<boolean>;
  };
};
