//! Giftees: no amounts, no refunds, and nothing for the buyer to see.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;

/// Units of order A for gift cards, for a giftee.
fn cards(units: &[i32]) -> Value {
    let card = json!({ "resolution": "gift_card" });
    let units: Vec<_> = units.iter().map(|number| choice("A", *number, &card)).collect();
    json!({
        "return_method": "mail-back", "units": units, "gift_refund_only": true,
        "giftee_email": "bob@shop.example",
    })
}

#[tokio::test]
async fn a_giftee_sees_no_amounts() {
    let app = start_with_order().await;
    let gift = proof(&app, "A", true);
    let mut seen = Vec::new();
    let (status, returnable) = get(&app, "/v1/orders/A/returnable", &gift).await;
    assert_eq!((status, &returnable["units"][0]["returnable"]), (StatusCode::OK, &json!(true)));
    assert_eq!(returnable["gift_card"]["sku"], "CARD");
    seen.push(returnable);
    let variant = json!({ "sku": "TEE-M", "title": "Tee, M", "unit_price_amount_cents": 2000 });
    let exchange = json!({ "resolution": "exchange", "variant": variant });
    let mut body = cards(&[1]);
    body["units"].as_array_mut().unwrap().push(choice("A", 2, &exchange));
    let (status, quote) = post(&app, "/v1/returns/quote", &gift, &body).await;
    assert_eq!((status, &quote["possible"]), (StatusCode::OK, &json!(true)), "{quote}");
    let terms = URL_SAFE_NO_PAD.decode(quote["quote"].as_str().unwrap()).unwrap();
    let terms = String::from_utf8(terms).unwrap();
    assert!(!terms.contains("2165"), "{terms}");
    body["quote"] = quote["quote"].clone();
    seen.push(quote);
    let (status, made) = post(&app, "/v1/returns", &gift, &body).await;
    assert_eq!((status, &made["is_gift"]), (StatusCode::CREATED, &json!(true)), "{made}");
    let rma = made["rma_identifier"].as_str().unwrap().to_owned();
    seen.push(made);
    // The units are in a return now.
    let (status, conflict) = post(&app, "/v1/returns", &gift, &body).await;
    assert_eq!((status, &conflict["quote"]["possible"]), (StatusCode::CONFLICT, &json!(false)));
    seen.push(conflict);
    for path in [format!("/v1/returns/{rma}"), "/v1/returns?order_identifier=A".to_owned()] {
        let (status, shown) = get(&app, &path, &gift).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(shown.to_string().contains("Tee, L"), "{path}: {shown}");
        seen.push(shown);
    }
    seen.push(get(&app, &format!("/v1/returns/{rma}/timeline"), &gift).await.1);
    for response in seen {
        assert!(amounts(&response).is_empty(), "{:?} in {response}", amounts(&response));
    }
    // The merchant gets all data.
    let message = &app.arrivals("acme").await[0].body;
    assert_eq!(message["giftee_email"], "bob@shop.example");
    assert!(!amounts(message).is_empty());
}

#[tokio::test]
async fn a_gift_becomes_an_exchange_or_a_gift_card_for_the_giftee() {
    let app = start_with_order().await;
    let gift = proof(&app, "A", true);
    let refused = async |body: Value, proof: &str| {
        let (status, refusal) = post(&app, "/v1/returns", proof, &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refusal}");
        refusal["errors"][0]["field"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(refund_of("A", &[1]), &gift).await, "$.gift_refund_only");
    let mut refund = refund_of("A", &[1]);
    refund["gift_refund_only"] = json!(true);
    assert_eq!(refused(refund.clone(), &gift).await, "$.giftee_email");
    refund["giftee_email"] = json!("bob@shop.example");
    assert_eq!(refused(refund, &gift).await, "$.units[0].resolution");
    // The buyer cannot act as the giftee, whose return the buyer could not see.
    assert_eq!(refused(cards(&[1]), &proof(&app, "A", false)).await, "$.gift_refund_only");
    assert_eq!(post(&app, "/v1/returns", &gift, &cards(&[1])).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn buyer_and_giftee_do_not_see_the_returns_of_each_other() {
    let app = start_with_order().await;
    let gift = proof(&app, "A", true);
    let own = proof(&app, "A", false);
    let (_, of_giftee) = post(&app, "/v1/returns", &gift, &cards(&[1])).await;
    let (_, of_buyer) = post(&app, "/v1/returns", &own, &refund_of("A", &[2])).await;
    for (proof, visible, hidden) in [(&gift, &of_giftee, &of_buyer), (&own, &of_buyer, &of_giftee)]
    {
        let path = |rma: &Value| format!("/v1/returns/{}", rma["rma_identifier"].as_str().unwrap());
        assert_eq!(get(&app, &path(visible), proof).await.0, StatusCode::OK);
        assert_eq!(get(&app, &path(hidden), proof).await.0, StatusCode::NOT_FOUND);
        let cancel = format!("{}/cancel", path(hidden));
        assert_eq!(post(&app, &cancel, proof, &json!({})).await.0, StatusCode::NOT_FOUND);
        let (_, page) = get(&app, "/v1/returns?order_identifier=A", proof).await;
        let returns = page["returns"].as_array().unwrap();
        assert_eq!((returns.len(), &returns[0]), (1, visible));
    }
    // A shopper with both proofs has both roles.
    let both = format!("{gift},{own}");
    let (_, page) = get(&app, "/v1/returns?order_identifier=A", &both).await;
    assert_eq!(page["returns"].as_array().unwrap().len(), 2);
}
