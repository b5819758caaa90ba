//! The caller of an operation that staff, merchants and shoppers can use.

use std::{future::Future, pin::Pin};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web};
use domain::access::Scope;

use super::{HEADER, ProofKeys, ProvenOrder};
use crate::{ErrorKind, Failure, Problem, identity::Caller};

/// The actor of a shopper's changes in timelines.
const SHOPPER: &str = "shopper";

/// The reason why a shopper may not see or do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("this needs a valid proof of the order in {HEADER}")]
    Required,
    #[error("a proof in {HEADER} has expired")]
    Expired,
}

impl Failure for ProofError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Denied
    }

    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Required => "proof_required",
            Self::Expired => "proof_expired",
        })
    }
}

/// The orders that a shopper has proven to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenOrders(Vec<ProvenOrder>);

/// The caller of an operation that shoppers can use too.
#[derive(Debug, Clone)]
pub struct Requester {
    pub caller: Caller,
    proven: Result<ProvenOrders, ProofError>,
}

impl Requester {
    /// Allows callers with one of `scopes`, which are no shoppers, and shoppers with proofs. Returns the
    /// orders of a shopper. The error of any other caller names the first scope.
    pub fn authorize(&self, scopes: &[Scope]) -> Result<Option<&ProvenOrders>, Problem> {
        let refused = match self.caller.require_any(scopes) {
            Ok(()) => return Ok(None),
            Err(refused) => refused,
        };
        if !self.caller.claims.scope.contains(Scope::Shopper) {
            return Err(refused.into());
        }
        match &self.proven {
            Ok(proven) => Ok(Some(proven)),
            Err(error) => Err((*error).into()),
        }
    }

    /// The name of a caller in timelines, where `shopper` is the result of [`Self::authorize`].
    pub fn actor(&self, shopper: Option<&ProvenOrders>) -> &str {
        if shopper.is_some() { SHOPPER } else { self.caller.actor() }
    }
}

impl FromRequest for Requester {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let caller = Caller::authenticate(&request).await?;
            let proven = ProvenOrders::of(&request, &caller);
            Ok(Self { caller, proven })
        })
    }
}

impl ProvenOrders {
    /// The orders of all proofs in the header. One bad or expired proof makes the request fail.
    fn of(request: &HttpRequest, caller: &Caller) -> Result<Self, ProofError> {
        let keys = request.app_data::<web::Data<ProofKeys>>().ok_or(ProofError::Required)?;
        let merchant = caller.merchant().map_err(|_no_merchant| ProofError::Required)?;
        let mut orders = Vec::new();
        for line in request.headers().get_all(HEADER) {
            let line = line.to_str().map_err(|_not_ascii| ProofError::Required)?;
            for proof in line.split(',').map(str::trim) {
                orders.push(keys.open(merchant, proof)?);
            }
        }
        if orders.is_empty() { Err(ProofError::Required) } else { Ok(Self(orders)) }
    }

    /// Rejects an order without a proof. Returns whether the shopper is its giftee.
    pub fn require(&self, order: &str) -> Result<bool, ProofError> {
        let mut of_order = self.0.iter().filter(|proven| proven.order_identifier == order);
        let first = of_order.next().ok_or(ProofError::Required)?;
        // A shopper with both kinds of proofs is the buyer.
        Ok(first.is_gift && of_order.all(|proven| proven.is_gift))
    }

    /// Whether the order was proven as a giftee or, with `is_gift` false, as the buyer.
    pub fn contains(&self, order: &str, is_gift: bool) -> bool {
        let mut orders = self.0.iter();
        orders.any(|proven| proven.order_identifier == order && proven.is_gift == is_gift)
    }

    /// Whether one of the orders is a gift for the shopper.
    pub fn has_gift(&self) -> bool {
        self.0.iter().any(|proven| proven.is_gift)
    }
}
