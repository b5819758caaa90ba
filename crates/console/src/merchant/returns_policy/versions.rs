//! The versions of a policy: who changed which rules, and the way back to an earlier version.

use actix_web::{get, http::StatusCode, post, web};
use askama::Template;
use chrono::{DateTime, Utc};
use domain::merchant::Settings;
use futures_util::future::join;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    comparison::{Difference, differences},
    require_operator, settings_of, stored_rules,
};
use crate::{
    Notice, Page, PageError, PageResult, Posted, SignedIn,
    error::sentence,
    html, html_with,
    merchant::{
        After, Frame, Merchant, Tab, page_of,
        version::{Version, is_outdated},
    },
    record_list::Records,
};

/// Versions of a page, and the number of rows to load: the next one tells what the last one changed.
const PAGE: usize = 10;
const ROWS: &str = "11";

const NOT_USED: &str = "Nothing was saved, because another person changed this merchant after you opened this page. \
    Look at the versions again before you go back to one.";

/// A version as auth describes it.
#[derive(Deserialize)]
struct PolicyVersion {
    version: i64,
    created_at: DateTime<Utc>,
    actor: String,
    /// The name of the client that is the actor.
    actor_name: Option<String>,
    rules: Vec<Value>,
}

/// A version, and what changed with it.
struct ShownVersion {
    version: i64,
    created_at: DateTime<Utc>,
    actor: String,
    differences: Vec<Difference>,
    /// Whether the merchant has these rules now.
    is_present: bool,
}

#[derive(Template)]
#[template(path = "merchant_policy_versions.html")]
struct VersionsPage {
    page: Page,
    merchant: Frame,
    version: Version,
    versions: Vec<ShownVersion>,
    /// The reason why a version was not used again.
    message: Option<String>,
    is_first: bool,
    next: Option<i64>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_versions).service(use_again);
}

async fn load(
    signed_in: &SignedIn,
    merchant: &str,
    after: &str,
    limit: &str,
) -> Result<Vec<PolicyVersion>, ApiError> {
    let url = path!("v1", "merchants", merchant, "policy", "versions");
    let query = [("after", after), ("limit", limit)];
    let page: Records<PolicyVersion> = signed_in.api.get(Service::Auth, &url, &query).await?;
    Ok(page.records)
}

#[get("/merchants/{merchant}/policy/versions")]
async fn list_versions(
    signed_in: SignedIn,
    merchant: web::Path<String>,
    query: web::Query<After>,
) -> PageResult {
    let id = signed_in.merchant(&merchant)?;
    // Another cursor leads to the first page.
    let after = query.after.parse::<i64>().map(|after| after.to_string()).unwrap_or_default();
    html(&versions_page(&signed_in, id, &after).await?)
}

async fn versions_page(
    signed_in: &SignedIn,
    merchant: &str,
    after: &str,
) -> Result<VersionsPage, PageError> {
    let (found, versions) =
        join(Merchant::load(signed_in, merchant), load(signed_in, merchant, after, ROWS)).await;
    let found = found?;
    let versions = versions?;
    let last = versions.get(PAGE - 1).filter(|_| versions.len() > PAGE);
    Ok(VersionsPage {
        page: page_of(signed_in, &found),
        merchant: Frame::new(&signed_in.person, &found, Tab::Policy),
        version: Version::of(&found),
        message: None,
        is_first: after.is_empty(),
        next: last.map(|last| last.version),
        versions: shown(&versions, stored_rules(&found), &settings_of(&found)?),
    })
}

/// The versions of a page, each compared with the one before it.
fn shown(versions: &[PolicyVersion], stored: &[Value], settings: &Settings) -> Vec<ShownVersion> {
    let show = |(index, version): (usize, &PolicyVersion)| {
        let previous =
            versions.get(index + 1).map_or(&[][..], |previous| previous.rules.as_slice());
        ShownVersion {
            version: version.version,
            created_at: version.created_at,
            actor: version.actor_name.clone().unwrap_or_else(|| version.actor.clone()),
            differences: differences(previous, &version.rules, settings),
            is_present: version.rules == stored,
        }
    };
    versions.iter().enumerate().take(PAGE).map(show).collect()
}

