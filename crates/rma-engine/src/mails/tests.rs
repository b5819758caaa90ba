use domain::merchant::{Language, Settings};
use serde_json::{Value, json};

use super::*;

const PORTAL: &str = "https://portal.example";
/// A line of a mail, as its text, with the marks that programs for mail and terminals give a meaning.
const HOSTILE: &str =
    "</p><script>alert(1)</script>\r\nBcc: evil@evil.example\n.\n\u{202e}gpj.exe\u{7} \"'&";

fn merchant(adjust: impl FnOnce(&mut Settings)) -> Merchant {
    let mut settings = Settings::new("Acme");
    settings.mails.reply_to = Some("returns@acme.example".to_owned());
    settings.appearance.languages = vec![Language::De, Language::En];
    settings.time_zone = "Europe/Berlin".to_owned();
    adjust(&mut settings);
    Merchant::new("acme".parse().unwrap(), settings)
}

fn unit(number: usize, changes: &Value) -> Value {
    let mut unit = json!({
        "order_identifier": "S-1001", "order_line_item_identifier": "L1", "unit": number, "sku": "TEE",
        "title": "Tee, L", "return_reason": "TOO_SMALL", "resolution": "refund",
        "refund_type": "REFUND", "receiving_status": "PENDING", "is_damaged": false,
        "amounts": { "product_amount_cents": 2000, "discount_amount_cents": 0, "tax_amount_cents": 165 },
    });
    let members = unit.as_object_mut().unwrap();
    members.extend(changes.as_object().unwrap().clone());
    unit
}

/// A return with changes of the return and its units.
fn rma(changes: &Value, units: &[Value]) -> Rma {
    let units: Vec<_> = (1..).zip(units).map(|(number, changes)| unit(number, changes)).collect();
    let mut rma = json!({
        "merchant": "acme", "rma_identifier": "RMA-1", "status": "CREATED",
        "created_at": "2026-11-16T09:30:00Z", "updated_at": "2026-11-16T09:30:00Z",
        "return_method": "mail-back", "return_shipping_cost_cents": 500, "currency": "EUR",
        "language": "en", "managed_receiving": true, "units": units,
    });
    rma.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(rma).unwrap()
}

fn written(merchant: &Merchant, rma: &Rma, event: MailEvent) -> Mail {
    let occasion = MailOccasion { event, units: rma.units.iter().collect() };
    NewMail::write(PORTAL, merchant, rma, &occasion).unwrap().mail
}

#[test]
fn a_confirmation_says_how_to_send_the_items_back_and_until_when() {
    let variant = json!({ "resolution": "exchange", "refund_type": "EVEN_EXCHANGE",
                          "variant": { "sku": "TEE-M", "title": "Tee, M" } });
    let rma = rma(&json!({}), &[json!({}), json!({}), variant]);
    let mail = written(&merchant(|_| {}), &rma, MailEvent::Confirmed);
    assert_eq!(mail.subject, "Your return RMA-1 is confirmed");
    assert_eq!(mail.from_name.as_deref(), Some("Acme"));
    assert_eq!(mail.reply_to.as_deref(), Some("returns@acme.example"));
    for part in [
        "Acme knows about your return.",
        "1. Pack the items",
        "Please drop it off by 16 December 2026.",
        "https://portal.example/acme/returns/RMA-1?lang=en",
        "Return number: RMA-1\n",
        "Order number: S-1001\n",
        "- 2 × Tee, L\n  Refund of €43.30\n",
        "- Tee, L\n  Exchange for Tee, M\n",
        "Return shipping: -€5.00\n",
        "\n-- \nYou can reply to this mail.\n",
    ] {
        assert!(mail.text.contains(part), "{part} in {}", mail.text);
    }
    for part in
        ["2 × Tee, L</strong><br>Refund of €43.30", ">Show the return</a>", "RMA-1</strong>"]
    {
        assert!(mail.html.contains(part), "{part} in {}", mail.html);
    }
}

#[test]
fn every_event_has_a_mail_in_every_language() {
    let exchanged = json!({ "exchange_order_identifier": "X-1" });
    for language in Language::ALL {
        let merchant = merchant(|it| it.appearance.languages = vec![*language]);
        for event in MailEvent::ALL {
            let rma = rma(&json!({ "language": null }), &[exchanged.clone()]);
            let mail = written(&merchant, &rma, *event);
            let all = format!("{}\n{}", mail.subject, mail.text);
            assert!(all.contains("RMA-1") && all.contains("Acme"), "{all}");
            // A text that is missing is its id.
            for id in ["mailed-", "return-", "item-", "withdrawn-"] {
                assert!(!all.contains(id), "{id} in {all}");
            }
            let lang = format!("<html lang=\"{language}\">");
            assert!(mail.html.contains(&lang) && mail.html.contains("Tee, L"), "{}", mail.html);
        }
    }
}

