//! Starting and canceling returns: load, decide, save, announce, in one transaction.

pub(crate) mod exporting;
pub(crate) mod guarantees;
pub(crate) mod listing;
pub(crate) mod new_return_batches;
pub(crate) mod parcels;
pub(crate) mod receiving;
pub(crate) mod reopening;
pub(crate) mod report_batches;
pub(crate) mod reviews;

use std::collections::BTreeSet;
use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use domain::json::{FieldError, ValidationError};
use domain::merchant::Merchant;
use domain::returns::{ReturnRequest, ReturnTerms, Rma, TransitionError, UnitId};
use platform::Timestamp;
use platform::shopper_proof::ProvenOrders;
use serde_json::json;
use uuid::Uuid;

use crate::App;
use crate::blocking::off_worker;
use crate::error::Error;
use crate::orders::units::OrderUnits;
use crate::projection;
use crate::quotes::conflict::ReturnConflict;
use crate::quotes::terms::QuoteTerms;
use crate::quotes::{Assessment, Quote, assess};
use crate::return_changes::{self, Cause, ReturnChanges};
use crate::shoppers::request::is_by_giftee;
use crate::shoppers::view::is_visible;
use crate::store;
use crate::store::orders::RowLock;

pub(crate) struct NewReturn {
    pub(crate) request: ReturnRequest,
    /// Terms that the shopper saw.
    pub(crate) quoted: Option<QuoteTerms>,
    /// The orders of the shopper who requests the return; `None` for staff.
    pub(crate) shopper: Option<ProvenOrders>,
}

/// Quotes a return.
pub(crate) async fn quote(
    app: &App,
    merchant: &Arc<Merchant>,
    request: &ReturnRequest,
    shopper: Option<&ProvenOrders>,
) -> Result<Quote, Error> {
    let conn = app.pool.get().await?;
    let mut order_units =
        OrderUnits::load(&conn, &merchant.identifier, &orders_of(request), RowLock::None).await?;
    let now = app.clock.now();
    order_units.load_shoppers(&conn, merchant, now).await?;
    drop(conn);
    let is_by_giftee = is_by_giftee(request, shopper);
    let merchant = Arc::clone(merchant);
    let request = request.clone();
    let quote = move || {
        let assessment = assess(&order_units, &request, &merchant, now)?;
        Ok::<_, Error>(assessment.for_giftee(is_by_giftee).quote())
    };
    off_worker(quote).await?
}

/// The orders of the requested units.
pub(crate) fn orders_of(request: &ReturnRequest) -> BTreeSet<&str> {
    request.units.iter().map(|unit| unit.id.order_identifier.as_str()).collect()
}

/// Creates a return of units of these orders, which must be locked.
pub(crate) fn assess_and_create(
    merchant: &Merchant,
    actor: &str,
    NewReturn { request, quoted, shopper }: &NewReturn,
    order_units: &OrderUnits,
    changes: &mut ReturnChanges,
    now: Timestamp,
) -> Result<Rma, Error> {
    let assessment = assess(order_units, request, merchant, now)?;
    let assessment = assessment.for_giftee(is_by_giftee(request, shopper.as_ref()));
    if let Some(conflict) = ReturnConflict::find(&assessment, quoted.as_ref()) {
        return Err(Error::Conflict(Box::new(conflict)));
    }
    let units = assessment.units.iter().map(|it| it.unit.clone()).collect();
    let terms = ReturnTerms {
        return_shipping_cost_cents: assessment.return_shipping_cost_cents,
        cost_rule: assessment.cost_rule.as_deref(),
        gift_card_bonus_amount_cents: assessment.bonus_of_order_cents,
        currency: &assessment.currency,
        managed_receiving: merchant.settings.managed_receiving,
        review: assessment.review(),
        return_to: assessment.return_to.as_ref(),
    };
    let id = merchant.identifier.clone();
    let rma = Rma::create(id, new_identifier(), request, units, terms, now);
    let email = rma.other_email().or_else(|| {
        let orders = orders_of(request).into_iter().filter_map(|it| order_units.orders.get(it));
        orders.filter_map(|projected| projected.order.customer.email_address()).next()
    });
    let action = if rma.is_in_review() { "request" } else { "confirmation" };
    let cause = Cause { actor, action, detail: detail(request, &assessment) };
    changes.add_new(&rma, order_units, email, cause, now)?;
    Ok(rma)
}

