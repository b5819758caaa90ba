//! The messages to a label provider.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::MerchantId;
use crate::merchant::{Merchant, ReturnMethod};
use crate::order::{Address, Order, OrderLine};
use crate::returns::{Rma, RmaUnit, UnitId};
use crate::schema::json_schema;

/// The event of [`LabelRequested`].
pub const LABEL_REQUESTED: &str = "label.requested";
/// The event of [`LabelCanceled`].
pub const LABEL_CANCELED: &str = "label.canceled";

/// A message to a label provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum LabelMessage {
    Requested(Box<LabelRequested>),
    Canceled(LabelCanceled),
}

/// A request for the label of one parcel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabelRequested {
    /// Identifies the request, also in `label.canceled`. The header `Idempotency-Key` of every attempt has it: the
    /// provider makes at most one label for it.
    pub label_request_id: Uuid,
    pub merchant: MerchantId,
    pub rma_identifier: String,
    /// The number of the parcel in its return, from 1.
    #[schema(minimum = 1)]
    pub parcel: i32,
    /// The number of parcels of the return.
    #[schema(minimum = 1)]
    pub parcel_count: i32,
    /// A text to print on the label, by which the warehouse recognises the parcel.
    pub reference: String,
    pub return_method: ReturnMethod,
    pub form: LabelForm,
    /// ISO 4217 code of the values of units.
    #[schema(example = "USD")]
    pub currency: String,
    pub from: LabelSender,
    /// The warehouse that receives the merchant's returns. Without one the provider uses the address that it has for the
    /// merchant.
    #[schema(required)]
    pub to: Option<LabelReceiver>,
    #[schema(min_items = 1)]
    pub units: Vec<LabelUnit>,
    pub requested_at: DateTime<Utc>,
}

/// The cancellation of a label that is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelCanceled {
    /// The request for the label.
    pub label_request_id: Uuid,
    pub merchant: MerchantId,
    pub rma_identifier: String,
    #[schema(minimum = 1)]
    pub parcel: i32,
    pub reference: String,
    /// The label that is canceled. Null if no response named one: then every label of the request is canceled, and no
    /// label is made for the request any more.
    #[schema(required)]
    pub tracking_number: Option<String>,
    pub reason: CancelReason,
    pub canceled_at: DateTime<Utc>,
}

crate::words! {
    /// The reason why a label is canceled.
    pub enum CancelReason as "snake_case" {
        /// The units of the parcel were canceled.
        ReturnCanceled,
        /// The units of the parcel expired, because no carrier had scanned a parcel in time.
        ReturnExpired,
        /// The parcel has another label, or needs none.
        Unused,
        /// The response has no label that can be used.
        Unusable,
        /// A person canceled the request, for example to ask for another label.
        RequestCanceled,
    }
}

crate::words! {
    /// The form of a label.
    pub enum LabelForm as "snake_case" {
        /// A PDF document to print.
        Pdf,
        /// A code that the shopper shows at the drop-off.
        QrCode,
    }
}

/// A parcel of a return.
#[derive(Debug, Clone, Copy)]
pub struct Parcel<'a> {
    /// From 1.
    pub number: i32,
    /// The number of parcels of the return.
    pub count: i32,
    pub units: &'a [&'a RmaUnit],
}

/// The shopper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelSender {
    pub address: Address,
    #[schema(required)]
    pub email: Option<String>,
}

/// The warehouse to which a parcel goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelReceiver {
    /// The warehouse's identifier in the merchant's systems, else ours.
    pub identifier: String,
    #[schema(required)]
    pub company: Option<String>,
    pub address: Address,
}

/// A unit in a parcel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabelUnit {
    #[serde(flatten)]
    pub id: UnitId,
    /// The SKU, or the UPC where the order has no SKU.
    pub sku: String,
    pub title: String,
    /// In the unit of the weights of the merchant's order lines; null if the line has none.
    #[schema(required)]
    pub weight: Option<f64>,
    /// The amount that was paid for the unit.
    pub value_cents: i64,
}