#[test]
fn the_language_is_the_shoppers_if_the_portal_has_it() {
    let subject = |language: &str| {
        let rma = rma(&json!({ "language": language }), &[json!({})]);
        written(&merchant(|_| {}), &rma, MailEvent::Received).subject
    };
    assert_eq!(subject("en"), "Your return RMA-1 has arrived");
    assert_eq!(subject("fr"), "Ihre Rückgabe RMA-1 ist angekommen");
}

#[test]
fn a_giftee_sees_no_amounts() {
    let gift = rma(&json!({ "giftee_email": "g@b.example" }), &[json!({})]);
    for event in MailEvent::ALL.iter().filter(|it| **it != MailEvent::Withdrawal) {
        let mail = written(&merchant(|_| {}), &gift, *event);
        assert!(!mail.text.contains('€') && !mail.html.contains('€'), "{}", mail.text);
    }
}

#[test]
fn a_withdrawal_is_acknowledged_with_its_content_and_time() {
    let person = json!({ "name": "Mia Moreau", "email": "mia@shopper.example" });
    let rma = rma(&json!({ "withdrawal": person }), &[json!({}), json!({ "title": "Hat" })]);
    let mail = written(&merchant(|_| {}), &rma, MailEvent::Withdrawal);
    for part in [
        "We received your withdrawal on 16 November 2026 at 10:30:00 (UTC+01:00).",
        "Shop: Acme\n",
        "Name: Mia Moreau\n",
        "E-mail address: mia@shopper.example\n",
        "Order number: S-1001\n",
        "Return method: By parcel\n",
        "Cost of sending the items back: €5.00\n",
        "- Tee, L\n",
        "- Hat\n",
        "https://portal.example/acme/returns/RMA-1/withdrawal?lang=en",
    ] {
        assert!(mail.text.contains(part), "{part} in {}", mail.text);
    }
}

#[test]
fn a_decline_has_the_reason_of_the_merchant_or_of_its_rule() {
    let merchant = merchant(|settings| {
        settings.policy.rules = serde_json::from_value(json!([
            { "id": "often", "text": { "en": "You return often." }, "then": {} },
        ]))
        .unwrap();
    });
    let declined = |note: Value| {
        let decided = json!({ "decision": "decline", "at": "2026-11-17T09:30:00Z", "note": note });
        let review = json!({ "rule": "often", "within_days": 3, "due_at": "2026-11-19T23:00:00Z",
                             "then": "decline", "decided": decided });
        let rma = rma(&json!({ "status": "DECLINED", "review": review }), &[json!({})]);
        written(&merchant, &rma, MailEvent::Declined).text
    };
    let text = declined(json!("Worn\nitems"));
    assert!(text.contains("The shop says: Worn items\n"), "{text}");
    let text = declined(Value::Null);
    assert!(text.contains("The shop says: You return often.\n"), "{text}");
}

#[test]
fn a_merchant_has_its_own_words() {
    let own = |language: Language, event| {
        let merchant = merchant(|settings| {
            let text =
                json!({ "subject": "{shop}: {rma}", "opening": "Hi!\n\n<b>{rma}</b> & you" });
            let texts = json!({ "en": { "received": text, "withdrawal": text } });
            settings.mails.texts = serde_json::from_value(texts).unwrap();
        });
        written(&merchant, &rma(&json!({ "language": language }), &[json!({})]), event)
    };
    let mail = own(Language::En, MailEvent::Received);
    assert_eq!(mail.subject, "Acme: RMA-1");
    assert!(mail.text.starts_with("Hi!\n\n<b>RMA-1</b> & you\n"), "{}", mail.text);
    assert!(!mail.text.contains("has received these items"), "{}", mail.text);
    assert!(mail.html.contains("<p style=\"margin:0 0 16px\">&#60;b&#62;RMA-1"), "{}", mail.html);
    // In another language and about another event, the words are ours.
    assert_eq!(
        own(Language::De, MailEvent::Received).subject,
        "Ihre Rückgabe RMA-1 ist angekommen"
    );
    assert!(own(Language::En, MailEvent::Refunded).text.contains("Acme has refunded"));
    // The content of a statement and its time cannot be replaced.
    let text = own(Language::En, MailEvent::Withdrawal).text;
    assert!(text.starts_with("Hi!\n") && text.contains("We received your withdrawal on"), "{text}");
    assert!(text.contains("You withdraw from the contract"), "{text}");
}