/// Timeline detail: the rule that asks for a review, or the staff member, the reason and what the staff member overrode.
fn detail(request: &ReturnRequest, assessment: &Assessment) -> serde_json::Value {
    if let Some(review) = assessment.review() {
        return json!({ "rule": review.rule });
    }
    let passed: Vec<_> = assessment
        .units
        .iter()
        .filter_map(|it| {
            let overridden = it.eligibility.as_ref().ok()?.as_ref()?;
            Some(match &overridden.rule {
                Some(rule) => json!({ "unit": it.unit.id, "code": overridden.code, "rule": rule }),
                None => json!({ "unit": it.unit.id, "code": overridden.code }),
            })
        })
        .collect();
    let review = assessment.overridden_review().map(|review| &review.rule);
    match &request.staff_override {
        Some(staff) if !passed.is_empty() || review.is_some() => {
            let mut overridden = json!({ "by": staff.by, "reason": staff.reason, "units": passed });
            if let (Some(rule), Some(members)) = (review, overridden.as_object_mut()) {
                members.insert("review_rule".to_owned(), json!(rule));
            }
            json!({ "override": overridden })
        }
        _ => json!({}),
    }
}

/// A new RMA identifier: 80 random bits in an alphabet without letters that look like digits, short
/// enough to read out over the telephone.
fn new_identifier() -> String {
    const LETTERS: [char; 32] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H',
        'J', 'K', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Y', 'Z',
    ];
    let random = Uuid::new_v4().as_u128();
    // The first 48 bits and the last 62 of a version 4 UUID are random.
    let bits = (random & ((1 << 60) - 1)) | (random >> 80 << 60);
    let letter = |place: u32| {
        let index = usize::try_from(bits >> (5 * place) & 31).unwrap_or_default();
        LETTERS.get(index).copied().unwrap_or('0')
    };
    format!("RMA-{}", (0..16).map(letter).collect::<String>())
}

/// A request to cancel a return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancellation<'a> {
    /// The whole return without units.
    pub(crate) units: Option<&'a [UnitId]>,
    pub(crate) reason: Option<&'a str>,
    /// The orders of the shopper who cancels; `None` for staff.
    pub(crate) shopper: Option<&'a ProvenOrders>,
}

/// Cancels a return or some of its units, which makes the units returnable again.
#[tracing::instrument(skip_all, fields(rma.id = rma_identifier))]
pub(crate) async fn cancel(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    rma_identifier: &str,
    Cancellation { units, reason, shopper }: Cancellation<'_>,
) -> Result<Rma, Error> {
    let id = &merchant.identifier;
    app.pool
        .transaction_of(id.as_str(), async |conn| {
            let now = app.clock.now();
            let rma = find(conn, merchant, rma_identifier, shopper).await?;
            let orders = rma.units.iter().map(|it| (id.as_str(), it.id.order_identifier.as_str()));
            let orders = store::orders::find(conn, &orders.collect(), RowLock::Update).await?;
            let orders = orders.into_iter().map(|(_, projected)| projected).collect();
            let mut rma = lock(conn, merchant, rma_identifier).await?;
            let was_in_review = rma.is_in_review();
            let change = rma.cancel(units, now).map_err(|it| refused(rma_identifier, it))?;
            let cause =
                Cause { actor, action: "cancellation", detail: json!({ "reason": reason }) };
            return_changes::record(conn, &app.deliveries, &rma, &change, cause, now).await?;
            if was_in_review {
                reviews::release_exchanges(conn, &rma, &change).await?;
            }
            projection::reconcile_again(conn, id, orders, now).await?;
            Ok(rma)
        })
        .await
}

/// Finds one of the merchant's returns. For a shopper, other returns than the own ones do not exist.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    rma_identifier: &str,
    shopper: Option<&ProvenOrders>,
) -> Result<Rma, Error> {
    let found = store::returns::find(conn, &merchant.identifier, rma_identifier).await?;
    let is_own = |rma: &Rma| shopper.is_none_or(|shopper| is_visible(rma, shopper));
    found.filter(is_own).ok_or_else(|| Error::NoReturn(rma_identifier.to_owned()))
}

/// Locks one of the merchant's returns until the end of the transaction.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    rma_identifier: &str,
) -> Result<Rma, Error> {
    let found = store::returns::lock(conn, &merchant.identifier, rma_identifier).await?;
    found.ok_or_else(|| Error::NoReturn(rma_identifier.to_owned()))
}

/// An unknown unit is a validation error; every other refusal is a conflict with the return's
/// state.
pub(crate) fn refused(rma_identifier: &str, refusal: TransitionError) -> Error {
    match refusal {
        TransitionError::UnknownUnit => {
            ValidationError::from(FieldError::invalid("$.units", "the return has no such unit"))
                .into()
        }
        refusal => Error::Refused(rma_identifier.to_owned(), refusal),
    }
}
