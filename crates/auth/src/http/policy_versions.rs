//! The versions of a merchant's rules for returns.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use platform::{
    Problem,
    http::{ErrorBody, PageLimit, Query},
    identity::Caller,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{check_merchant, require_read};
use crate::{
    App,
    policy_versions::{PolicyVersion, PolicyVersionPage, PolicyVersionView},
    store::{clients, merchants, policy_versions},
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyVersionQuery {
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page: only versions below this one
    after: Option<i64>,
}

/// List versions of a returns policy
///
/// The rules of a merchant after each change, newest first, with the person or client that changed them. The first
/// entry has the present rules. To go back, send the rules of an earlier version as `policy.rules` of the merchant,
/// which makes a new version.
#[utoipa::path(
    tag = "merchants", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("merchant" = String, Path), PolicyVersionQuery),
    responses(
        (status = 200, body = PolicyVersionPage),
        (status = 404, description = "There is no such merchant, or the token is for another one", body = ErrorBody),
    )
)]
#[get("/v1/merchants/{merchant}/policy/versions")]
pub(crate) async fn list_policy_versions(
    app: web::Data<App>,
    caller: Caller,
    merchant: web::Path<String>,
    query: Query<PolicyVersionQuery>,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    check_merchant(&caller, &merchant)?;
    let rows = query.limit.rows();
    let mut conn = app.pool.reader(Some(merchant.as_str())).await?;
    let mut versions = policy_versions::page(&mut conn, &merchant, query.after, rows).await?;
    if versions.is_empty() {
        merchants::find(&mut conn, &merchant).await?;
    }
    let next = query.limit.next(&mut versions, |version| version.version.to_string());
    let actors: Vec<&str> = versions.iter().map(|version| version.actor.as_str()).collect();
    let names = clients::names(&mut conn, &actors).await?;
    let view = |version: PolicyVersion| {
        let actor_name = names.get(&version.actor).cloned();
        PolicyVersionView { version, actor_name }
    };
    let versions = versions.into_iter().map(view).collect();
    Ok(HttpResponse::Ok().json(PolicyVersionPage { versions, next }))
}
