use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{BoughtLabel, LabelFormat, LabelRefusal, MAX_DOCUMENT_BYTES, RefusalReason};

fn label() -> Value {
    json!({ "tracking_number": "1Z9", "label": "https://carrier.example/labels/1.pdf?key=a" })
}

fn with(key: &str, value: Value) -> Value {
    let mut label = label();
    label[key] = value;
    label
}

fn read(response: &Value) -> Result<(BoughtLabel, Vec<String>), String> {
    let read = BoughtLabel::from_response(response.to_string().as_bytes());
    let read = read.map_err(|invalid| invalid.to_string())?;
    Ok((read.label, read.left_out.into_iter().map(|error| error.field).collect()))
}

#[test]
fn a_label_has_a_tracking_number_and_a_url() {
    let (bought, left_out) = read(&label()).unwrap();
    assert_eq!(bought.tracking_number, "1Z9");
    assert_eq!(bought.url(), Some("https://carrier.example/labels/1.pdf?key=a"));
    assert_eq!((bought.document(), &bought.qr_code), (None, &None));
    assert_eq!((bought.carrier, bought.cost_cents, bought.expires_at), (None, None, None));
    assert!(left_out.is_empty());
    let mut complete = label();
    complete["carrier"] = json!("UPS");
    complete["service"] = json!("Ground");
    complete["cost_cents"] = json!(499);
    complete["currency"] = json!("USD");
    complete["expires_at"] = json!("2026-12-24T00:00:00Z");
    complete["provider_reference"] = json!({ "id": 7 });
    let (bought, left_out) = read(&complete).unwrap();
    assert_eq!(
        (bought.carrier.as_deref(), bought.service.as_deref()),
        (Some("UPS"), Some("Ground"))
    );
    assert_eq!((bought.cost_cents, bought.currency.as_deref()), (Some(499), Some("USD")));
    assert_eq!(bought.expires_at, "2026-12-24T00:00:00Z".parse().ok());
    assert!(left_out.is_empty());
}

#[test]
fn a_label_is_bought_even_if_its_price_is_not_readable() {
    let mut response = with("carrier", json!(7));
    response["cost_cents"] = json!(499);
    response["currency"] = json!("dollars");
    response["expires_at"] = json!("soon");
    let (bought, left_out) = read(&response).unwrap();
    assert_eq!((bought.carrier, bought.cost_cents, bought.currency), (None, None, None));
    assert_eq!(left_out, ["$.carrier", "$.currency", "$.expires_at", "$.cost_cents"]);
}

#[test]
fn a_response_without_a_usable_label_says_why() {
    const NOT_HTTPS: &str = "$.label: invalid (must be an https URL without credentials)";
    for url in [
        "http://carrier.example/1.pdf",
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "ftp://carrier.example/1.pdf",
        "https://user:secret@carrier.example/1.pdf",
        "https://carrier.example/1 .pdf",
        "https:\\\\carrier.example\\1.pdf",
        "https://",
    ] {
        assert_eq!(read(&with("label", json!(url))).unwrap_err(), NOT_HTTPS, "{url}");
    }
    for (response, expected) in [
        (json!([]), "the response is not an object"),
        (
            json!({}),
            "$.tracking_number: missing_field; $.label: invalid (is needed, unless there is a qr_code)",
        ),
        (
            with("tracking_number", json!("")),
            "$.tracking_number: invalid (must have 1 to 255 characters)",
        ),
        (
            with("tracking_number", json!("1Z\u{202e}9")),
            "$.tracking_number: invalid (must not contain control or bidirectional characters)",
        ),
        (with("label", Value::Null), "$.label: invalid (is needed, unless there is a qr_code)"),
        (with("label", json!(7)), "$.label: invalid_type (expected a string, found an integer)"),
    ] {
        assert_eq!(read(&response).unwrap_err(), expected);
    }
    let long = with("label", json!(format!("https://carrier.example/{}", "x".repeat(2_100))));
    let too_long = "$.label: invalid (must be a URL of up to 2048 characters)";
    assert_eq!(read(&long).unwrap_err(), too_long);
    let page = BoughtLabel::from_response(b"<html>").unwrap_err().to_string();
    assert!(page.starts_with("the body is not JSON"), "{page}");
}

const PDF: &[u8] = b"%PDF-1.7\n1 0 obj";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0000IHDR";
const ZPL: &[u8] = b"\n^XA^FO50,50^FDAda Lovelace^FS^XZ\n";

fn document(bytes: &[u8]) -> Value {
    json!({ "tracking_number": "1Z9", "label": STANDARD.encode(bytes) })
}

