//! The OpenAPI file in the repository matches the code.

use domain::json::{Document, object};
use domain::merchant::ReturnPolicy;
use domain::returns::ReturnRequest;
use testkit::check_contract;

use super::*;
use crate::http::{
    carrier_events, deep_links, discrepancies, guarantees, mails, policies, receipts, returns,
    reviews,
};
use crate::shoppers::lookups::Lookup;

#[test]
fn the_api_document_is_up_to_date() {
    let document = platform::openapi::<App>().to_yaml().unwrap();
    check_contract("openapi/rma-engine.yaml", &document);
}

#[test]
fn the_api_document_and_the_readers_agree_on_request_bodies() {
    let mut bodies = testkit::RequestBodies::of::<App>(
        json!({ "label_url": "https://carrier.example/label", "giftee_email": "mia@shopper.example" }),
    );
    bodies.skip_common();
    let policy = ReturnPolicy::default();
    bodies.check("POST /v1/carrier_events", &["$.rma_identifier"], carrier_events::read);
    bodies.check("POST /v1/deep_links", &[], |body| body.read(object(deep_links::read)));
    let resolution = "POST /v1/discrepancies/{position}/resolve";
    bodies.check(resolution, &[], |body| body.read(object(discrepancies::read_decision)));
    let keys = ["$.order_identifier", "$.email"];
    bodies.check("POST /v1/lookups", &keys, |body| body.read(object(Lookup::read)));
    // The merchant's policy decides, and `allOf` cannot forbid further properties.
    let by_policy =
        [".return_method", ".return_reason", ".giftee_email", ".variant", "$.no_such_field"];
    let read_quote = |body: &Document| ReturnRequest::read(body, &policy);
    bodies.check("POST /v1/returns/quote", &by_policy, read_quote);
    let read_new = |body: &Document| body.read(object(|body| returns::read_new(body, &policy)));
    bodies.check("POST /v1/returns", &by_policy, read_new);
    let cancel = "POST /v1/returns/{rma_identifier}/cancel";
    bodies.check(cancel, &[], |body| body.read(object(returns::read_cancellation)));
    let waive = "POST /v1/returns/{rma_identifier}/waive";
    bodies.check(waive, &[], |body| body.read(object(guarantees::read_waiver)));
    for decision in ["approve", "decline"] {
        let path = format!("POST /v1/returns/{{rma_identifier}}/{decision}");
        bodies.check(&path, &[], |body| body.read(object(reviews::read_decision)));
    }
    let receive = "POST /v1/returns/{rma_identifier}/receipts";
    // The kind of a finding decides which fields it has.
    let by_kind = ["$.findings", ".note", ".sku", ".found_sku", ".quantity", "identifier", ".unit"];
    bodies.check(receive, &by_kind, |body| body.read(object(receipts::read)));
    let acme = merchant("acme");
    let read_preview =
        |body: &Document| body.read(object(|body| policies::read_preview(body, &acme)));
    // The types of rules are those of settings, which ignore the fields of later versions. Fields of a rule depend on
    // each other, and the schema has no limits of the values in lists.
    let of_rules = [
        "$.after",
        "$.order_identifier",
        ".no_such_field",
        ".then",
        "[]",
        ".days",
        ".from",
        ".min",
        ".min_cents",
        ".currency",
        ".within_days",
        ".id",
    ];
    bodies.check("POST /v1/policies/preview", &of_rules, read_preview);
    for operation in ["POST /v1/mails/preview", "POST /v1/mails/test"] {
        // The portal of the merchant has one language.
        let read = |body: &Document| body.read(object(|body| mails::read_draft(body, &acme)));
        bodies.check(operation, &["$.language"], read);
    }
    bodies.finish();
}
