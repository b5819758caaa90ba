//! Pages of a shopper with one browser, while a stand-in for rma-engine responds.

use actix_web::{http::StatusCode, test::TestRequest};
use serde_json::json;

use super::{assert_contains, browser::Browser};
use crate::{cookie::tests::proof, draft::ReturnDraft, order::tests::unit};

const METHODS: [(&str, i64); 2] = [("mail-back", 500), ("express-returns", 700)];

#[actix_web::test]
async fn two_tabs_withdraw_for_the_persons_that_they_show() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    let ada = browser.begin("Ada", "W-1").await;
    let bob = browser.begin("Bob", "W-2").await;
    assert_contains(&ada, &["<dd>Ada</dd>", "<dd>W-1</dd>"]);
    // Neither page of the first order shows the person of the second one.
    for path in ["/acme/withdraw/confirm?order=W-1", "/acme/withdraw?order=W-1"] {
        let (_, _, page) = browser.get(path).await;
        assert!(!page.contains("Bob"), "{page}");
    }
    for (page, name, order) in [(ada, "Ada", "W-1"), (bob, "Bob", "W-2")] {
        let (status, _, shown) = browser.confirm(&page, &[]).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{shown}");
        let sent = browser.returns().pop().unwrap();
        assert_eq!(sent["withdrawal"], json!({ "name": name, "email": "a@b.test" }));
        assert_eq!(sent["units"][0]["order_identifier"], order);
    }
}

#[actix_web::test]
async fn a_withdrawal_costs_what_its_page_showed() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    let page = browser.begin("Ada", "W-1").await;
    assert_contains(&page, &["-€5.00", "€44.95"]);
    browser.engine.lock().unwrap().methods[0].1 = 4900;
    let (status, _, page) = browser.confirm(&page, &[]).await;
    assert_eq!((status, browser.returns().len()), (StatusCode::CONFLICT, 0));
    assert_contains(&page, &["Return shipping was €5.00 and is now €49.00.", "-€49.00", "€0.95"]);
    let (status, ..) = browser.confirm(&page, &[]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(browser.returns()[0]["quote"], "4900");
}

#[actix_web::test]
async fn amounts_are_shown_before_another_choice_counts() {
    let units = [unit("1", 1), unit("1", 2), unit("2", 1)];
    let mut browser = Browser::start(&METHODS, &units).await;
    let page = browser.begin("Ada", "W-1").await;
    let changed = [("method", "express-returns"), ("count.W-1~1", "1")];
    let (status, _, page) = browser.confirm(&page, &changed).await;
    assert_eq!((status, browser.returns().len()), (StatusCode::OK, 0));
    assert_contains(&page, &["Nothing was sent yet.", "-€7.00", "€92.90", "<dd>Ada</dd>"]);
    let (status, ..) = browser.confirm(&page, &[]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let sent = browser.returns().remove(0);
    assert_eq!(sent["return_method"], "express-returns");
    assert_eq!(sent["units"].as_array().unwrap().len(), 2);
}

#[actix_web::test]
async fn a_method_has_to_fit_only_the_units_that_are_chosen() {
    let mut tent = unit("2", 1);
    tent["title"] = json!("Tent");
    tent["unavailable_methods"] =
        json!([{ "method": "express-returns", "code": "too_heavy_for_express" }]);
    let mut browser = Browser::start(&[("express-returns", 0)], &[unit("1", 1), tent]).await;
    let page = browser.begin("Ada", "W-1").await;
    assert_contains(&page, &["Not possible for Tent: ", "cannot be sent back together"]);
    let note = page.split("cannot be sent back together").nth(1).unwrap();
    assert_contains(note.split("</div>").next().unwrap(), &["mailto:help@acme.test"]);
    assert!(!page.contains("Confirm withdrawal"), "{page}");
    let (status, _, page) = browser.confirm(&page, &[("count.W-1~2", ""), ("update", "1")]).await;
    assert_eq!(status, StatusCode::OK);
    assert_contains(&page, &["Confirm withdrawal", "€49.95"]);
    let (status, ..) = browser.confirm(&page, &[]).await;
    assert_eq!((status, browser.returns().len()), (StatusCode::SEE_OTHER, 1));
}

#[actix_web::test]
async fn a_wrong_number_of_units_is_an_error_at_its_field() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1), unit("1", 2)]).await;
    let page = browser.begin("Ada", "W-1").await;
    for wrong in ["1.5", "abc", "-1", "3"] {
        let (status, _, page) = browser.confirm(&page, &[("count.W-1~1", wrong)]).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{page}");
        assert_contains(&page, &["href=\"#count-1\"", "Enter a number from 0 to 2."]);
        assert_contains(&page, &[&format!("value=\"{wrong}\"")]);
    }
    let (status, _, page) = browser.confirm(&page, &[("count.W-1~1", "0")]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_contains(&page, &["Choose at least one item."]);
    assert_eq!(browser.returns().len(), 0);
}

