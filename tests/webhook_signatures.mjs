// Verifies our signatures with the public Standard Webhooks library for Node. Reads messages from standard
// input, one JSON object per line. The first argument is the folder with node_modules.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Webhook } = createRequire(`${process.argv[2]}/`)("standardwebhooks");
const OTHER_SECRET = "whsec_c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vy";

function verifies(secret, message, body = message.body) {
  try {
    new Webhook(secret).verify(body, message.headers);
    return true;
  } catch {
    return false;
  }
}

let passed = 0;
let failed = 0;
function check(name, holds) {
  if (holds) passed += 1;
  else {
    failed += 1;
    console.log(`FAILED: ${name}`);
  }
}

const messages = readFileSync(0, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
for (const message of messages) {
  for (const secret of message.secrets) {
    check(`${secret.slice(0, 10)} verifies ${message.body}`, verifies(secret, message));
  }
  check("another secret is rejected", !verifies(OTHER_SECRET, message));
  check("a changed body is rejected", !verifies(message.secrets[0], message, '{"changed":true}'));
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed || !messages.length ? 1 : 0);
