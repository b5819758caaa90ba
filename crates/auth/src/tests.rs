//! The API document matches the code and the readers.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use domain::json::{Document, Object, ValidationError, object};
use domain::merchant::guard::Guard;
use domain::merchant::{Endpoint, Interface, SettingsChange, read_new_merchant};
use domain::message_kind::MessageKind;
use domain::warehouse::Warehouse;
use serde_json::json;
use testkit::RequestBodies;

use crate::App;
use crate::account::{PasswordChange, TotpChange, read_proof};
use crate::clients::NewClient;
use crate::http::{account, invitations, oidc, read_rotation, sessions};
use crate::invitations::Acceptance;
use crate::people::{Manager, NewPerson, PersonChange};
use crate::sign_in::SignIn;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The reader of a body that is an object.
fn reader<T>(
    read: impl Fn(&Object<'_>) -> Option<T>,
) -> impl Fn(&Document) -> Result<T, ValidationError> {
    move |document| document.read(object(&read))
}

fn check_merchants(bodies: &mut RequestBodies) {
    let guard = Guard::new(true, &[]);
    // `allOf` cannot forbid further properties, and no schema limits the lengths of elements, or requires that a rule has
    // an effect.
    let settings =
        ["$.no_such_field", "final_sale_tags[]", "image_hosts[]", "host_names[]", ".then"];
    let new_merchant = reader(|body| read_new_merchant(body, &guard));
    bodies.check("POST /v1/merchants", &settings, new_merchant);
    let change = reader(|body| SettingsChange::read(body, &guard));
    bodies.check("PATCH /v1/merchants/{merchant}", &settings, change);
    // The schema of a secret is that of a stored secret, and the kind decides which fields there are.
    let secrets = [
        ".token",
        ".username",
        ".password",
        ".header",
        ".key",
        ".client_id",
        ".client_secret",
        ".token_url",
        ".scope",
        ".credentials_in",
        ".certificate",
        ".private_key",
        ".region",
        ".service",
        ".access_key_id",
        ".secret_access_key",
        ".session_token",
        "authentication.no_such_field",
    ];
    let endpoint =
        reader(|body| Endpoint::read(body, Interface::Message(MessageKind::Rma), &guard));
    bodies.check("PUT /v1/merchants/{merchant}/endpoints/{interface}", &secrets, endpoint);
    let rotate = "POST /v1/merchants/{merchant}/endpoints/{interface}/rotate_secret";
    bodies.check(rotate, &[], reader(|body| read_rotation(body, Duration::ZERO)));
    let warehouse = "PUT /v1/merchants/{merchant}/warehouses/{identifier}";
    bodies.check(warehouse, &[], reader(Warehouse::read));
    bodies.check("POST /v1/clients", &["$.merchant"], reader(|body| NewClient::read(body, None)));
    let rotate = "POST /v1/clients/{client}/rotate";
    bodies.check(rotate, &[], reader(|body| read_rotation(body, Duration::ZERO)));
}

fn check_people(bodies: &mut RequestBodies) {
    let manager = Manager { actor: "admin", merchant: None, is_operator: true };
    // The role decides whether a person has a merchant.
    bodies.check(
        "POST /v1/people",
        &["$.merchant"],
        reader(|body| NewPerson::read(body, &manager)),
    );
    let change = reader(|body| PersonChange::read(body, &manager));
    bodies.check("PATCH /v1/people/{email}", &[], change);
    let show = "POST /v1/invitations/show";
    bodies.check(show, &[], reader(invitations::read_shown));
    let accept = "POST /v1/invitations/accept";
    // The rules of passwords depend on the person.
    let acceptance = reader(|body| Acceptance::read(body, ADDRESS));
    bodies.check(accept, &["/password ="], acceptance);
    bodies.check("POST /v1/password", &["/new_password ="], reader(PasswordChange::read));
    bodies.check("POST /v1/recovery_codes", &[], reader(read_proof));
    bodies.check("POST /v1/totp", &[], reader(TotpChange::read));
    bodies.check("POST /v1/totp/setup", &[], reader(account::read_setup));
}

fn check_sessions(bodies: &mut RequestBodies) {
    bodies.check("POST /v1/sessions", &[], reader(|body| SignIn::read(body, ADDRESS)));
    bodies.check("POST /v1/sessions/token", &[], reader(sessions::read_session));
    bodies.check("POST /v1/sessions/end", &[], reader(sessions::read_session));
    bodies.check("POST /v1/oidc/start", &[], reader(oidc::read_start));
    let finish = "POST /v1/oidc/finish";
    bodies.check(finish, &[], reader(|body| oidc::read_callback(body, ADDRESS)));
}

#[test]
fn the_api_document_is_up_to_date() {
    let generated = platform::openapi::<App>().to_yaml().unwrap();
    testkit::check_contract("openapi/auth.yaml", &generated);
}

#[test]
fn the_api_document_and_the_readers_agree_on_request_bodies() {
    let mut bodies = RequestBodies::of::<App>(json!({
        "time_zone": "Europe/Berlin",
        "currency": "EUR",
        "base_url": "https://acme.example",
        "url": "https://acme.example/hooks",
        "logo_url": "https://acme.example/logo.png",
        "policy_url": "https://acme.example/policy",
        "contact_url": "https://acme.example/contact",
        "contact_email": "help@acme.example",
        "reply_to": "returns@acme.example",
        "texts": { "en": { "confirmed": { "subject": "Thank you" } } },
        "email": "help@acme.example",
        "image_hosts": ["images.acme.example"],
        "host_names": ["returns.acme.example"],
        "reason_labels": { "TOO_SMALL": { "en": "Too small" } },
        "headers": { "X-Tenant": "acme" },
        "path": "/hooks",
        "version": 3,
        "merchant": "acme",
        "password": "a-long-password",
    }));
    bodies.skip_common();
    // Its errors have the format of RFC 6749.
    bodies.skip("POST /oauth/token");
    check_merchants(&mut bodies);
    check_people(&mut bodies);
    check_sessions(&mut bodies);
    bodies.finish();
}
