//! The portal of a merchant.

use domain::merchant::Language;

use super::*;

#[tokio::test]
async fn a_portal_is_found_by_identifier_and_by_host_name() {
    let app = start(|acme| {
        let appearance = &mut acme.settings.appearance;
        appearance.name = Some("Acme Shop".to_owned());
        appearance.languages = vec![Language::En, Language::De];
        let label = (Language::De, "Zu klein".to_owned());
        appearance.reason_labels = [("TOO_SMALL".to_owned(), [label].into())].into();
        appearance.host_names = vec!["returns.acme.example".to_owned()];
        appearance.lookup_keys = vec![LookupKey::ZipCode];
        appearance.withdrawal = true;
    })
    .await;
    let portal_of = |merchant: &str| format!("/v1/portals/{}", app.service.own(merchant));
    let (status, portal) = get(&app, &portal_of("acme"), "").await;
    assert_eq!(status, StatusCode::OK, "{portal}");
    for host in ["returns.acme.example", "Returns.Acme.Example"] {
        assert_eq!(get(&app, &format!("/v1/portals/{host}"), "").await, (status, portal.clone()));
    }
    assert_eq!((&portal["merchant"], &portal["name"]), (&json!("acme"), &json!("Acme Shop")));
    assert_eq!((&portal["version"], &portal["withdrawal"]), (&json!(1), &json!(true)));
    assert_eq!(portal["languages"], json!(["en", "de"]));
    assert_eq!(portal["lookup_keys"], json!(["zip_code"]));
    let reasons = portal["reasons"].as_array().unwrap();
    let small = json!({ "en": "Too small", "de": "Zu klein" });
    assert_eq!((&reasons[0]["code"], &reasons[0]["labels"]), (&json!("TOO_SMALL"), &small));
    assert_eq!(reasons[0]["offers_exchange"], true);
    assert_eq!(reasons[1]["labels"], json!({ "en": "Too large", "de": "Too large" }));
    // A shopper does not choose the withdrawal from the list of reasons.
    assert!(reasons.iter().all(|reason| reason["code"] != "withdrawal"));
    assert_eq!(portal["methods"][0]["method"], "mail-back");

    let (_, rival) = get(&app, &portal_of("rival"), "").await;
    assert_eq!((&rival["name"], &rival["withdrawal"]), (&json!("rival"), &json!(false)));
    for name in ["nobody", "portal.example", "ACME!"] {
        let (status, _) = get(&app, &format!("/v1/portals/{name}"), "").await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{name}");
    }
}
