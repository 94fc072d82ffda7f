// Evaluated in every new context before a line of the author's. It builds what an author sees, and reads back what
// the author left. Everything it uses is taken from the globals here, once, since the author may change them later;
// that would only affect the author, who is alone in this context, and all that leaves it is text that the hub
// checks. There is no code generation in this context; the names of it go as well, so that `eval` is not defined.

const { create, defineProperty, freeze, keys } = Object;
const { stringify, parse } = JSON;
const { isArray } = Array;
const functions = Function.prototype;
const { call } = functions;
const { apply, construct, defineProperty: define, deleteProperty, getOwnPropertyDescriptor, has } = Reflect;
const wellFormed = call.bind(String.prototype.toWellFormed);
const cut = call.bind(String.prototype.slice);
const find = call.bind(String.prototype.indexOf);
const replace = call.bind(String.prototype.replace);
const lower = call.bind(String.prototype.toLowerCase);
const some = call.bind(Array.prototype.some);
const upper = call.bind(String.prototype.toUpperCase);
const NativePromise = Promise;
const NativeProxy = Proxy;
const NativeString = String;
const NativeError = Error;
const NativeTypeError = TypeError;
const NativeRangeError = RangeError;

for (const name of ['eval', 'Function', 'SharedArrayBuffer', 'Atomics']) delete globalThis[name];
// With a formatter of its own a plugin could run code wherever an error is made, also while it is being stopped.
const fixed = (value) => ({ value, writable: false, enumerable: false, configurable: false });
defineProperty(NativeError, 'prepareStackTrace', fixed(undefined));
defineProperty(NativeError, 'stackTraceLimit', fixed(10));

// The engine's own `bind` crashes the process when memory ends in the middle of it.
defineProperty(functions, 'bind', {
  value: {
    bind(self, ...first) {
      const target = this;
      if (typeof target !== 'function') throw new NativeTypeError('bind must be called on a function');
      function bound(...rest) {
        const all = [...first, ...rest];
        if (new.target === undefined) return apply(target, self, all);
        return construct(target, all, new.target === bound ? target : new.target);
      }
      const { name, length } = target;
      const left = typeof length === 'number' && length > first.length ? length - first.length : 0;
      defineProperty(bound, 'name', { value: `bound ${typeof name === 'string' ? name : ''}`, configurable: true });
      defineProperty(bound, 'length', { value: left, configurable: true });
      bound.prototype = target.prototype;
      return bound;
    },
  }.bind,
  writable: true,
  configurable: true,
});

// There are no rules of time zones here, and UTC in their place would be a wrong time without a word.
const NativeDate = Date;
const timeOf = call.bind(NativeDate.prototype.getTime);
const match = call.bind(RegExp.prototype.exec);

/** Minutes that a time zone is ahead of UTC. */
function minutesAhead(zone) {
  if (zone === undefined) return 0;
  const name = `${zone}`;
  if (match(/^(?:(?:Etc\/)?(?:UTC|GMT|UCT)|Zulu)$/i, name)) return 0;
  const offset = match(/^([+-])([01]\d|2[0-3])(?::?([0-5]\d))?$/, name);
  if (offset) return (offset[1] === '-' ? -1 : 1) * (offset[2] * 60 + (offset[3] ?? 0) * 1);
  throw new NativeRangeError(`the time zone ${name} is not known here: use an offset, such as +08:00, or UTC`);
}

for (const name of ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']) {
  const inUtc = NativeDate.prototype[name];
  const inZone = { [name](locales, options) {
    const minutes = minutesAhead(options?.timeZone);
    return apply(inUtc, minutes === 0 ? this : new NativeDate(timeOf(this) + minutes * 60_000), []);
  } }[name];
  defineProperty(NativeDate.prototype, name, { value: inZone, writable: true, configurable: true });
}

const LINE = 2048;
const HEADERS = 64;

let hub, asking, ctx, asked, before;
// What `web.js` knows of its values, if it is there.
let web = { __proto__: null, isText: () => false, isForm: () => false, isSignal: () => false };
const waiting = create(null);

function text(value, what) {
  switch (typeof value) {
    case 'string': return wellFormed(value);
    case 'number': case 'boolean': return `${value}`;
  }
  throw new NativeTypeError(`${what} must be a string`);
}

