// The small globals of the web, evaluated before the code of an author who names one of them. What needs tables or
// bytes is native; the classes are here, with the interfaces that the standards give them.

const NativeUint8Array = Uint8Array;
const { isView } = ArrayBuffer;
const { toBase64 } = NativeUint8Array.prototype;
const usv = (value) => `${value}`.toWellFormed();

const CODES = {
  IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5,
  NoModificationAllowedError: 7, NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10,
  InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14, InvalidAccessError: 15,
  TypeMismatchError: 17, SecurityError: 18, NetworkError: 19, AbortError: 20, URLMismatchError: 21,
  QuotaExceededError: 22, TimeoutError: 23, InvalidNodeTypeError: 24, DataCloneError: 25,
};

class DOMException extends Error {
  #name;
  constructor(message = '', name = 'Error') {
    super(message);
    this.#name = `${name}`;
  }
  get name() { return this.#name; }
  get code() { return Object.hasOwn(CODES, this.#name) ? CODES[this.#name] : 0; }
}

let native;

/** The bytes of a buffer or of a view of one; shares them. `packed` is how they are given to `native`. */
function bytesOf(source) {
  if (source instanceof ArrayBuffer) return new NativeUint8Array(source);
  if (isView(source)) return new NativeUint8Array(source.buffer, source.byteOffset, source.byteLength);
  throw new TypeError('an ArrayBuffer or a view of one is needed');
}

const packed = (source) => toBase64.call(bytesOf(source));

let linked, refill;

class URLSearchParams {
  #list = [];
  #changed;
  static {
    linked = (query, changed) => {
      const params = new URLSearchParams();
      refill(params, query);
      params.#changed = changed;
      return params;
    };
    refill = (params, query) => {
      const flat = native.readQuery(query);
      params.#list = [];
      for (let at = 0; at < flat.length; at += 2) params.#list.push([flat[at], flat[at + 1]]);
    };
  }
  constructor(init = '') {
    if ((typeof init === 'object' && init !== null) || typeof init === 'function') {
      if (init[Symbol.iterator] != null) {
        for (const pair of init) {
          const both = [...pair];
          if (both.length !== 2) throw new TypeError('each pair must have a name and a value');
          this.#list.push([usv(both[0]), usv(both[1])]);
        }
      } else for (const name of Object.keys(init)) this.#list.push([usv(name), usv(init[name])]);
    } else {
      const text = usv(init);
      refill(this, text[0] === '?' ? text.slice(1) : text);
    }
  }
  #change(list) {
    this.#list = list;
    this.#changed?.(this.toString());
  }
  get size() { return this.#list.length; }
  append(name, value) { this.#change([...this.#list, [usv(name), usv(value)]]); }
  delete(name, value) {
    const key = usv(name), wanted = value === undefined ? undefined : usv(value);
    this.#change(this.#list.filter(([a, b]) => a !== key || (wanted !== undefined && b !== wanted)));
  }
  get(name) {
    const key = usv(name), found = this.#list.find(([a]) => a === key);
    return found === undefined ? null : found[1];
  }
  getAll(name) {
    const key = usv(name);
    return this.#list.filter(([a]) => a === key).map(([, value]) => value);
  }
  has(name, value) {
    const key = usv(name), wanted = value === undefined ? undefined : usv(value);
    return this.#list.some(([a, b]) => a === key && (wanted === undefined || b === wanted));
  }
  set(name, value) {
    const key = usv(name), pair = [key, usv(value)];
    let done = false;
    const list = [];
    for (const one of this.#list) {
      if (one[0] !== key) list.push(one);
      else if (!done) done = list.push(pair) > 0;
    }
    if (!done) list.push(pair);
    this.#change(list);
  }
  sort() { this.#change([...this.#list].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))); }
  forEach(visit, self) {
    if (typeof visit !== 'function') throw new TypeError('forEach takes a function');
    for (const [name, value] of this) visit.call(self, value, name, this);
  }
  *entries() { for (let at = 0; at < this.#list.length; at++) yield [...this.#list[at]]; }
  *keys() { for (const [name] of this.entries()) yield name; }
  *values() { for (const [, value] of this.entries()) yield value; }
  toString() { return native.writeQuery(this.#list.flat()); }
}
Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, {
  value: URLSearchParams.prototype.entries, writable: true, configurable: true,
});

const PARTS = ['origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];

class URL {
  #parts;
  #params;
  static {
    PARTS.forEach((part, index) => {
      const set = function (value) { this.#take(native.setUrl(this.#parts[0], part, usv(value))); };
      Object.defineProperty(URL.prototype, part, {
        get() { return this.#parts[index + 1]; },
        set: part === 'origin' ? undefined : set,
        enumerable: true, configurable: true,
      });
    });
  }
  static #parse(url, base) { return native.parseUrl(usv(url), base === undefined ? undefined : usv(base)); }
  static canParse(url, base) { return URL.#parse(url, base) !== undefined; }
  static parse(url, base) { return URL.canParse(url, base) ? new URL(url, base) : null; }
  constructor(url, base) {
    this.#parts = URL.#parse(url, base);
    if (this.#parts === undefined) throw new TypeError(`Invalid URL: ${usv(url)}`);
  }
  #take(parts) {
    this.#parts = parts;
    if (this.#params !== undefined) refill(this.#params, this.search.slice(1));
  }
  get href() { return this.#parts[0]; }
  set href(value) {
    const parts = URL.#parse(value);
    if (parts === undefined) throw new TypeError(`Invalid URL: ${usv(value)}`);
    this.#take(parts);
  }
  get searchParams() {
    const changed = (query) => { this.#parts = native.setUrl(this.#parts[0], 'search', query); };
    return this.#params ??= linked(this.search.slice(1), changed);
  }
  toString() { return this.#parts[0]; }
  toJSON() { return this.#parts[0]; }
}

class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(text = '') { return native.encode(usv(text)); }
  encodeInto(text, into) {
    if (!(into instanceof NativeUint8Array)) throw new TypeError('encodeInto writes into a Uint8Array');
    let read = 0, written = 0;
    const from = usv(text);
    for (const c of from) {
      const code = c.codePointAt(0), size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      if (written + size > into.length) break;
      [read, written] = [read + c.length, written + size];
    }
    into.set(native.encode(from.slice(0, read)));
    return { read, written };
  }
}

class TextDecoder {
  #encoding; #decode; #fatal; #ignoreBOM;
  constructor(label = 'utf-8', options) {
    [this.#fatal, this.#ignoreBOM] = [!!options?.fatal, !!options?.ignoreBOM];
    const made = native.decoder(usv(label), this.#fatal, this.#ignoreBOM);
    if (made === undefined) throw new RangeError(`The encoding ${usv(label)} is not known`);
    ({ encoding: this.#encoding, decode: this.#decode } = made);
  }
  get encoding() { return this.#encoding; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#ignoreBOM; }
  decode(input, options) {
    const text = this.#decode(input === undefined ? '' : packed(input), !!options?.stream);
    if (text === undefined) throw new TypeError(`The bytes are not valid ${this.#encoding}`);
    return text;
  }
}

function atob(data) {
  const bytes = native.fromBase64(usv(data));
  if (bytes === undefined) throw new DOMException('The text is not valid base64', 'InvalidCharacterError');
  return bytes;
}

function btoa(data) {
  const text = native.toBase64(usv(data));
  if (text !== undefined) return text;
  throw new DOMException('The text has a character above U+00FF: encode it first', 'InvalidCharacterError');
}

const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const classOf = (value) => Object.prototype.toString.call(value).slice(8, -1);

/** Copies a value; `copies` has what was copied already, so that cycles and shared parts stay. */
function copy(value, copies) {
  const refuse = () => { throw new DOMException(`${typeof value} could not be cloned`, 'DataCloneError'); };
  if (typeof value === 'symbol' || typeof value === 'function') refuse();
  if (typeof value !== 'object' || value === null) return value;
  if (copies.has(value)) return copies.get(value);
  const keep = (made) => { copies.set(value, made); return made; };
  if (Array.isArray(value)) return fill(keep(new Array(value.length)), value, copies);
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (isView(value)) {
    const buffer = copy(value.buffer, copies);
    return keep(new value.constructor(buffer, value.byteOffset, value.length ?? value.byteLength));
  }
  if (value instanceof Date) return keep(new Date(value.getTime()));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof Map) {
    const made = keep(new Map());
    for (const [key, one] of [...value]) made.set(copy(key, copies), copy(one, copies));
    return made;
  }
  if (value instanceof Set) {
    const made = keep(new Set());
    for (const one of [...value]) made.add(copy(one, copies));
    return made;
  }
  if (value instanceof DOMException) return keep(new DOMException(value.message, value.name));
  if (value instanceof Error) {
    const made = keep(new (Object.hasOwn(ERRORS, value.name) ? ERRORS[value.name] : Error)(`${value.message}`));
    if (Object.hasOwn(value, 'cause')) made.cause = copy(value.cause, copies);
    return made;
  }
  switch (classOf(value)) {
    case 'Boolean': case 'Number': case 'String': return keep(Object(value.valueOf()));
    case 'BigInt': return keep(Object(BigInt.prototype.valueOf.call(value)));
    case 'Object': case 'Arguments': return fill(keep({}), value, copies);
    default: return refuse();
  }
}

function fill(made, value, copies) {
  for (const key of Object.keys(value)) {
    const one = copy(value[key], copies);
    Object.defineProperty(made, key, { value: one, writable: true, enumerable: true, configurable: true });
  }
  return made;
}

function structuredClone(value, options) {
  const copies = new Map();
  const transferred = options?.transfer === undefined ? [] : [...options.transfer];
  for (const buffer of transferred) {
    if (!(buffer instanceof ArrayBuffer) || buffer.detached || copies.has(buffer)) {
      throw new DOMException('Only an ArrayBuffer can be transferred, once', 'DataCloneError');
    }
    copies.set(buffer, buffer);
  }
  // After everything else could be copied: what throws leaves the buffers where they are.
  copy(value, new Map(copies));
  for (const buffer of transferred) copies.set(buffer, buffer.transfer());
  return copy(value, copies);
}

let making = false, abort, watch;

class AbortSignal {
  #aborted = false;
  #reason;
  #listeners = [];
  onabort = null;
  static {
    abort = (signal, reason = new DOMException('This operation was aborted', 'AbortError')) => {
      if (signal.#aborted) return;
      [signal.#aborted, signal.#reason] = [true, reason];
      const event = { type: 'abort', target: signal, currentTarget: signal };
      const listeners = signal.#listeners;
      signal.#listeners = listeners.filter(({ once }) => !once);
      if (typeof signal.onabort === 'function') signal.onabort(event);
      for (const { listener } of listeners) {
        if (typeof listener === 'function') listener.call(signal, event);
        else listener.handleEvent(event);
      }
    };
    watch = (signal, listener) => signal.#listeners.push({ listener, once: true });
  }
  constructor() { if (!making) throw new TypeError('Illegal constructor: use an AbortController'); }
  static #make() {
    making = true;
    try { return new AbortSignal(); } finally { making = false; }
  }
  static abort(reason) {
    const signal = AbortSignal.#make();
    abort(signal, reason);
    return signal;
  }
  static any(signals) {
    const made = AbortSignal.#make();
    for (const signal of [...signals]) {
      if (signal.#aborted) { abort(made, signal.#reason); break; }
      watch(signal, () => abort(made, signal.#reason));
    }
    return made;
  }
  get aborted() { return this.#aborted; }
  get reason() { return this.#reason; }
  throwIfAborted() { if (this.#aborted) throw this.#reason; }
  addEventListener(type, listener, options) {
    if (type !== 'abort' || listener === null || listener === undefined) return;
    if (!this.#listeners.some((one) => one.listener === listener)) {
      this.#listeners.push({ listener, once: typeof options === 'object' && !!options?.once });
    }
  }
  removeEventListener(type, listener) {
    if (type === 'abort') this.#listeners = this.#listeners.filter((one) => one.listener !== listener);
  }
}

class AbortController {
  #signal;
  constructor() {
    making = true;
    try { this.#signal = new AbortSignal(); } finally { making = false; }
  }
  get signal() { return this.#signal; }
  abort(reason) { abort(this.#signal, reason); }
}

/** The name of a hash as `native` knows it. */
function hashOf(algorithm) {
  const name = usv(typeof algorithm === 'object' && algorithm !== null ? algorithm.name : algorithm).toUpperCase();
  if (native.hashes.includes(name)) return name;
  throw new DOMException(`The hash ${name} is not supported: ${native.hashes.join(', ')}`, 'NotSupportedError');
}

let keyOf;

class CryptoKey {
  #bytes;
  static { keyOf = (key) => key.#bytes; }
  constructor(bytes, hash, extractable, usages) {
    this.#bytes = bytes;
    this.type = 'secret';
    this.extractable = extractable;
    this.algorithm = { name: 'HMAC', hash: { name: hash }, length: bytes.length * 8 };
    this.usages = usages;
    Object.freeze(this);
  }
}

/** Checks that a key signs or verifies; returns its hash and its bytes. */
function keyFor(usage, algorithm, key) {
  requireHmac(algorithm);
  if (!(key instanceof CryptoKey)) throw new TypeError('a CryptoKey of importKey is needed');
  if (!key.usages.includes(usage)) throw new DOMException(`The key is not for ${usage}`, 'InvalidAccessError');
  return [key.algorithm.hash.name, keyOf(key)];
}

function requireHmac(algorithm) {
  const name = usv(typeof algorithm === 'object' && algorithm !== null ? algorithm.name : algorithm);
  if (name.toUpperCase() !== 'HMAC') {
    throw new DOMException(`The algorithm ${name} is not supported: HMAC`, 'NotSupportedError');
  }
}

const subtle = {
  async digest(algorithm, data) { return native.digest(hashOf(algorithm), packed(data)).buffer; },
  async importKey(format, data, algorithm, extractable, usages) {
    if (format !== 'raw') throw new DOMException(`The format ${usv(format)} is not supported: raw`, 'NotSupportedError');
    requireHmac(algorithm);
    const hash = hashOf(algorithm.hash), bytes = bytesOf(data).slice(), uses = [...usages];
    if (uses.length === 0) throw new DOMException('The key has no usage', 'SyntaxError');
    const odd = uses.find((usage) => usage !== 'sign' && usage !== 'verify');
    if (odd !== undefined) throw new DOMException(`A key of HMAC is not for ${usv(odd)}`, 'SyntaxError');
    if (bytes.length === 0) throw new DOMException('The key is empty', 'DataError');
    return new CryptoKey(bytes, hash, !!extractable, uses);
  },
  async exportKey(format, key) {
    if (format !== 'raw') throw new DOMException(`The format ${usv(format)} is not supported: raw`, 'NotSupportedError');
    if (!(key instanceof CryptoKey)) throw new TypeError('a CryptoKey of importKey is needed');
    if (!key.extractable) throw new DOMException('The key is not extractable', 'InvalidAccessError');
    return keyOf(key).slice().buffer;
  },
  async sign(algorithm, key, data) {
    const [hash, bytes] = keyFor('sign', algorithm, key);
    return native.sign(hash, packed(bytes), packed(data)).buffer;
  },
  async verify(algorithm, key, signature, data) {
    const [hash, bytes] = keyFor('verify', algorithm, key);
    return native.verify(hash, packed(bytes), packed(signature), packed(data));
  },
};

const INTEGERS = /^(?:Big)?(?:Int|Uint)(?:8|16|32|64)(?:Clamped)?Array$/;

const crypto = {
  subtle,
  getRandomValues(array) {
    if (!isView(array) || !INTEGERS.test(classOf(array))) {
      throw new DOMException('getRandomValues fills an array of integers', 'TypeMismatchError');
    }
    if (array.byteLength > 65536) {
      throw new DOMException('getRandomValues fills at most 65536 bytes', 'QuotaExceededError');
    }
    bytesOf(array).set(native.random(array.byteLength));
    return array;
  },
  randomUUID() {
    const bytes = native.random(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  },
};

/** Defines the globals; returns what `ctx` and `fetch` need to know of them. */
export function install(functions) {
  native = functions;
  const classes = {
    AbortController, AbortSignal, CryptoKey, DOMException, TextDecoder, TextEncoder, URL, URLSearchParams,
  };
  for (const name of Object.keys(classes)) {
    const tag = { value: name, configurable: true };
    Object.defineProperty(classes[name].prototype, Symbol.toStringTag, tag);
  }
  Object.defineProperty(crypto, Symbol.toStringTag, { value: 'Crypto', configurable: true });
  const globals = { ...classes, atob, btoa, crypto, structuredClone };
  for (const name of Object.keys(globals)) {
    Object.defineProperty(globalThis, name, { value: globals[name], writable: true, configurable: true });
  }
  return {
    isText: (value) => value instanceof URL || value instanceof URLSearchParams,
    isForm: (value) => value instanceof URLSearchParams,
    isSignal: (value) => value instanceof AbortSignal,
    watch,
  };
}
