// Serves what the story in aimock.rs asks for, with @copilotkit/aimock from $CLIENT_MODULES. The first line it
// prints names its address; it ends with its stdin.

const { LLMock } = await import(`file://${process.env.CLIENT_MODULES}/dist/index.js`);

const mock = new LLMock({
  port: 0,
  host: "127.0.0.1",
  chunkSize: 3,
  logLevel: "silent",
  auth: { apiKeys: ["sk-of-the-story"] },
});
const cameBefore = (request) => request.messages.some((message) => message.role === "assistant");

mock.on({ userMessage: "Good morning", systemMessage: "You sell shoes." }, {
  content: "**Good** morning! 早上好 🙂",
  reasoning: "Somebody greets me.",
  usage: { prompt_tokens: 11, completion_tokens: 7 },
});
mock.on({ userMessage: "And again", predicate: cameBefore }, { content: "I know you already." });
mock.on({ userMessage: "busy", sequenceIndex: 0 }, { error: { message: "slow down" }, status: 429, retryAfter: 1 });
mock.on({ userMessage: "busy" }, { content: "Now I have time." });
mock.on({ userMessage: "broken", sequenceIndex: 0 }, { error: { message: "out of order" }, status: 503 });
mock.on({ userMessage: "broken", sequenceIndex: 1 }, { content: "This breaks off before it is whole." }, {
  truncateAfterChunks: 3,
});
mock.on({ userMessage: "broken" }, { content: "Repaired." });
mock.on({ userMessage: "order 42", hasToolResult: false }, {
  toolCalls: [{ name: "find_order", arguments: '{"id":42}' }],
});
mock.on({ userMessage: "order 42", toolResultContains: "left the harbour" }, { content: "Your order is at sea." });

await mock.start();
console.log(JSON.stringify({ event: "listening", url: mock.url }));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
