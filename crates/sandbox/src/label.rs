//! The label provider of the sandbox.

use actix_web::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Labels are idempotent: the same request gets the same label. A cancellation is accepted.
pub(crate) fn label(body: &[u8]) -> (StatusCode, Value) {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    if message.get("units").is_none() {
        return (StatusCode::OK, json!({"message": "received"}));
    }
    let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or("sample");
    let id = text("label_request_id").replace('-', "");
    let tracking_number = format!("SANDBOX-{}", id.to_uppercase());
    let lines = ["SANDBOX LABEL", "Not valid for shipping", &tracking_number, text("reference")];
    let label = json!({
        "tracking_number": tracking_number,
        "carrier": "Sandbox",
        "service": "Ground",
        "label": STANDARD.encode(pdf(&lines)),
        "cost_cents": 499,
        "currency": "USD",
    });
    (StatusCode::CREATED, label)
}

/// A page of 4 by 6 inches with these lines.
fn pdf(lines: &[&str]) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '/' | '.');
    let shown = |line: &&str| {
        let plain: String = line.chars().filter(is_plain).take(60).collect();
        format!("({plain}) Tj 0 -20 Td ")
    };
    let text: String = lines.iter().map(shown).collect();
    let content = format!("BT /F1 9 Tf 20 400 Td {text}ET");
    let stream = format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len());
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 288 432] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>",
        stream.as_str(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ];
    let mut pdf = "%PDF-1.4\n".to_owned();
    let mut places = "0000000000 65535 f \n".to_owned();
    for (number, object) in (1..).zip(objects) {
        let place = pdf.len();
        places.push_str(&format!("{place:010} 00000 n \n"));
        pdf.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let (size, start) = (objects.len() + 1, pdf.len());
    format!(
        "{pdf}xref\n0 {size}\n{places}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    )
}

#[cfg(test)]
mod tests {
    use domain::labels::BoughtLabel;

    use super::*;

    #[test]
    fn the_label_is_a_document_with_the_number_of_the_return() {
        let request = json!({
            "label_request_id": "01980a4c-7c1e", "reference": "RMA-1(\\", "units": [{}],
        });
        let (status, response) = label(request.to_string().as_bytes());
        assert_eq!(status, StatusCode::CREATED);
        let read = BoughtLabel::from_response(response.to_string().as_bytes()).unwrap();
        assert!(read.left_out.is_empty());
        let document = String::from_utf8(read.label.document().unwrap().bytes.clone()).unwrap();
        for part in ["(SANDBOX-01980A4C7C1E) Tj", "(RMA-1) Tj"] {
            assert!(document.contains(part), "{part} in {document}");
        }
        // The table has the place of each object.
        let places = document.split("65535 f \n").nth(1).unwrap().lines();
        for (number, line) in (1..=5).zip(places) {
            let place: usize = line.split(' ').next().unwrap().parse().unwrap();
            assert!(document[place..].starts_with(&format!("{number} 0 obj")), "{number}");
        }
        let start = document.split("startxref\n").nth(1).unwrap().lines().next().unwrap();
        assert!(document[start.parse().unwrap()..].starts_with("xref"), "{start}");
    }
}