#[test]
fn a_label_can_be_a_document() {
    let with_settings = &b"CT~~CD,~CC^~CT~\n^XA^PW812^XZ"[..];
    for (bytes, format, content_type) in [
        (PDF, LabelFormat::Pdf, "application/pdf"),
        (PNG, LabelFormat::Png, "image/png"),
        (ZPL, LabelFormat::Zpl, "application/octet-stream"),
        (with_settings, LabelFormat::Zpl, "application/octet-stream"),
    ] {
        let (bought, _) = read(&document(bytes)).unwrap();
        let read = bought.document().unwrap();
        assert_eq!((read.format, &*read.bytes, bought.url()), (format, bytes, None));
        assert_eq!(format.content_type(), content_type);
    }
    // MIME breaks lines.
    let broken = STANDARD.encode(PDF).as_bytes().chunks(4).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let broken = String::from_utf8(broken.join(&b"\r\n"[..])).unwrap();
    let (bought, _) = read(&with("label", json!(broken))).unwrap();
    assert_eq!(bought.document().unwrap().bytes, PDF);
    // Logs do not show the address.
    assert_eq!(format!("{:?}", bought.document().unwrap()), format!("pdf of {} bytes", PDF.len()));
    let largest = [PDF, &vec![b' '; MAX_DOCUMENT_BYTES - PDF.len()]].concat();
    assert!(read(&document(&largest)).is_ok());
    let too_large = "$.label: invalid (must be a document of up to 1 MiB)";
    assert_eq!(read(&document(&[&largest[..], b" "].concat())).unwrap_err(), too_large);
}

#[test]
fn a_document_that_is_no_label_says_why() {
    const MARKUP: &str =
        "$.label: invalid (must be a PDF, PNG or ZPL document, and is HTML or XML)";
    const UNKNOWN: &str = "$.label: invalid (must be a PDF, PNG or ZPL document)";
    const NO_BASE64: &str = "$.label: invalid (must be an https URL or a document in base64)";
    let documents: [(&[u8], &str); 8] = [
        (b"<!doctype html><script>alert(1)</script>", MARKUP),
        (b"\n <svg onload=alert(1)>", MARKUP),
        (b"GIF89a", UNKNOWN),
        (b" %PDF-1.7", UNKNOWN),
        (b"\x89PNG", UNKNOWN),
        (b"^XA", UNKNOWN),
        (b"<script>^XA^XZ", MARKUP),
        (b"^XA^XZ<script>", UNKNOWN),
    ];
    for (bytes, expected) in documents {
        assert_eq!(read(&document(bytes)).unwrap_err(), expected, "{bytes:?}");
    }
    for text in ["JVBERi0xLjc", "JVBER*0xLjcK", "carrier.example/1.pdf", "^XA^XZ", "%PDF-1.7"] {
        assert_eq!(read(&with("label", json!(text))).unwrap_err(), NO_BASE64, "{text}");
    }
}

#[test]
fn a_label_can_be_a_code() {
    let code = json!({ "tracking_number": "1Z9", "qr_code": "HRM|4711|1Z9" });
    let (bought, _) = read(&code).unwrap();
    assert_eq!((bought.qr_code.as_deref(), &bought.label), (Some("HRM|4711|1Z9"), &None));
    // A label that can be printed is bought even if its code is not readable.
    let (bought, left_out) = read(&with("qr_code", json!("\u{202e}"))).unwrap();
    assert_eq!((bought.qr_code, left_out), (None, vec!["$.qr_code".to_owned()]));
    let unreadable = json!({ "tracking_number": "1Z9", "qr_code": "x".repeat(1_001) });
    let too_long = "$.qr_code: invalid (must have 1 to 1000 characters)";
    assert_eq!(read(&unreadable).unwrap_err(), too_long);
}

fn refusal(response: &Value) -> Option<LabelRefusal> {
    LabelRefusal::from_response(response.to_string().as_bytes())
}

#[test]
fn a_refusal_has_a_reason() {
    for (response, reason, detail) in [
        (json!({ "reason": "too_heavy" }), RefusalReason::TooHeavy, None),
        (
            json!({ "reason": "not_served", "detail": "no pick-up in 99950" }),
            RefusalReason::NotServed,
            Some("no pick-up in 99950"),
        ),
        (
            json!({ "reason": "invalid_address", "message": "no such street" }),
            RefusalReason::InvalidAddress,
            Some("no such street"),
        ),
        (json!({ "reason": "on_strike" }), RefusalReason::Other, Some("on_strike")),
        (
            json!({ "reason": "on_strike", "detail": "until\nMonday" }),
            RefusalReason::Other,
            Some("on_strike: until\u{fffd}Monday"),
        ),
    ] {
        let read = refusal(&response).unwrap();
        assert_eq!((read.reason, read.detail.as_deref()), (reason, detail), "{response}");
    }
    for response in [json!({}), json!({ "reason": 7 }), json!({ "message": "invalid" }), json!([])]
    {
        assert_eq!(refusal(&response), None, "{response}");
    }
    assert_eq!(LabelRefusal::from_response(b"<html>"), None);
    let long = refusal(&json!({ "reason": "other", "detail": "x".repeat(5_000) })).unwrap();
    assert_eq!(long.detail.map(|detail| detail.len()), Some(1_000));
}
