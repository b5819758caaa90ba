//! Products, variants and pictures.

use super::{Settings, TestApp, start};

#[tokio::test]
async fn products_of_the_catalogue_have_pictures() {
    let app = TestApp::new();
    let catalogue = app.get("/catalogue").await;
    let product = &catalogue["products"][0];
    let id = product["variant_identifier"].as_str().unwrap();
    assert_eq!(app.get(&format!("/blue/sku/{id}/variants")).await, product["variants"]);
    let url = product["variants"][0]["image_url"].as_str().unwrap();
    assert!(url.starts_with(&app.running.url("/pictures/")), "{url}");
    let picture = app.client.get(url).send().await.unwrap();
    assert_eq!(picture.headers()["content-type"], "image/svg+xml");
    assert!(picture.text().await.unwrap().starts_with("<svg"));
    let unknown = app.client.get(app.running.url("/pictures/NONE.svg")).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    assert_eq!(app.journal("").await.total, 1, "only the lookup is a merchant's request");
}

#[tokio::test]
async fn pictures_have_the_configured_url() {
    let mut settings = Settings::for_tests().unwrap();
    settings.http.public_url = "https://shop.test/".to_owned();
    let app = TestApp { running: start(&settings).unwrap(), ..TestApp::new() };
    let catalogue = app.get("/catalogue").await;
    let url = catalogue["products"][0]["variants"][0]["image_url"].as_str().unwrap();
    assert!(url.starts_with("https://shop.test/pictures/"), "{url}");
}
