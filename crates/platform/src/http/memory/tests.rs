use std::io::Write as _;
use std::time::Duration;

use actix_web::FromRequest as _;
use actix_web::HttpResponse;
use actix_web::body::to_bytes;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::test::TestRequest;
use flate2::{Compression, write::GzEncoder};
use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::super::{BodyError, JsonSource, read_body};
use super::*;

const KIB: usize = 1024;
/// Memory for a body of the largest size.
const LARGEST: usize = 1000 * KIB;
const LIMITS: BodyLimits = BodyLimits {
    max_bytes: 100 * KIB,
    max_public_bytes: 10 * KIB,
    timeout: Duration::from_secs(300),
};

/// The memory of a server whose bodies have 100 KiB at most.
fn memory(max_inflight_bytes: usize) -> web::Data<HttpMemory> {
    web::Data::new(HttpMemory::new(max_inflight_bytes, LIMITS))
}

/// A request from this network without a token.
fn public_request(memory: &web::Data<HttpMemory>, address: u8) -> TestRequest {
    let request = TestRequest::post().app_data(memory.clone()).app_data(LIMITS);
    request.peer_addr(([192, 0, 2, address], 80).into())
}

/// A request with the token of a client, whose body is announced to have a length.
fn request(
    memory: &web::Data<HttpMemory>,
    client: &str,
    length: impl Into<Option<usize>>,
) -> ServiceRequest {
    let mut request = public_request(memory, 1);
    if let Some(length) = length.into() {
        request = request.insert_header((CONTENT_LENGTH, length));
    }
    let request = request.to_srv_request();
    request.request().extensions_mut().insert(Caller::of_client(client));
    request
}

/// Acquires memory for the body of a request with a token.
fn acquire(
    memory: &web::Data<HttpMemory>,
    client: &str,
    length: impl Into<Option<usize>>,
) -> Result<RequestMemory, Overloaded> {
    RequestMemory::acquire_for_body(request(memory, client, length).request())
}

/// Reads a body of which these bytes arrive and the rest does not.
fn read_unfinished(
    request: &HttpRequest,
    arriving: &[usize],
) -> impl Future<Output = Result<Bytes, BodyError>> {
    let chunks: Vec<_> = arriving.iter().map(|length| Bytes::from(vec![b'x'; *length])).collect();
    let chunks = stream::iter(chunks.into_iter().map(Ok::<_, PayloadError>));
    let payload: Payload = Payload::Stream { payload: Box::pin(chunks.chain(stream::pending())) };
    read_body(request, payload)
}

#[tokio::test]
async fn a_body_without_a_token_takes_memory_for_the_bytes_that_arrived() {
    let memory = memory(0);
    for (arriving, used) in [(vec![], 0), (vec![KIB], 2 * KIB), (vec![KIB, 1, 3 * KIB], 9 * KIB)] {
        let announced = public_request(&memory, 1).insert_header((CONTENT_LENGTH, 10 * KIB));
        let chunked = public_request(&memory, 1);
        let gzipped = public_request(&memory, 1).insert_header((CONTENT_ENCODING, "gzip"));
        for request in [announced, chunked, gzipped] {
            let request = request.to_http_request();
            let mut reading = Box::pin(read_unfinished(&request, &arriving));
            assert!((&mut reading).now_or_never().is_none());
            assert_eq!(memory.budget.used_bytes(), used);
        }
    }
    let request = public_request(&memory, 1).to_http_request();
    read_body(&request, Payload::from(vec![b'x'; 5 * KIB])).await.unwrap();
    assert_eq!(memory.budget.used_bytes(), 50 * KIB);
    drop(request);
    assert_eq!(memory.budget.used_bytes(), 0);
}

#[tokio::test]
async fn a_body_that_grows_beyond_the_budget_is_refused() {
    let memory = memory(0);
    let _used = acquire(&memory, "c1", 99 * KIB).unwrap();
    let request = public_request(&memory, 1).to_http_request();
    let mut reading = Box::pin(read_unfinished(&request, &[4 * KIB]));
    assert!((&mut reading).now_or_never().is_none());
    assert_eq!(memory.budget.used_bytes(), 998 * KIB);
    drop(reading);
    drop(request);
    let request = public_request(&memory, 1).to_http_request();
    let grown = read_unfinished(&request, &[4 * KIB, 4 * KIB]).now_or_never().unwrap();
    assert!(matches!(grown, Err(BodyError::Overloaded(Overloaded))));
    drop(request);
    // The bytes fit, and the values parsed from them do not.
    let request = public_request(&memory, 1).to_http_request();
    let complete = read_body(&request, Payload::from(vec![b'x'; 2 * KIB])).await;
    assert!(matches!(complete, Err(BodyError::Overloaded(Overloaded))));
}

#[tokio::test]
async fn a_body_without_a_token_has_a_limit_of_its_own() {
    let memory = memory(0);
    let body = || Payload::from(vec![b'x'; 10 * KIB + 1]);
    let public = public_request(&memory, 1).to_http_request();
    let refused = read_body(&public, body()).await;
    assert!(matches!(refused, Err(BodyError::TooLarge(limit)) if limit == 10 * KIB));
    let with_token = request(&memory, "c1", None);
    assert_eq!(read_body(with_token.request(), body()).await.unwrap().len(), 10 * KIB + 1);
}

