//! An audit record as one sentence.

use serde_json::Value;

use super::AuditRecord;

/// The record in words. An action that this page does not know is shown as it is.
pub(super) fn of(record: &AuditRecord) -> String {
    let actor = record.actor_name.as_deref().unwrap_or_else(|| actor(&record.actor));
    let subject = record.subject.split_once('/').map_or("", |(_, id)| id);
    let group = record.action.split_once('.').map_or("", |(group, _)| group);
    let what = match group {
        "merchant" | "merchants" => merchant(record, subject),
        "endpoint" => endpoint(record),
        "client" => client(record, subject),
        "person" => person(record, subject),
        "session" | "password" | "recovery_codes" | "totp" => account(record, subject),
        "token" | "signing_key" => key(record, subject),
        _ => None,
    };
    match what {
        Some(what) => format!("{actor} {what}."),
        None => format!("{actor}: {} {}.", record.action, record.subject),
    }
}

/// The author of a change. Some changes have no person or client as author.
fn actor(name: &str) -> &str {
    match name {
        "bootstrap" => "Auth",
        "key_rotation" => "The key rotation",
        "oidc" => "The identity provider",
        "sign_in" => "A sign-in",
        name => name,
    }
}

fn text<'a>(record: &'a AuditRecord, key: &str) -> Option<&'a str> {
    record.detail.get(key).and_then(Value::as_str)
}

/// " of acme", if the record concerns a merchant.
fn of_merchant(record: &AuditRecord) -> String {
    record.merchant.as_ref().map(|merchant| format!(" of {merchant}")).unwrap_or_default()
}

fn merchant(record: &AuditRecord, subject: &str) -> Option<String> {
    Some(match record.action.as_str() {
        "merchant.created" => format!("created the merchant {subject}"),
        "merchant.updated" => {
            let names = record.detail.as_object().map(|fields| {
                fields.keys().map(|name| name.replace('_', " ")).collect::<Vec<_>>().join(", ")
            });
            match names.filter(|names| !names.is_empty()) {
                Some(names) => format!("changed settings of {subject}: {names}"),
                None => format!("changed settings of {subject}"),
            }
        }
        "merchants.republished" => "published all merchants again".to_owned(),
        _ => return None,
    })
}

fn endpoint(record: &AuditRecord) -> Option<String> {
    let interface = text(record, "interface")?;
    let endpoint = format!("the endpoint {interface}{}", of_merchant(record));
    Some(match record.action.as_str() {
        "endpoint.set" => match text(record, "url") {
            Some(url) => format!("set {endpoint} to {url}"),
            None => format!("set {endpoint}"),
        },
        "endpoint.deleted" => format!("deleted {endpoint}"),
        "endpoint.paused" => format!("paused {endpoint}"),
        "endpoint.resumed" => format!("resumed {endpoint}"),
        "endpoint.secret_rotated" => format!("rotated the signing secret of {endpoint}"),
        _ => return None,
    })
}

fn client(record: &AuditRecord, id: &str) -> Option<String> {
    let of_merchant = of_merchant(record);
    Some(match record.action.as_str() {
        "client.created" => {
            let name = text(record, "name").unwrap_or(id);
            let scopes = text(record, "scopes").unwrap_or("none");
            format!("created the client {name}{of_merchant} with the scopes {scopes}")
        }
        "client.secret_rotated" => format!("rotated the secret of client {id}{of_merchant}"),
        "client.secret_set" => format!("set the secret of client {id} from the configuration"),
        "client.revoked" => format!("revoked the client {id}{of_merchant}"),
        _ => return None,
    })
}

fn person(record: &AuditRecord, email: &str) -> Option<String> {
    let role = text(record, "role").map(|role| format!(" as {}", role.replace('-', " ")));
    let role = role.unwrap_or_default() + &of_merchant(record);
    Some(match record.action.as_str() {
        "person.invited" => format!("invited {email}{role}"),
        "person.created" => format!("created {email}{role}"),
        "person.invitation_refused" => {
            format!("tried to invite {email}{role}, which was refused")
        }
        "person.invitation_renewed" => format!("made a new invitation link for {email}"),
        "person.accepted" => "accepted the invitation".to_owned(),
        "person.linked" => {
            format!("signed {email} in for the first time, so an earlier password ended")
        }
        "person.updated"
            if record.detail.get("credentials_cleared").is_some_and(|it| *it == true) =>
        {
            format!("changed {email}, now{role}, who sets a new password")
        }
        "person.updated" => format!("changed {email}, now{role}"),
        "person.disabled" => format!("disabled {email}"),
        "person.enabled" => format!("enabled {email}"),
        _ => return None,
    })
}