/// An order of a return is not among those that the caller has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("order {order} of return {rma} is not loaded")]
pub struct OrderNotLoaded {
    rma: String,
    order: String,
}

pub fn label_message_schema() -> Value {
    json_schema::<LabelMessage>("Label request message")
}

impl LabelForm {
    /// The form that shoppers need for a return method.
    pub fn usual_for(method: ReturnMethod) -> Self {
        match method {
            ReturnMethod::ExpressReturns => Self::QrCode,
            ReturnMethod::MailBack | ReturnMethod::CustomerKeep => Self::Pdf,
        }
    }
}

impl LabelRequested {
    /// The requests for the parcels of a return that starts, each with an id from `new_ids`. There are none for a
    /// merchant without an endpoint for them, for units that the shopper keeps, and while the return waits for review.
    pub fn of_return<'a>(
        merchant: &Merchant,
        rma: &Rma,
        order: impl Fn(&str) -> Option<&'a Order>,
        new_ids: impl FnOnce(usize) -> Vec<Uuid>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Self>, OrderNotLoaded> {
        let is_sent = rma.return_method != ReturnMethod::CustomerKeep && !rma.is_in_review();
        if !is_sent || !merchant.requests_labels() {
            return Ok(Vec::new());
        }
        let parcels = parcels(rma, merchant.settings.parcel_max_weight, &order)?;
        let count = i32::try_from(parcels.len()).unwrap_or(i32::MAX);
        let ids = new_ids(parcels.len());
        let numbered = ids.into_iter().zip(1..).zip(&parcels);
        let request = |((id, number), units): ((Uuid, i32), &Vec<&RmaUnit>)| {
            let parcel = Parcel { number, count, units };
            Self::of_parcel(merchant, rma, parcel, &order, id, now)
        };
        numbered.map(request).collect()
    }

    /// The request for a parcel of a return.
    pub fn of_parcel<'a>(
        merchant: &Merchant,
        rma: &Rma,
        parcel: Parcel<'_>,
        order: impl Fn(&str) -> Option<&'a Order>,
        id: Uuid,
        now: DateTime<Utc>,
    ) -> Result<Self, OrderNotLoaded> {
        let units = parcel.units.iter().map(|unit| LabelUnit::new(rma, unit, &order));
        Ok(Self {
            label_request_id: id,
            merchant: rma.merchant.clone(),
            rma_identifier: rma.rma_identifier.clone(),
            parcel: parcel.number,
            parcel_count: parcel.count,
            reference: reference(&rma.rma_identifier, parcel.number),
            return_method: rma.return_method,
            form: LabelForm::usual_for(rma.return_method),
            currency: rma.currency.clone(),
            from: LabelSender::new(rma, parcel.units, &order)?,
            to: LabelReceiver::of(merchant),
            units: units.collect::<Result<_, _>>()?,
            requested_at: now,
        })
    }
}

/// The units of each parcel of a return, without those that were canceled. Each unit goes into the first parcel that it does
/// not make too heavy. One that is too heavy itself gets a parcel; one of unknown weight fits into every parcel.
fn parcels<'r, 'a>(
    rma: &'r Rma,
    max_weight: Option<f64>,
    order: impl Fn(&str) -> Option<&'a Order>,
) -> Result<Vec<Vec<&'r RmaUnit>>, OrderNotLoaded> {
    // Sums of fractions are not exact.
    let most = max_weight.map_or(f64::INFINITY, |weight| weight * (1.0 + 1e-9));
    let mut parcels: Vec<(f64, Vec<&RmaUnit>)> = Vec::new();
    for unit in rma.units.iter().filter(|unit| unit.canceled_at.is_none()) {
        let weight = line_of(rma, unit, &order)?.and_then(|line| line.weight).unwrap_or_default();
        match parcels.iter_mut().find(|(sum, _)| weight <= 0.0 || *sum + weight <= most) {
            Some((sum, units)) => {
                *sum += weight;
                units.push(unit);
            }
            None => parcels.push((weight, vec![unit])),
        }
    }
    Ok(parcels.into_iter().map(|(_, units)| units).collect())
}

