//! Prints signed messages, one JSON object per line, for `tests/webhook_signatures.py` and `.mjs`,
//! which verify them with the public Standard Webhooks libraries.

use anyhow::Result;
use platform::Clock;
use platform::signing::{Secret, sign};
use serde_json::json;

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_q7mM0sYJm0cT3RzX8oO8Yk9w0m1iJm6C";
const BODIES: [&str; 4] =
    ["{}", "{\"total\":1.50}", "{\"titel\":\"Grüße, 返品\"}", "{ \"a\" : [ ] }\n"];

#[expect(clippy::print_stdout, reason = "the messages are the output")]
fn main() -> Result<()> {
    let now = Clock::system().now();
    for signers in [&[OLD][..], &[NEW, OLD]] {
        let secrets =
            signers.iter().map(|text| Secret::parse(text)).collect::<Result<Vec<_>, _>>()?;
        for body in BODIES {
            let id = uuid::Uuid::now_v7().to_string();
            let headers = json!({
                "webhook-id": id,
                "webhook-timestamp": now.timestamp().to_string(),
                "webhook-signature": sign(&secrets, &id, now, body.as_bytes()),
            });
            println!("{}", json!({"secrets": signers, "headers": headers, "body": body}));
        }
    }
    Ok(())
}