#[tokio::test]
async fn a_network_without_a_token_gets_little_of_a_scarce_budget() {
    let memory = memory(10 * LARGEST);
    let _used = ["c1", "c2", "c3", "c4", "c5"].map(|c| acquire(&memory, c, None).unwrap());
    let requests = [1, 1, 1, 1].map(|address| public_request(&memory, address).to_http_request());
    // Ten times 10 KiB are 100 KiB of the 312 KiB that a network gets.
    let body = || Payload::from(vec![b'x'; 10 * KIB]);
    for (index, request) in requests.iter().enumerate() {
        assert_eq!(read_body(request, body()).await.is_ok(), index < 3, "{index}");
    }
    let other = public_request(&memory, 2).to_http_request();
    assert!(read_body(&other, body()).await.is_ok());
}

#[test]
fn a_body_beyond_the_budget_is_refused_until_another_is_dropped() {
    let memory = memory(2600 * KIB);
    let first = acquire(&memory, "c1", None).unwrap();
    let _second = acquire(&memory, "c2", 100 * KIB).unwrap();
    assert_eq!(acquire(&memory, "c3", 100 * KIB).unwrap_err(), Overloaded);
    let _small = acquire(&memory, "c3", 10 * KIB).unwrap();
    drop(first);
    assert!(acquire(&memory, "c4", usize::MAX).is_ok());
}

#[test]
fn a_part_of_the_budget_is_kept_for_small_bodies() {
    let memory = memory(2600 * KIB);
    let _used = ["c1", "c2"].map(|client| acquire(&memory, client, None).unwrap());
    // 2,275 KiB are for all bodies and responses.
    assert_eq!(acquire(&memory, "c3", 33 * KIB).unwrap_err(), Overloaded);
    assert_eq!(
        reserve_for_response(request(&memory, "c3", None).request(), 150 * KIB),
        Err(Overloaded)
    );
    let _small = acquire(&memory, "c3", 32 * KIB).unwrap();
    let response = HttpResponse::Ok().body("x".repeat(800 * KIB));
    let changed = request(&memory, "c4", None);
    let sent = RequestMemory::reserve_for_response(changed.into_response(response));
    assert_eq!((sent.status().as_u16(), memory.budget.used_bytes()), (200, 2320 * KIB));
    assert!(acquire(&memory, "c5", 28 * KIB).is_ok());
}

#[test]
fn a_caller_has_a_quarter_of_the_budget_and_more_while_half_is_free() {
    let memory = memory(10 * LARGEST);
    let first = acquire(&memory, "c1", None).unwrap();
    let _more = [(); 4].map(|()| acquire(&memory, "c1", None).unwrap());
    assert_eq!(acquire(&memory, "c1", None).unwrap_err(), Overloaded);
    let _others = ["c2", "c2", "c3"].map(|other| acquire(&memory, other, None).unwrap());
    assert_eq!(acquire(&memory, "c2", None).unwrap_err(), Overloaded);
    drop(first);
    assert_eq!(acquire(&memory, "c1", None).unwrap_err(), Overloaded);
    assert!(acquire(&memory, "c4", None).is_ok());
}

#[test]
fn one_body_of_the_largest_size_always_fits() {
    assert!(acquire(&memory(0), "c1", None).is_ok());
}

#[tokio::test]
async fn a_gzipped_body_keeps_memory_for_its_decompressed_size() {
    let memory = memory(0);
    let mut gzipped = GzEncoder::new(Vec::new(), Compression::fast());
    gzipped.write_all(format!("\"{}\"", "x".repeat(10 * KIB - 2)).as_bytes()).unwrap();
    let (request, mut payload) = TestRequest::post()
        .app_data(memory.clone())
        .app_data(LIMITS)
        .insert_header((CONTENT_ENCODING, "gzip"))
        .insert_header(("content-type", "application/json"))
        .set_payload(gzipped.finish().unwrap())
        .to_http_parts();
    request.extensions_mut().insert(Caller::of_client("c1"));
    let acquired = RequestMemory::acquire_for_body(&request).unwrap();
    assert_eq!(memory.budget.used_bytes(), LARGEST);
    let source = JsonSource::from_request(&request, &mut payload).await.unwrap();
    assert_eq!(memory.budget.used_bytes(), 100 * KIB);
    drop((request, acquired));
    assert_eq!(memory.used_by_caller()["c1"], 100 * KIB);
    drop(source);
    assert_eq!(memory.budget.used_bytes(), 0);
}

#[tokio::test]
async fn a_response_keeps_the_memory_it_needs_until_it_is_sent() {
    let memory = memory(0);
    for reserved in [2, 20 * KIB] {
        let request = request(&memory, "c1", None);
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
    let _used = acquire(&memory, "c1", 99 * KIB).unwrap();
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
    drop(acquire(&memory, "c1", None).unwrap());
    assert!(memory.used_by_caller().is_empty());
}

/// Pages read the body of every request.
#[tokio::test]
async fn a_read_that_could_have_had_a_body_is_refused_without_memory_for_its_response() {
    let memory = memory(0);
    let _used = acquire(&memory, "c1", 99 * KIB).unwrap();
    for (length, status) in [(20 * KIB, 429), (KIB, 200)] {
        let request = TestRequest::get().app_data(memory.clone()).to_srv_request();
        read_body(request.request(), Payload::None).await.unwrap();
        let response = HttpResponse::Ok().body("x".repeat(length));
        let response = RequestMemory::reserve_for_response(request.into_response(response));
        assert_eq!(response.status(), status);
    }
}