fn account(record: &AuditRecord, subject: &str) -> Option<String> {
    let other = text(record, "person").filter(|person| *person != record.actor);
    Some(match (record.action.as_str(), other) {
        ("session.started", _) => match text(record, "address") {
            Some(address) => format!("signed in from {address}"),
            None => "signed in".to_owned(),
        },
        ("session.refused", _) => {
            let address = text(record, "address").unwrap_or("an unknown address");
            format!("as {subject} from {address} was refused: {}", refusal(record))
        }
        ("session.ended", Some(person)) => format!("ended a session of {person}"),
        ("session.ended", None) => "ended a session".to_owned(),
        ("password.changed", _) => "changed the own password".to_owned(),
        ("password.refused", _) => {
            let address = text(record, "address").unwrap_or("an unknown address");
            format!("could not change the own credentials from {address}: {}", refusal(record))
        }
        ("totp.changed", _) => "changed the own authenticator app".to_owned(),
        ("recovery_codes.replaced", _) => "made new recovery codes".to_owned(),
        _ => return None,
    })
}

/// The reason why a sign-in or a change of credentials was refused.
fn refusal(record: &AuditRecord) -> &str {
    match text(record, "reason").unwrap_or_default() {
        "password" => "the password was wrong",
        "code" => "the password was right, the code was wrong or missing",
        "too_many_codes" => "there were too many codes in a minute",
        "new_invitation_needed" => {
            "there were 100 wrong codes in a row, so the person needs a new invitation link"
        }
        "state" => "the person is not active",
        other => other,
    }
}

fn key(record: &AuditRecord, id: &str) -> Option<String> {
    Some(match record.action.as_str() {
        "token.revoked" => match text(record, "client_id") {
            Some(client) => format!("revoked a token of {client}"),
            None => "revoked a token".to_owned(),
        },
        "signing_key.created" => format!("created the signing key {id}"),
        "signing_key.deleted" => format!("deleted the expired signing key {id}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(action: &str, subject: &str, detail: &Value, expected: &str) {
        let merchant = (!subject.starts_with("signing")).then_some("acme");
        let record: AuditRecord = serde_json::from_value(json!({
            "id": 1, "created_at": "2026-11-16T08:00:00Z", "actor": "ada@example.com",
            "action": action, "subject": subject, "merchant": merchant, "detail": detail,
        }))
        .unwrap();
        assert_eq!(of(&record), format!("ada@example.com {expected}"));
    }

    #[test]
    fn records_are_sentences() {
        let rma = json!({ "interface": "rma", "url": "https://acme.example/rmas" });
        check(
            "endpoint.set",
            "merchant/acme",
            &rma,
            "set the endpoint rma of acme to https://acme.example/rmas.",
        );
        check("endpoint.paused", "merchant/acme", &rma, "paused the endpoint rma of acme.");
        check("merchant.created", "merchant/acme", &json!({}), "created the merchant acme.");
        check(
            "merchant.updated",
            "merchant/acme",
            &json!({ "return_window_days": 45, "strict_amounts": true }),
            "changed settings of acme: return window days, strict amounts.",
        );
        check(
            "client.created",
            "client/bh_1",
            &json!({ "name": "Shop", "scopes": "orders returns" }),
            "created the client Shop of acme with the scopes orders returns.",
        );
        check(
            "person.invited",
            "person/bob@acme.example",
            &json!({ "role": "merchant-admin" }),
            "invited bob@acme.example as merchant admin of acme.",
        );
        check(
            "session.started",
            "session/1",
            &json!({ "address": "192.0.2.1" }),
            "signed in from 192.0.2.1.",
        );
        check(
            "session.ended",
            "session/1",
            &json!({ "person": "bob@acme.example" }),
            "ended a session of bob@acme.example.",
        );
        check(
            "session.ended",
            "session/1",
            &json!({ "person": "ada@example.com" }),
            "ended a session.",
        );
        check(
            "password.refused",
            "person/ada@example.com",
            &json!({ "reason": "password", "address": "192.0.2.1" }),
            "could not change the own credentials from 192.0.2.1: the password was wrong.",
        );
        check("signing_key.created", "signing_key/k1", &json!({}), "created the signing key k1.");
    }

    #[test]
    fn a_refused_sign_in_has_no_author() {
        let record: AuditRecord = serde_json::from_value(json!({
            "id": 1, "created_at": "2026-11-16T08:00:00Z", "actor": "sign_in",
            "action": "session.refused", "subject": "person/bob@acme.example", "merchant": null,
            "detail": { "reason": "password", "address": "192.0.2.1" },
        }))
        .unwrap();
        let expected =
            "A sign-in as bob@acme.example from 192.0.2.1 was refused: the password was wrong.";
        assert_eq!(of(&record), expected);
    }

    #[test]
    fn a_client_is_shown_by_its_name() {
        let record: AuditRecord = serde_json::from_value(json!({
            "id": 1, "created_at": "2026-11-16T08:00:00Z", "actor": "bh_1", "actor_name": "Shop",
            "action": "merchant.created", "subject": "merchant/acme", "merchant": "acme",
        }))
        .unwrap();
        assert_eq!(of(&record), "Shop created the merchant acme.");
    }

    #[test]
    fn an_unknown_action_is_shown_as_it_is() {
        let record: AuditRecord = serde_json::from_value(json!({
            "id": 1, "created_at": "2026-11-16T08:00:00Z", "actor": "ada@example.com",
            "action": "order.settled", "subject": "order/7", "merchant": null,
        }))
        .unwrap();
        assert_eq!(of(&record), "ada@example.com: order.settled order/7.");
    }
}