/// The text on the label of a parcel. That of the first parcel is the RMA alone, which every warehouse knows.
fn reference(rma_identifier: &str, parcel: i32) -> String {
    if parcel == 1 { rma_identifier.to_owned() } else { format!("{rma_identifier}/{parcel}") }
}

fn order_of<'a>(
    rma: &Rma,
    unit: &RmaUnit,
    order: impl Fn(&str) -> Option<&'a Order>,
) -> Result<&'a Order, OrderNotLoaded> {
    let name = &unit.id.order_identifier;
    let missing = || OrderNotLoaded { rma: rma.rma_identifier.clone(), order: name.clone() };
    order(name).ok_or_else(missing)
}

/// The line of a unit, if its order still has it.
fn line_of<'a>(
    rma: &Rma,
    unit: &RmaUnit,
    order: impl Fn(&str) -> Option<&'a Order>,
) -> Result<Option<&'a OrderLine>, OrderNotLoaded> {
    let name = &unit.id.order_line_item_identifier;
    Ok(order_of(rma, unit, order)?.items.iter().find(|line| line.identifier == *name))
}

impl LabelSender {
    /// The shopper, at the address of the first unit's order. The giftee of a gift has its own e-mail address.
    fn new<'a>(
        rma: &Rma,
        units: &[&RmaUnit],
        order: impl Fn(&str) -> Option<&'a Order>,
    ) -> Result<Self, OrderNotLoaded> {
        let mut orders = units.iter().map(|unit| order_of(rma, unit, &order));
        // A parcel has a unit.
        let missing =
            || OrderNotLoaded { rma: rma.rma_identifier.clone(), order: "none".to_owned() };
        let order = orders.next().ok_or_else(missing)??;
        let email = rma.other_email().or_else(|| order.customer.email_address());
        Ok(Self { address: order.shipping_address.clone(), email: email.map(str::to_owned) })
    }
}

impl LabelReceiver {
    /// The warehouse that receives the merchant's returns, if one does.
    fn of(merchant: &Merchant) -> Option<Self> {
        let mut warehouses = merchant.warehouses.iter();
        let (identifier, warehouse) = warehouses.find(|(_, it)| it.settings.receives_returns)?;
        let address = warehouse.address.as_ref()?;
        Some(Self {
            identifier: warehouse.external_identifier.as_ref().unwrap_or(identifier).clone(),
            company: address.company.clone(),
            address: Address {
                name: address.name.clone(),
                street1: address.street.clone(),
                street2: address.street2.clone(),
                city: address.city.clone(),
                state: Some(address.state.clone()),
                zip_code: Some(address.zip.clone()),
                country_code: warehouse.settings.country_code.clone()?,
                phone: None,
            },
        })
    }
}

impl LabelUnit {
    fn new<'a>(
        rma: &Rma,
        unit: &RmaUnit,
        order: impl Fn(&str) -> Option<&'a Order>,
    ) -> Result<Self, OrderNotLoaded> {
        let line = line_of(rma, unit, order)?;
        Ok(Self {
            id: unit.id.clone(),
            sku: unit.sku.clone(),
            title: line.map_or(&unit.title, |line| &line.title).clone(),
            weight: line.and_then(|line| line.weight),
            value_cents: unit.amounts.paid(),
        })
    }
}

impl LabelCanceled {
    /// The cancellation of a label of this request.
    pub fn new(
        label_request_id: Uuid,
        (merchant, rma_identifier, parcel): (&MerchantId, &str, i32),
        tracking_number: Option<&str>,
        reason: CancelReason,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            label_request_id,
            merchant: merchant.clone(),
            rma_identifier: rma_identifier.to_owned(),
            parcel,
            reference: reference(rma_identifier, parcel),
            tracking_number: tracking_number.map(str::to_owned),
            reason,
            canceled_at: now,
        }
    }
}