#[actix_web::test]
async fn a_form_that_is_sent_twice_is_one_withdrawal() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    let page = browser.begin("Ada", "W-1").await;
    for _ in 0..2 {
        let (status, location, _) = browser.confirm(&page, &[]).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert_eq!(location, "/acme/returns/RMA-0/withdrawal");
    }
    assert_eq!(browser.returns().len(), 1);
}

#[actix_web::test]
async fn back_after_the_confirmation_says_that_the_withdrawal_was_received() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1), unit("1", 2)]).await;
    let page = browser.begin("Ada", "W-1").await;
    browser.confirm(&page, &[]).await;
    let (status, _, page) = browser.get("/acme/withdraw/confirm?order=W-1").await;
    assert_eq!(status, StatusCode::OK);
    assert_contains(&page, &["We have received your withdrawal", "/acme/returns/RMA-0/withdrawal"]);
    assert!(!page.contains("Ada"), "{page}");
    // A shopper who begins once more can withdraw from other items.
    let page = browser.begin("Ada", "W-1").await;
    assert_contains(&page, &["Confirm withdrawal"]);
    let (_, location, _) = browser.get("/acme/withdraw/confirm?order=W-2").await;
    assert_eq!(location, "/acme/withdraw?order=W-2");
}

#[actix_web::test]
async fn items_of_a_return_that_the_shop_canceled_can_be_returned_again() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    browser.begin("Ada", "W-1").await;
    let query = "i=W-1~1~1~SMALL~refund&method=mail-back";
    let mut shopper = super::shopper();
    shopper.add(proof("W-1", "2026-11-16T09:30:00Z"));
    shopper.remember(ReturnDraft::parse(query).unwrap().digest(), "RMA-7");
    browser.cookie = Some(shopper.cookie(&browser.app.sealer).unwrap());
    let path = format!("/acme/check?{query}");
    let (_, _, page) = browser.get(&path).await;
    assert_contains(&page, &["You confirmed this: RMA-7"]);
    browser.engine.lock().unwrap().is_canceled = true;
    let (status, _, page) = browser.get(&path).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert_contains(&page, &["Confirm the return"]);
}

#[actix_web::test]
async fn a_check_page_offers_no_amounts_and_no_other_items_that_do_not_exist() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1), unit("2", 1)]).await;
    browser.begin("Ada", "W-1").await;
    let check = "/acme/check?i=W-1~1~1~SMALL~refund&i=W-1~2~1~SMALL~refund&method=mail-back";
    let offers = ["Return the other items", "You get back", "Confirm the return"];
    for (refused, expected) in [
        (vec![], [false, true, true]),
        (vec!["1"], [true, false, false]),
        (vec!["1", "2"], [false, false, false]),
    ] {
        browser.engine.lock().unwrap().refused.clone_from(&refused);
        let (status, _, page) = browser.get(check).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert_eq!(offers.map(|text| page.contains(text)), expected, "{refused:?}: {page}");
        assert_eq!(page.contains("Refund: "), refused.is_empty(), "{page}");
    }
}

#[actix_web::test]
async fn a_comment_reaches_the_shop_with_its_units() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1), unit("1", 2)]).await;
    browser.begin("Ada", "W-1").await;
    let path = "/acme/check?i=W-1~1~2~SMALL~refund&method=mail-back";
    let (_, _, page) = browser.get(path).await;
    let hidden = |name: &str| {
        let rest = page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap().to_owned();
        rest.split('"').next().unwrap().to_owned()
    };
    let [request, quote, key] = ["request", "quote", "key"].map(hidden);
    let form = |comment: &str| {
        let fields =
            [("request", &*request), ("quote", &*quote), ("key", &*key), ("comment-0", comment)];
        TestRequest::post().uri(path).set_form(fields)
    };
    let long = format!("<b>{}", "x".repeat(1_000));
    let (status, _, shown) = browser.send(form(&long)).await;
    assert_eq!((status, browser.returns().len()), (StatusCode::UNPROCESSABLE_ENTITY, 0), "{shown}");
    assert_contains(
        &shown,
        &["href=\"#comment-0\"", "Write at most 1000 characters.", "&#60;b&#62;xxx"],
    );
    let (status, location, _) = browser.send(form("Too tight\r\nat the neck")).await;
    assert_eq!((status, location.as_str()), (StatusCode::SEE_OTHER, "/acme/returns/RMA-0?new=1"));
    let sent = browser.returns().remove(0);
    for unit in sent["units"].as_array().unwrap() {
        assert_eq!(unit["comment"], "Too tight\nat the neck");
    }
}