#[test]
fn hostile_values_are_texts() {
    let changes = json!({
        "withdrawal": { "name": HOSTILE, "email": "a@b.example" },
        "return_to": { "warehouse": "reno", "rule": "outlet", "address_lines": [HOSTILE] },
        "review": {
            "rule": "often", "within_days": 3, "due_at": "2026-11-19T23:00:00Z", "then": "decline",
            "decided": { "decision": "decline", "at": "2026-11-17T09:30:00Z", "note": HOSTILE },
        },
    });
    let title = format!("{HOSTILE}{}", "x".repeat(5_000));
    let unit = json!({
        "order_identifier": HOSTILE, "title": title, "exchange_order_identifier": HOSTILE,
        "resolution": "exchange", "variant": { "sku": "V", "title": title },
        "refund_type": "EVEN_EXCHANGE",
    });
    let rma = rma(&changes, &[unit]);
    let merchant = merchant(|settings| settings.name = HOSTILE.to_owned());
    for event in MailEvent::ALL {
        let mail = written(&merchant, &rma, *event);
        let lines: Vec<_> = mail.text.lines().map(str::trim).collect();
        assert!(!lines.contains(&".") && !mail.text.contains('\r'), "{}", mail.text);
        assert!(lines.iter().all(|line| !line.starts_with("Bcc:")), "{}", mail.text);
        assert!(mail.text.chars().all(|c| c == '\n' || domain::printable::is_printable(c)));
        assert!(!mail.subject.contains(['\r', '\n', '\u{202e}']), "{}", mail.subject);
        assert!(!mail.html.contains("<script") && !mail.html.contains('\u{202e}'), "{}", mail.html);
        // The quotation mark could end an attribute.
        assert!(!mail.html.contains("\"'&"), "{}", mail.html);
        assert!(mail.text.len() < 10_000, "{}", mail.text.len());
    }
}

#[test]
fn a_mail_looks_like_the_portal() {
    let rma = rma(&json!({}), &[json!({})]);
    let html =
        |adjust: fn(&mut Settings)| written(&merchant(adjust), &rma, MailEvent::Confirmed).html;
    let dark = "prefers-color-scheme: dark";
    let plain = html(|_| {});
    assert!(
        plain.contains(dark) && plain.contains("#1f2937") && !plain.contains("<img"),
        "{plain}"
    );
    let own = html(|settings| {
        settings.appearance.name = Some("Acme & Co".to_owned());
        settings.appearance.logo_url = Some("https://cdn.acme.example/logo.png?a=1&b=2".to_owned());
        settings.appearance.colors.primary = "#0b6e4f".parse().unwrap();
        settings.appearance.colors.background = "#fffdf7".parse().unwrap();
        settings.appearance.contact_url = Some("https://acme.example/contact".to_owned());
    });
    assert!(
        own.contains(
            r#"<img src="https://cdn.acme.example/logo.png?a=1&#38;b=2" alt="Acme &#38; Co""#
        ),
        "{own}"
    );
    assert!(own.contains("background-color:#0b6e4f") && !own.contains(dark), "{own}");
    assert!(own.contains(r#"href="https://acme.example/contact""#), "{own}");
    // Nothing but the logo is loaded.
    assert_eq!((own.matches("src=").count(), own.matches("url(").count()), (1, 0), "{own}");
}

#[test]
fn a_large_return_has_a_short_mail() {
    let units: Vec<_> =
        (1..=200).map(|number| json!({ "title": format!("Tee {number}") })).collect();
    let mail = written(&merchant(|_| {}), &rma(&json!({}), &units), MailEvent::Confirmed);
    assert!(mail.text.contains("- Tee 50\n") && !mail.text.contains("- Tee 51\n"), "{}", mail.text);
    assert!(mail.text.contains("- and 150 more items\n"), "{}", mail.text);
}

#[test]
fn a_shopper_without_an_address_gets_no_mail() {
    let rma = rma(&json!({}), &[json!({})]);
    let occasion = MailOccasion { event: MailEvent::Confirmed, units: rma.units.iter().collect() };
    for (to, is_sent) in [
        (Some("ada@shopper.example"), true),
        (Some("erased@invalid"), false),
        (Some("ada"), false),
        (None, false),
    ] {
        let mut mail = NewMail::write(PORTAL, &merchant(|_| {}), &rma, &occasion).unwrap();
        mail.to = to.map(str::to_owned);
        let delivery = mail.delivery(Uuid::nil()).unwrap();
        assert_eq!(delivery.is_some(), is_sent, "{to:?}");
        if let Some(NewDelivery { message, .. }) = delivery {
            assert_eq!(message.ordering_key.as_deref(), Some("mail:rma:RMA-1"));
            let mail: Mail = serde_json::from_slice(&message.body).unwrap();
            assert_eq!(mail.to, "ada@shopper.example");
        }
    }
}
