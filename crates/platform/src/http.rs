//! The HTTP server of every service, its middleware and its extractors.

mod body;
mod body_limits;
mod client_ip;
mod connections;
mod memory;
mod middleware;
mod operations;
mod page;
mod query;
mod request_error;
mod request_origin;
mod sequential;
mod server;
mod settings;
mod tls;

use actix_web::{HttpResponse, http::StatusCode};

pub use crate::{failure::ErrorBody, request_id::request_id};
pub use body::{Body, BodyError, Form, Json, JsonSource, read_body};
pub use body_limits::BodyLimits;
pub use client_ip::ClientIp;
pub use connections::ResponseProgress;
pub use memory::{RequestMemory, reserve_for_response};
pub use middleware::RendersPages;
pub use page::{BadCursor, ListOrder, Page, PageLimit};
pub use query::Query;
pub use request_origin::RequestOrigin;
pub use sequential::Sequential;
pub(crate) use server::{Routes, ServerState, Share, bind, check};
pub use settings::{ProxyHeader, Settings, Tls};

/// A response whose body is JSON text already.
pub fn json_response(status: StatusCode, json: String) -> HttpResponse {
    HttpResponse::build(status).content_type("application/json").body(json)
}
