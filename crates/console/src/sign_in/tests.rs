use actix_web::test::TestRequest;

use super::*;

#[test]
fn a_new_session_replaces_the_one_of_the_browser() {
    let request = TestRequest::post().insert_header((header::USER_AGENT, "Firefox/150.0"));
    let fresh = request.to_http_request();
    let body = with_browser(&fresh, json!({ "email": "a" }));
    let expected = json!({
        "email": "a", "user_agent": "Firefox/150.0", "previous_session": null,
    });
    assert_eq!(body, expected);
    let cookie = session_cookie("old".to_owned());
    let again = TestRequest::post().cookie(cookie).to_http_request();
    assert_eq!(with_browser(&again, json!({}))["previous_session"], "old");
}

#[test]
fn signing_in_leads_to_an_own_page() {
    for (next, path) in [
        ("/deliveries?state=dead", "/deliveries?state=dead"),
        ("", "/"),
        ("https://other.test/", "/"),
        ("//other.test/", "/"),
        ("/\\other.test", "/"),
        ("/\t/other.test", "/"),
        ("/\0", "/"),
        ("/\u{1b}", "/"),
    ] {
        assert_eq!(own_path(next), path);
    }
}

#[test]
fn too_many_attempts_name_the_waiting_time() {
    let message = |wait: Option<u64>| Failed::too_many(wait.map(Duration::from_secs)).message;
    assert_eq!(message(Some(42)), "There were too many attempts. Try again in 42 s.");
    assert_eq!(message(None), "There were too many attempts. Wait some minutes and try again.");
}
