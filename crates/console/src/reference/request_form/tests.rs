use super::*;
use crate::reference::document::tests::document;

fn form(sent: &[(&str, &str)]) -> (RequestForm, Operation) {
    let document = document();
    let operation = document.operation("cancel_return").unwrap();
    let mut form = RequestForm::new(&operation, &document.components.schemas);
    let sent: Vec<_> =
        sent.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    if !sent.is_empty() {
        form.fill(&sent);
    }
    (form, operation)
}

#[test]
fn values_become_a_request() {
    let sent = [
        ("path:rma_identifier", "RMA/1 ?"),
        ("query:dry_run", "true"),
        ("header:X-Service-Id", " acme "),
        ("body", "{}"),
        ("confirm", "true"),
        ("path:other", "not of this operation"),
    ];
    let (mut form, operation) = form(&sent);
    assert!(form.check());
    let request = form.request(&operation);
    assert_eq!(request.target, "/v1/returns/RMA%2F1%20%3F/cancel?dry_run=true");
    let headers = [("X-Service-Id", "acme"), ("Content-Type", "application/json")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(request.headers, headers);
    assert!(request.needs_token && request.method == Method::POST);
}

#[test]
fn wrong_values_are_not_sent() {
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("path:rma_identifier", ""), ("body", "{}")], "path"),
        (&[("path:rma_identifier", ".."), ("body", "{}")], "path"),
        (
            &[("path:rma_identifier", "A"), ("body", "{}"), ("header:X-Service-Id", "a\nb")],
            "header",
        ),
        (&[("path:rma_identifier", "A"), ("body", "{")], "body"),
    ];
    for (sent, place) in cases {
        let (mut form, _) = form(&[sent, &[("confirm", "true")]].concat());
        assert!(!form.check(), "{sent:?}");
        let wrong: Vec<_> = form.parameters.iter().filter(|it| !it.field.is_valid()).collect();
        assert_eq!(wrong.first().map_or("body", |it| it.place.as_str()), place);
    }
    let (mut form, _) = form(&[("path:rma_identifier", "A"), ("body", "{}")]);
    assert!(!form.check() && form.confirmation_error.is_some());
}

#[test]
fn the_form_starts_with_the_example() {
    let (form, operation) = form(&[]);
    assert_eq!(form.body.as_ref().unwrap().field.value, "{\n  \"reason\": \"It's kept\"\n}");
    assert!(form.request(&operation).target.contains("{rma_identifier}"));
}

#[test]
fn each_form_has_a_key_of_its_own() {
    let (mut form, operation) = form(&[]);
    let mut key = || {
        form.renew_key();
        let headers = form.request(&operation).headers;
        headers.into_iter().find(|(name, _)| name == "Idempotency-Key").unwrap().1
    };
    let first = key();
    assert!(Uuid::parse_str(&first).is_ok());
    assert_ne!(key(), first);
}
