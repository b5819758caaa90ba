//! Exports of lists: all pages of a search, one after the other, as CSV or as lines of JSON.
//!
//! See docs/decisions/lists-of-returns.md.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header;
use actix_web::web::{Bytes, Data};
use chrono::SecondsFormat;
use domain::access::MerchantId;
use domain::csv;
use domain::returns::RmaUnit;
use futures_util::{StreamExt as _, stream};
use merchants::Merchants;
use platform::Timestamp;
use platform::http::ResponseProgress;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::App;
use crate::blocking::off_worker;
use crate::error::Error;
use crate::returns::listing::ListedView;
use crate::store::search::{Found, FoundReturn, Search, search};

/// Returns that are read at once, as many as the largest page of a list has.
const PAGE: i64 = 200;
/// The bytes of such a page with usual returns, for the memory budget.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExportFormat {
    Csv,
    Ndjson,
}

/// The columns of a CSV file.
const COLUMNS: [(&str, fn(&FoundReturn) -> String); 18] = [
    ("rma_identifier", |it| it.rma.rma_identifier.clone()),
    ("merchant", |it| it.rma.merchant.to_string()),
    ("order_identifiers", |it| of_units(it, |unit| Some(unit.id.order_identifier.as_str()))),
    ("status", |it| it.rma.status.to_string()),
    ("work_list", |it| it.rma.work_list().to_string()),
    ("overdue", |it| it.rma.is_overdue().to_string()),
    ("created_at", |it| time(it.rma.created_at)),
    ("changed_at", |it| time(it.changed_at)),
    ("return_method", |it| it.rma.return_method.to_string()),
    ("units", |it| it.rma.active_units().count().to_string()),
    ("skus", |it| of_units(it, |unit| Some(unit.sku.as_str()))),
    ("return_reasons", |it| of_units(it, |unit| Some(unit.return_reason.as_str()))),
    ("resolutions", |it| of_units(it, |unit| Some(unit.resolution.kind().as_str()))),
    ("tracking_numbers", |it| of_units(it, |unit| unit.tracking_number.as_deref())),
    ("currency", |it| it.rma.currency.clone()),
    ("paid_amount_cents", |it| it.rma.paid_amount_cents().to_string()),
    ("return_shipping_cost_cents", |it| it.rma.return_shipping_cost_cents.to_string()),
    ("message_state", |it| {
        let state = it.last_message.and_then(|message| message.state);
        state.map_or_else(String::new, |state| state.to_string())
    }),
];

fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The different texts of the units that were not canceled.
fn of_units(found: &FoundReturn, value: fn(&RmaUnit) -> Option<&str>) -> String {
    let values: BTreeSet<_> = found.rma.active_units().filter_map(value).collect();
    Vec::from_iter(values).join(" ")
}

/// An export in progress.
pub(crate) struct Export {
    pub(crate) app: Data<App>,
    pub(crate) wanted: Search,
    pub(crate) format: ExportFormat,
    pub(crate) progress: ResponseProgress,
}

impl Export {
    /// The response. A page is read when the client has read the one before. After an error, the response ends without
    /// its last part, so that the client notices.
    pub(crate) async fn respond(self) -> Result<HttpResponse, Error> {
        let (content_type, file, headings) = match self.format {
            ExportFormat::Csv => {
                let headings = csv::row(COLUMNS.map(|(heading, _)| heading));
                ("text/csv; charset=utf-8", "returns.csv", headings)
            }
            ExportFormat::Ndjson => ("application/x-ndjson", "returns.ndjson", String::new()),
        };
        let (first, rest) = self.next().await?.unwrap_or_default();
        let first = headings + &first;
        let start = stream::iter((!first.is_empty()).then(|| Ok(Bytes::from(first))));
        let rest = stream::try_unfold(rest, |export: Option<Self>| async move {
            let Some(export) = export else { return Ok(None) };
            let next = export.next().await?;
            Ok::<_, Error>(next.map(|(text, rest)| (Bytes::from(text), rest)))
        });
        Ok(HttpResponse::Ok()
            .content_type(content_type)
            .insert_header((
                header::CONTENT_DISPOSITION,
                format!("attachment; filename=\"{file}\""),
            ))
            .streaming(start.chain(rest)))
    }

    /// The lines of the next page with a return, and the rest of the export, if there is one. An empty part would end the
    /// response.
    async fn next(mut self) -> Result<Option<(String, Option<Self>)>, Error> {
        loop {
            let merchant = self.wanted.merchant.as_ref().map(MerchantId::as_str);
            let mut conn = self.app.pool.reader(merchant).await?;
            let Found { returns, is_truncated, scanned_to, .. } =
                search(&mut conn, &self.wanted, PAGE).await?;
            drop(conn);
            self.progress.made();
            let is_full = i64::try_from(returns.len()).is_ok_and(|found| found >= PAGE);
            let last = returns.last().filter(|_| is_full || is_truncated);
            self.wanted.after = last.map(|last| last.place.clone()).or(scanned_to);
            let is_ended = self.wanted.after.is_none();
            if !returns.is_empty() {
                let merchants = Arc::clone(&self.app.merchants);
                let format = self.format;
                let text = off_worker(move || lines(returns, format, &merchants)).await??;
                return Ok(Some((text, (!is_ended).then_some(self))));
            }
            if is_ended {
                return Ok(None);
            }
        }
    }
}

fn lines(
    returns: Vec<FoundReturn>,
    format: ExportFormat,
    merchants: &Merchants,
) -> Result<String, Error> {
    let mut lines = String::new();
    for found in returns {
        match format {
            ExportFormat::Csv => {
                lines.push_str(&csv::row(COLUMNS.map(|(_, cell)| cell(&found))));
            }
            ExportFormat::Ndjson => {
                let listed = ListedView::new(found, merchants, None);
                lines.push_str(&serde_json::to_string(&listed)?);
                lines.push('\n');
            }
        }
    }
    Ok(lines)
}
