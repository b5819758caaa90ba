//! A return for previews and tests, without data of a shopper.

use domain::merchant::{Language, MailEvent, Merchant, ReviewDecision};
use domain::returns::{
    Amounts, DecidedReview, MailOccasion, PurchasedUnit, RequestedUnit, Resolution, ReturnMethod,
    ReturnRequest, ReturnReview, ReturnTerms, Rma, RmaStatus, RmaUnit, UnitId, Variant, Withdrawal,
};
use platform::Timestamp;

/// The price of each unit.
const PRICE_CENTS: i64 = 4_995;

/// A return of a unit for a refund and one for another variant.
pub(super) fn rma(merchant: &Merchant, language: Language, now: Timestamp) -> Rma {
    let offers = &merchant.settings.returns.methods;
    let first = offers.first();
    let request = ReturnRequest {
        return_method: first.map_or(ReturnMethod::MailBack, |offer| offer.method),
        units: Vec::new(),
        gift_refund_only: false,
        giftee_email: None,
        withdrawal: None,
        language: Some(language),
        staff_override: None,
    };
    let variant = Variant {
        sku: "SHOE-43".to_owned(),
        title: "Trail running shoe, navy, 43".to_owned(),
        unit_price_amount_cents: Some(PRICE_CENTS),
        product_identifier: None,
    };
    let units = vec![
        unit("1", "Heavy cotton T-shirt, rust, M", Resolution::Refund),
        unit("2", "Trail running shoe, navy, 42", Resolution::Exchange { variant }),
    ];
    let terms = ReturnTerms {
        return_shipping_cost_cents: first.map_or(0, |offer| offer.shipping_cost_cents),
        cost_rule: None,
        gift_card_bonus_amount_cents: 0,
        currency: &merchant.settings.currency,
        managed_receiving: merchant.settings.managed_receiving,
        review: None,
        return_to: None,
    };
    Rma::create(merchant.identifier.clone(), "RMA-SAMPLE", &request, units, terms, now)
}

fn unit(line: &str, title: &str, resolution: Resolution) -> RmaUnit {
    let requested = RequestedUnit {
        id: UnitId {
            order_identifier: "SAMPLE-1001".to_owned(),
            order_line_item_identifier: line.to_owned(),
            unit: 1,
        },
        return_reason: "TOO_SMALL".to_owned(),
        comment: None,
        resolution,
    };
    let purchased = PurchasedUnit {
        sku: "SAMPLE".to_owned(),
        upc: None,
        title: title.to_owned(),
        image_url: None,
        unit_price_amount_cents: PRICE_CENTS,
        amounts: Amounts { product_amount_cents: PRICE_CENTS, ..Amounts::default() },
        original_order_identifier: None,
    };
    RmaUnit::new(&requested, purchased)
}

/// Brings the return into the state that it has after an event.
pub(super) fn apply(rma: &mut Rma, event: MailEvent) {
    match event {
        MailEvent::Confirmed
        | MailEvent::Received
        | MailEvent::Refunded
        | MailEvent::AboutToExpire => {}
        MailEvent::ExchangePlaced => {
            for unit in rma.units.iter_mut().filter(|unit| unit.is_for_exchange()) {
                unit.exchange_order_identifier = Some("SAMPLE-1002".to_owned());
            }
        }
        MailEvent::Declined => {
            let at = rma.created_at;
            let decision = ReviewDecision::Decline;
            let note = Some("The items were worn.".to_owned());
            rma.status = RmaStatus::Declined;
            rma.review = Some(ReturnReview {
                rule: "sample".to_owned(),
                within_days: 3,
                due_at: at,
                then: decision,
                decided: Some(DecidedReview { decision, at, by: None, note }),
            });
        }
        MailEvent::Withdrawal => {
            let (name, email) = ("Mia Moreau".to_owned(), "mia@shopper.example".to_owned());
            rma.withdrawal = Some(Withdrawal { name, email });
        }
    }
}

/// The occasion that the return gives for an event.
pub(super) fn occasion(rma: &Rma, event: MailEvent) -> MailOccasion<'_> {
    let is_about = |unit: &&RmaUnit| match event {
        MailEvent::Refunded => !unit.is_for_exchange(),
        MailEvent::ExchangePlaced => unit.is_for_exchange(),
        MailEvent::Confirmed
        | MailEvent::Received
        | MailEvent::Declined
        | MailEvent::AboutToExpire
        | MailEvent::Withdrawal => true,
    };
    MailOccasion { event, units: rma.units.iter().filter(is_about).collect() }
}
