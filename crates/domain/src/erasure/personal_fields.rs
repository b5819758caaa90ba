//! The one list of a shopper's data.
//!
//! Erasures replace these fields, and `backhaul shopper export` names those that it found. The test of the whole
//! system plants a marker in them: it reads the list from `proto-schemas/personal-fields.txt`, which is generated.

use serde_json::Value;

use crate::order::CUSTOMER_ALIAS;

/// Objects about a person. All their texts are personal.
pub(super) const PEOPLE: [&str; 6] =
    ["customer", CUSTOMER_ALIAS, "shipping_address", "billing_address", "address", "withdrawal"];
pub(super) const EMAILS: [&str; 3] = ["email", "giftee_email", "customer_email"];
/// Texts about a person in any document.
pub(super) const TEXTS: [&str; 15] = [
    "comment",
    "comments",
    "first_name",
    "gift_message",
    "last_name",
    "note",
    "phone",
    "reject_reason",
    "street",
    "street1",
    "street2",
    "telephone_number",
    "zip",
    "zip_code",
    "label_url",
];

/// A kind of document in which more texts are personal than [`TEXTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentKind {
    /// Orders, returns, exchange orders, discrepancies, and the messages and events about them.
    Common,
    /// Entries of timelines, where people also write reasons and details.
    History,
    /// Inbound ASNs, shipments and receipts, where people also write the reason of a return. In a return, the
    /// reason is one of the merchant's codes.
    Report,
    /// Mails to shoppers.
    Mail,
}

impl DocumentKind {
    pub(super) fn more_texts(self) -> &'static [&'static str] {
        match self {
            Self::Common => &[],
            Self::History => &["detail", "reason"],
            Self::Report => &["return_reason"],
            Self::Mail => &["html", "subject", "text"],
        }
    }

    pub(super) fn more_emails(self) -> &'static [&'static str] {
        match self {
            Self::Common | Self::History | Self::Report => &[],
            Self::Mail => &["to"],
        }
    }
}

/// Columns with a shopper's data outside documents, as `<service>.<table>.<column>`. Each service that sends
/// messages has the tables of `delivery`. A failed look-up has a digest of what the shopper wrote, and the network.
pub const PERSONAL_COLUMNS: [&str; 9] = [
    "order-intake.orders.customer_email",
    "rma-engine.returns.customer_email",
    "rma-engine.returns.other_email_sha256",
    "rma-engine.discrepancies.resolution_note",
    "rma-engine.lookup_failures.order_digest",
    "rma-engine.lookup_failures.address",
    "exchange.exchange_orders.abandon_note",
    "delivery.delivery_attempts.response_body",
    "delivery.delivery_attempts.response_headers",
];

/// The list as text, one field in each line.
pub fn personal_fields() -> String {
    let heading =
        "# A shopper's data. Generated from the crate domain; erasures replace these fields.";
    let of = |kind: &'static str, names: &'static [&'static str]| {
        names.iter().map(move |name| format!("{kind}: {name}"))
    };
    let lines = of("person", &PEOPLE)
        .chain(of("email", &EMAILS))
        .chain(of("text", &TEXTS))
        .chain(of("text in a timeline", DocumentKind::History.more_texts()))
        .chain(of("text in a report", DocumentKind::Report.more_texts()))
        .chain(of("email in a mail", DocumentKind::Mail.more_emails()))
        .chain(of("text in a mail", DocumentKind::Mail.more_texts()))
        .chain(of("column", &PERSONAL_COLUMNS));
    let mut list = heading.to_owned();
    for line in lines {
        list.push('\n');
        list.push_str(&line);
    }
    list + "\n"
}

/// The personal values of a document, each with its JSON pointer: those that `erase` would replace.
pub fn personal_values(document: &Value, erase: impl Fn(&mut Value)) -> Vec<(String, Value)> {
    let mut erased = document.clone();
    erase(&mut erased);
    let mut found = Vec::new();
    add_differences(document, &erased, "", &mut found);
    found
}

fn add_differences(before: &Value, after: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match before {
        _ if before == after => {}
        Value::Object(members) => {
            for (key, member) in members {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                add_differences(member, after.get(key).unwrap_or(&Value::Null), &path, found);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                let after = after.get(index).unwrap_or(&Value::Null);
                add_differences(element, after, &format!("{path}/{index}"), found);
            }
        }
        leaf => found.push((path.to_owned(), leaf.clone())),
    }
}