function freezeAll(value) {
  if (typeof value !== 'object' || value === null) return value;
  for (const key of keys(value)) freezeAll(value[key]);
  return freeze(value);
}

/** Lets an object stand where older plugins expect text. */
function printAs(value, print) {
  if (typeof value !== 'object' || value === null || 'toString' in { __proto__: null, ...value }) return;
  defineProperty(value, 'toString', { value: print, writable: true, configurable: true });
}

/** JSON of any value without lone surrogates, which it has as escapes; `undefined` for what has no JSON. */
function json(value) {
  const made = stringify(value);
  if (made === undefined || find(made, '\\ud') < 0) return made;
  return replace(made, /\\\\|\\ud[89a-f]../g, (escape) => (escape.length === 2 ? escape : '\ufffd'));
}

const spellings = create(null);

/** The one spelling of a header's name: `Content-Type`. What is not a text stays as it is. */
function spelled(name) {
  if (typeof name !== 'string') return name;
  return (spellings[name] ??= replace(lower(name), /(?:^|-)[a-z]/g, upper));
}

/** Headers, and what shows them: by their names in any case; each name has one spelling. */
function headersOf(given, readonly) {
  const headers = {};
  for (const name of keys(given)) define(headers, spelled(name), fieldOf(given[name]));
  const field = (name) => getOwnPropertyDescriptor(headers, spelled(name));
  const set = (_, name, { value }) => !readonly && define(headers, spelled(name), fieldOf(value));
  const shown = new NativeProxy(headers, {
    get: (_, name) => (field(name) ?? { value: headers[name] }).value,
    has: (_, name) => field(name) !== undefined || has(headers, name),
    set: (_, name, value) => set(_, name, { value }),
    defineProperty: set,
    deleteProperty: (_, name) => !readonly && deleteProperty(headers, spelled(name)),
    getOwnPropertyDescriptor: (_, name) => field(name),
    preventExtensions: () => false,
    setPrototypeOf: () => false,
  });
  return { headers, shown };
}

function fieldOf(value) {
  return { __proto__: null, value, writable: true, enumerable: true, configurable: true };
}

function print(value) {
  try {
    switch (typeof value) {
      case 'string': return value;
      case 'function': case 'symbol': return `[${typeof value}]`;
      case 'bigint': return `${value}n`;
      case 'object':
        if (value instanceof NativeError) return `${value.name}: ${value.message}`;
        return stringify(value) ?? '[object]';
      default: return `${value}`;
    }
  } catch {
    return '[unprintable]';
  }
}

const tell = (level) => (...values) => {
  let line = '';
  for (let at = 0; at < values.length && line.length < LINE; at++) {
    line += (at > 0 ? ' ' : '') + cut(print(values[at]), 0, LINE);
  }
  hub.log(level, wellFormed(cut(line, 0, LINE)));
};

// Methods, not functions: none of them is a constructor.
const api = {
  reply(what) {
    if (typeof what !== 'object' || what === null) return hub.reply('text', text(what, 'a reply'), '');
    if (what.forward === true) return hub.reply('forward', '', '');
    if (typeof what.base64 !== 'string') {
      throw new NativeTypeError('reply takes a text, a data: URI, {base64, filename} or {forward: true}');
    }
    const { base64, filename } = what;
    const name = filename === undefined || filename === null ? '' : text(filename, 'filename');
    return hub.reply('file', wellFormed(base64), name);
  },
  skip() {
    hub.skip();
  },
  fetch(url, init) {
    return new NativePromise((resolve, reject) => {
      const { method = 'GET', headers: given, body, signal } = init ?? {};
      if (web.isSignal(signal)) {
        signal.throwIfAborted();
        web.watch(signal, () => reject(signal.reason));
      }
      const headers = create(null);
      if (given !== undefined && given !== null) {
        for (const name of keys(given)) headers[wellFormed(name)] = text(given[name], `the header ${name}`);
      }
      const isForm = web.isForm(body);
      if (isForm && !some(keys(headers), (name) => lower(name) === 'content-type')) {
        headers['Content-Type'] = 'application/x-www-form-urlencoded;charset=UTF-8';
      }
      const call = {
        __proto__: null,
        url: text(typeof url === 'object' && url !== null ? `${url}` : url, 'the URL'),
        method: text(method, 'the method'),
        headers,
        body: body === undefined || body === null ? null
          : typeof body === 'string' || isForm ? wellFormed(`${body}`) : json(body),
      };
      waiting[hub.fetch(stringify(call))] = { resolve, reject };
    });
  },
};

