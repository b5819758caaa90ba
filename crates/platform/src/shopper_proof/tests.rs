//! Proofs, deep links and gift codes open only where and while they should.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::SeqCst},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::DateTime;
use serde_json::json;

use super::*;

fn settings(keys: &[(&str, u8)]) -> Settings {
    let key = |(id, byte): &(&str, u8)| {
        SecretString::from(format!("{id}:{}", STANDARD.encode([*byte; 32])))
    };
    Settings { proof_keys: List(keys.iter().map(key).collect()) }
}

fn keys(configured: &[(&str, u8)]) -> ProofKeys {
    ProofKeys::new(&settings(configured), Clock::from_fn(|| DateTime::UNIX_EPOCH)).unwrap()
}

fn merchant(name: &str) -> MerchantId {
    name.parse().unwrap()
}

#[test]
fn a_proof_opens_for_its_merchant_until_it_expires() {
    let seconds = Arc::new(AtomicI64::new(0));
    let now = seconds.clone();
    let clock = Clock::from_fn(move || DateTime::from_timestamp(now.load(SeqCst), 0).unwrap());
    let keys = ProofKeys::new(&settings(&[("k1", 1)]), clock).unwrap();
    let (proof, expires_at) = keys.issue(&merchant("acme"), "A-1", true).unwrap();
    let order = ProvenOrder { order_identifier: "A-1".to_owned(), is_gift: true, expires_at };
    assert!(!proof.contains("A-1"));
    assert_eq!(keys.open(&merchant("acme"), &proof), Ok(order));
    assert_eq!(keys.open(&merchant("rival"), &proof), Err(ProofError::Required));
    assert_eq!(keys.open(&merchant("acme"), &format!("{proof}A")), Err(ProofError::Required));
    assert_eq!(keys.open(&merchant("acme"), ""), Err(ProofError::Required));
    seconds.store(30 * 60 - 1, SeqCst);
    assert!(keys.open(&merchant("acme"), &proof).is_ok());
    seconds.store(30 * 60, SeqCst);
    assert_eq!(keys.open(&merchant("acme"), &proof), Err(ProofError::Expired));
}

#[test]
fn a_deep_link_is_no_proof() {
    let keys = keys(&[("k1", 1)]);
    let acme = merchant("acme");
    let (proof, expires_at) = keys.issue(&acme, "A-1", false).unwrap();
    let order = ProvenOrder { order_identifier: "A-1".to_owned(), is_gift: false, expires_at };
    let linked = LinkedOrder { id: Uuid::nil(), order: order.clone() };
    let link = keys.deep_link(&acme, &linked).unwrap();
    assert_eq!(keys.open_deep_link(&acme, &link), Some(linked.clone()));
    assert_eq!(keys.open_deep_link(&merchant("rival"), &link), None);
    assert_eq!(keys.open_deep_link(&acme, &proof), None);
    assert_eq!(keys.open(&acme, &link), Err(ProofError::Required));
    let expired = ProvenOrder { expires_at: DateTime::UNIX_EPOCH, ..order };
    let expired = keys.deep_link(&acme, &LinkedOrder { order: expired, ..linked }).unwrap();
    assert_eq!(keys.open_deep_link(&acme, &expired), None);
}

#[test]
fn a_gift_code_belongs_to_one_order_and_survives_a_rotation() {
    let old = keys(&[("k1", 1)]);
    let acme = merchant("acme");
    let code = old.gift_code(&acme, "A-1").unwrap();
    assert_eq!(code.len(), 14);
    assert!(code.bytes().all(|letter| letter == b'-' || LETTERS.contains(&letter)), "{code}");
    for written in [code.clone(), code.replace('-', ""), code.to_lowercase(), format!(" {code} ")] {
        assert!(old.is_gift_code(&acme, "A-1", &written), "{written}");
    }
    let rotated = keys(&[("k2", 2), ("k1", 1)]);
    assert!(rotated.is_gift_code(&acme, "A-1", &code));
    assert_ne!(rotated.gift_code(&acme, "A-1").unwrap(), code);
    assert!(!old.is_gift_code(&acme, "A-2", &code));
    assert!(!old.is_gift_code(&merchant("rival"), "A-1", &code));
    assert!(!old.is_gift_code(&acme, "A-1", ""));
    assert!(!keys(&[("k2", 2)]).is_gift_code(&acme, "A-1", &code));
}

#[test]
fn bad_keys_are_rejected() {
    for bad in ["", "k1", "k1:AAAA"] {
        let read = serde_json::from_value::<Settings>(json!({ "proof_keys": bad }));
        assert!(read.is_err(), "{bad}");
    }
}

#[test]
fn amounts_are_removed_at_every_depth() {
    let mut value = json!({
        "title": "Tee", "price_cents": 1, "amounts": { "tax_amount_cents": 1 }, "empty": {},
        "units": [{ "unit": 1, "refund_financials": { "a_cents": 1, "b_cents": null } }],
    });
    remove_amounts(&mut value);
    assert_eq!(value, json!({ "title": "Tee", "empty": {}, "units": [{ "unit": 1 }] }));
}