/// Saves the rules of an earlier version as a new version.
#[post("/merchants/{merchant}/policy/versions/{version}")]
async fn use_again(posted: Posted<Fields>, path: web::Path<(String, String)>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let id = signed_in.merchant(&path.0)?;
    require_operator(&signed_in)?;
    let wanted: i64 = path.1.parse().ok().ok_or(PageError::NotFound)?;
    let after = wanted.saturating_add(1).to_string();
    let found = load(&signed_in, id, &after, "1").await?.into_iter().next();
    let earlier = found.filter(|it| it.version == wanted).ok_or(PageError::NotFound)?;
    let body = json!({ "policy": { "rules": earlier.rules } });
    let api = Version::read(&form).api(&signed_in);
    let url = path!("v1", "merchants", id);
    let changed: Result<Value, _> =
        api.send_json(Service::Auth, Method::PATCH, None, &url, &body).await;
    let (status, message) = match changed {
        Ok(_) => {
            let url = format!("/{}", path!("merchants", id, "policy"));
            return Ok(Notice::PolicySaved.redirect(&url));
        }
        Err(error) if is_outdated(&error) => (StatusCode::CONFLICT, NOT_USED.to_owned()),
        Err(ApiError::Invalid(body)) => {
            let fault = body.errors.first().and_then(|error| body.field(&error.field));
            let fault = fault.unwrap_or_else(|| body.message.clone());
            let message = format!(
                "Nothing was saved, because these rules do not fit the present settings. {}",
                sentence(&fault)
            );
            (StatusCode::UNPROCESSABLE_ENTITY, message)
        }
        Err(error) => return Err(error.into()),
    };
    let shown = versions_page(&signed_in, id, "").await?;
    html_with(status, &VersionsPage { message: Some(message), ..shown })
}

#[cfg(test)]
mod tests {
    use actix_web::HttpResponse;

    use super::*;
    use crate::fixtures::{app_with_services, get_page, post};

    fn rule(days: u16) -> Value {
        json!({ "id": "a", "then": { "window": { "days": days } } })
    }

    /// Versions 3 to 1 of acme, of which the last page has only the oldest.
    async fn list(query: web::Query<Fields>) -> HttpResponse {
        let version = |version: u16| {
            json!({ "version": version, "created_at": "2026-11-16T08:00:00Z", "actor": "ada@acme.example",
                    "rules": [rule(version)] })
        };
        let after: u16 = query.text("after").parse().unwrap_or(4);
        let rows = query.text("limit").parse().unwrap();
        let versions: Vec<_> = (1..after.min(4)).rev().take(rows).map(version).collect();
        HttpResponse::Ok().json(json!({ "versions": versions }))
    }

    fn services(app: &mut web::ServiceConfig) {
        app.route("/v1/merchants/acme/policy/versions", web::get().to(list));
    }

    #[actix_web::test]
    async fn a_version_shows_the_difference_to_the_one_before() {
        let (status, page) =
            get_page(app_with_services(services), routes, "/merchants/acme/policy/versions").await;
        assert_eq!(status, StatusCode::OK);
        for part in ["ada@acme.example", "for 3 days", "for 2 days", "Use this again"] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert_eq!(page.matches(">changed</span>").count(), 2, "{page}");
        assert_eq!(page.matches(">added</span>").count(), 1, "{page}");
    }

    #[actix_web::test]
    async fn an_earlier_version_is_saved_again() {
        let url = "/merchants/acme/policy/versions";
        for (path, version, status) in [
            (format!("{url}/2"), "2", StatusCode::SEE_OTHER),
            (format!("{url}/2"), "1", StatusCode::CONFLICT),
            (format!("{url}/7"), "2", StatusCode::NOT_FOUND),
            (format!("{url}/x"), "2", StatusCode::NOT_FOUND),
        ] {
            let fields = [("version", version)];
            let (sent, location, page) =
                post(app_with_services(services), routes, &path, &fields).await;
            assert_eq!(sent, status, "{path}: {page}");
            match status {
                StatusCode::SEE_OTHER => assert_eq!(location, "/merchants/acme/policy"),
                StatusCode::CONFLICT => assert!(page.contains("Nothing was saved"), "{page}"),
                _ => {}
            }
        }
    }

    #[test]
    fn the_oldest_version_of_a_page_is_compared_with_the_next_one() {
        let version = |version: i64| PolicyVersion {
            version,
            created_at: DateTime::UNIX_EPOCH,
            actor: "ada".to_owned(),
            actor_name: Some("Ada".to_owned()),
            rules: vec![rule(7)],
        };
        let versions: Vec<_> = (1..=11).rev().map(version).collect();
        let settings = Settings::new("Acme");
        let page = shown(&versions, &[rule(7)], &settings);
        assert_eq!(page.len(), PAGE);
        assert!(page.iter().all(|it| it.differences.is_empty() && it.is_present), "all are equal");
        assert_eq!((page[0].version, page[0].actor.as_str()), (11, "Ada"));
        assert_eq!(shown(&versions[10..], &[], &settings)[0].differences.len(), 1);
    }
}
