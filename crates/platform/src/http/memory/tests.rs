use std::io::Write as _;

use actix_web::FromRequest as _;
use actix_web::HttpResponse;
use actix_web::body::to_bytes;
use actix_web::dev::ServiceRequest;
use actix_web::test::TestRequest;
use flate2::{Compression, write::GzEncoder};

use super::super::JsonSource;
use super::*;

const KIB: usize = 1024;
/// Memory for a body of the largest size.
const LARGEST: usize = 1000 * KIB;

/// The memory of a server whose bodies have 100 KiB at most.
fn memory(max_inflight_bytes: usize) -> web::Data<HttpMemory> {
    let environment = [
        ("TEST__DATABASE__URL", "postgres://u@h/d".to_owned()),
        ("TEST__HTTP__MAX_BODY", (100 * KIB).to_string()),
        ("TEST__HTTP__MAX_INFLIGHT", max_inflight_bytes.to_string()),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value)).into();
    web::Data::new(HttpMemory::new(
        &crate::settings::load_http("test", &[], None, environment).unwrap(),
    ))
}

/// A request from the given address, whose body is announced to have a length.
fn request(
    memory: &web::Data<HttpMemory>,
    address: u8,
    length: impl Into<Option<usize>>,
) -> ServiceRequest {
    let mut request =
        TestRequest::post().app_data(memory.clone()).peer_addr(([192, 0, 2, address], 80).into());
    if let Some(length) = length.into() {
        request = request.insert_header((CONTENT_LENGTH, length));
    }
    request.to_srv_request()
}

/// Acquires memory for the body of a request.
fn acquire(
    memory: &web::Data<HttpMemory>,
    address: u8,
    length: impl Into<Option<usize>>,
) -> Result<RequestMemory, Overloaded> {
    RequestMemory::acquire_for_body(request(memory, address, length).request())
}

#[test]
fn a_body_beyond_the_budget_is_refused_until_another_is_dropped() {
    let memory = memory(2300 * KIB);
    let first = acquire(&memory, 1, None).unwrap();
    let _second = acquire(&memory, 2, 100 * KIB).unwrap();
    assert_eq!(acquire(&memory, 3, 100 * KIB).unwrap_err(), Overloaded);
    let _small = acquire(&memory, 3, 10 * KIB).unwrap();
    drop(first);
    assert!(acquire(&memory, 4, usize::MAX).is_ok());
}

#[test]
fn a_caller_has_a_quarter_of_the_budget_and_more_while_half_is_free() {
    let memory = memory(9 * LARGEST);
    let first = acquire(&memory, 1, None).unwrap();
    let _more = [(); 3].map(|()| acquire(&memory, 1, None).unwrap());
    assert_eq!(acquire(&memory, 1, None).unwrap_err(), Overloaded);
    let _others = [2, 2, 3, 3].map(|other| acquire(&memory, other, None).unwrap());
    assert_eq!(acquire(&memory, 2, None).unwrap_err(), Overloaded);
    drop(first);
    assert_eq!(acquire(&memory, 1, None).unwrap_err(), Overloaded);
    assert!(acquire(&memory, 4, None).is_ok());
}

#[test]
fn one_body_of_the_largest_size_always_fits() {
    assert!(acquire(&memory(0), 1, None).is_ok());
}

#[tokio::test]
async fn a_gzipped_body_keeps_memory_for_its_decompressed_size() {
    let memory = memory(0);
    let mut gzipped = GzEncoder::new(Vec::new(), Compression::fast());
    gzipped.write_all(format!("\"{}\"", "x".repeat(10 * KIB - 2)).as_bytes()).unwrap();
    let (request, mut payload) = TestRequest::post()
        .app_data(memory.clone())
        .peer_addr(([192, 0, 2, 1], 80).into())
        .insert_header((CONTENT_ENCODING, "gzip"))
        .insert_header(("content-type", "application/json"))
        .set_payload(gzipped.finish().unwrap())
        .to_http_parts();
    let acquired = RequestMemory::acquire_for_body(&request).unwrap();
    assert_eq!(memory.budget.used_bytes(), LARGEST);
    let source = JsonSource::from_request(&request, &mut payload).await.unwrap();
    assert_eq!(memory.budget.used_bytes(), 100 * KIB);
    drop((request, acquired));
    assert_eq!(memory.used_by_caller()["192.0.2.1"], 100 * KIB);
    drop(source);
    assert_eq!(memory.budget.used_bytes(), 0);
}

#[tokio::test]
async fn a_response_keeps_the_memory_it_needs_until_it_is_sent() {
    let memory = memory(0);
    for reserved in [2, 20 * KIB] {
        let request = request(&memory, 1, None);
        reserve_for_response(request.request(), reserved).unwrap();
        let response = HttpResponse::Ok().body("x".repeat(10 * KIB));
        let (request, response) =
            RequestMemory::reserve_for_response(request.into_response(response)).into_parts();
        drop(request);
        assert_eq!(memory.budget.used_bytes(), 10 * KIB);
        assert_eq!(to_bytes(response.into_body()).await.unwrap().len(), 10 * KIB);
        assert_eq!(memory.budget.used_bytes(), 0);
    }
}

#[test]
fn a_read_without_memory_for_its_response_is_refused_and_a_change_is_not() {
    let memory = memory(0);
    let _used = acquire(&memory, 1, 99 * KIB).unwrap();
    for (request, length, status) in [
        (TestRequest::get(), 20 * KIB, 429),
        (TestRequest::get(), KIB, 200),
        (TestRequest::post(), 20 * KIB, 200),
    ] {
        let request = request.app_data(memory.clone()).to_srv_request();
        let response = HttpResponse::Ok().body("x".repeat(length));
        assert_eq!(
            RequestMemory::reserve_for_response(request.into_response(response)).status(),
            status
        );
    }
    assert_eq!(memory.budget.used_bytes(), 990 * KIB);
}

#[test]
fn a_caller_without_memory_is_forgotten() {
    let memory = memory(0);
    drop(acquire(&memory, 1, None).unwrap());
    assert!(memory.used_by_caller().is_empty());
}
