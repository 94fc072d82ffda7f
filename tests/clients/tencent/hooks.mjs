// Resolves the host program that Tencent's modules expect to be plugged into: only what the modules used here import.

const host = new URL("./host.mjs", import.meta.url).href;

export async function resolve(specifier, context, next) {
  return specifier.startsWith("openclaw/plugin-sdk/") ? { url: host, shortCircuit: true } : next(specifier, context);
}
