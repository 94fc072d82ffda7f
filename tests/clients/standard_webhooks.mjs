// Verifies deliveries with the npm library of Standard Webhooks: one JSON object per line in, "verified" or the reason
// of the refusal out.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const { Webhook } = createRequire(`${process.env.CLIENT_MODULES}/`)('standardwebhooks');

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line);
  try {
    new Webhook(secret).verify(body, headers);
    console.log('verified');
  } catch (error) {
    console.log(error.message);
  }
}
