use super::*;
use crate::fixtures;

#[actix_web::test]
async fn the_client_of_another_merchant_does_not_exist() {
    let client: ClientView = serde_json::from_value(json!({
        "client_id": "c", "merchant": "rival", "name": "Shop", "scope": "orders",
        "created_at": "2026-11-16T08:00:00Z",
    }))
    .unwrap();
    assert!(client.clone().of("rival").is_ok());
    assert!(matches!(client.of("acme"), Err(PageError::NotFound)));
    let viewer = fixtures::signed_in("merchant-viewer", Some("acme"), &json!({}));
    let foreign = ClientView::load(&viewer, &("rival".to_owned(), "c".to_owned())).await;
    assert!(matches!(foreign, Err(PageError::NotFound)));
}