/** Builds `ctx` and the globals; answers with `ctx`. `globals` is what `web.js` returned, if it was loaded. */
export function begin(host, globals, globalCtx, msg, req, res, state) {
  hub = host;
  web = globals ?? web;
  asking = res === undefined;
  printAs(msg?.sender, function () { return this.user_name || this.user_id || ''; });
  printAs(req.body, function () { return stringify(this); });
  freezeAll(msg);
  asked = headersOf(req.headers, !asking);
  req.headers = asked.shown;
  before = typeof req.body === 'string' ? req.body : json(req.body);
  ctx = { msg, req, ...api, state };
  if (asking) ctx.req = req;
  else {
    freezeAll(req.body);
    freeze(req);
    res.headers = headersOf(res.headers, false).shown;
    ctx.res = res;
  }
  const console = {
    log: tell('info'), info: tell('info'), warn: tell('warn'), error: tell('error'), debug: tell('debug'),
  };
  const defined = { console, ...api };
  if (globalCtx) defined.ctx = ctx;
  for (const name of keys(defined)) {
    defineProperty(globalThis, name, { value: defined[name], writable: true, configurable: true });
  }
  return ctx;
}

/** Settles the promise of a fetch. */
export function answer(id, failure, answered) {
  const { resolve, reject } = waiting[id];
  delete waiting[id];
  if (failure !== undefined) return reject(new NativeTypeError(failure));
  const { status, headers, body } = parse(answered);
  resolve({
    status, ok: status >= 200 && status < 300, headers: headersOf(headers, true).shown, body,
    async text() { return body; },
    async json() { return parse(body); },
  });
}

/** A URL or a form as the text that it is; anything else as it is. */
function printed(value) {
  return web.isText(value) ? `${value}` : value;
}

/** What the hook left: state, and after onRequest url, method, headers, kind of body, body. */
export function finish() {
  const state = ctx.state === undefined || ctx.state === null ? undefined : json(ctx.state);
  if (!asking) return [state];
  const { req } = ctx;
  if (typeof req !== 'object' || req === null) throw new NativeTypeError('ctx.req must be an object');
  const { method, headers: left } = req;
  const [url, body] = [printed(req.url), printed(req.body)];
  if (typeof left !== 'object' || left === null || isArray(left)) {
    throw new NativeTypeError('ctx.req.headers must be an object');
  }
  const fields = left === asked.shown ? asked.headers : left;
  const names = keys(fields);
  if (names.length > HEADERS) throw new NativeRangeError(`ctx.req.headers has more than ${HEADERS} headers`);
  const headers = create(null);
  for (const name of names) {
    const value = fields[name];
    if (value !== undefined && value !== null) {
      headers[wellFormed(name)] = text(value, `ctx.req.headers[${stringify(cut(name, 0, 100))}]`);
    }
  }
  let kind = 'json', sent = '';
  if (body === undefined || body === null) kind = 'empty';
  else if (typeof body === 'string') [kind, sent] = ['text', wellFormed(body)];
  else {
    sent = json(body);
    if (sent === undefined) throw new NativeTypeError('ctx.req.body has no JSON');
  }
  return [state, text(url, 'ctx.req.url'), text(method, 'ctx.req.method'), stringify(headers), kind, sent, before];
}

/** A thrown value as text: what kind, what it says. Runs no code of the author's for values that are not errors. */
export function describe(value) {
  switch (typeof value) {
    case 'string': return wellFormed(cut(value, 0, LINE));
    case 'number': case 'boolean': case 'undefined': return `${value}`;
    case 'bigint': return 'a bigint';
    default: return value === null ? 'null' : `a value that is not an Error (${typeof value})`;
  }
}

export const text_of = (value) => wellFormed(NativeString(value));
