//! The shopper's cookie: the proofs of the orders that the shopper found, and the chosen language.
//!
//! The cookie is sealed, so a browser can neither read nor change it. It belongs to one merchant; on the
//! pages of another merchant its proofs do not count.

use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite},
};
use chrono::{DateTime, Utc};
use domain::{merchant::Sealed, returns::Withdrawal};
use platform::sealing::{SealError, Sealer};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

/// The prefix makes browsers accept the cookie only from this host, over TLS.
const NAME: &str = "__Host-shopper";
const CONTEXT: &str = "shopper cookie";
/// Browsers drop cookies of more than 4,096 bytes, including the name and the attributes.
const MAX_COOKIE_BYTES: usize = 3900;
const MAX_CONFIRMED: usize = 4;

/// The contents of the cookie.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shopper {
    #[serde(rename = "m")]
    pub(crate) merchant: String,
    #[serde(rename = "p", default)]
    proofs: Vec<Proof>,
    /// The code of the chosen language.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(crate) lang: Option<String>,
    /// The latest withdrawal that is not confirmed yet.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    withdrawal: Option<BegunWithdrawal>,
    /// The latest returns of this visit, oldest first.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    confirmed: Vec<Confirmed>,
}

/// The person of a withdrawal from the contract, who must not be in a URL.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BegunWithdrawal {
    #[serde(rename = "o")]
    order: String,
    #[serde(rename = "p")]
    person: Withdrawal,
}

/// A return that the shopper confirmed in this visit.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Confirmed {
    /// The digest of the returned lines.
    #[serde(rename = "d")]
    lines: u64,
    #[serde(rename = "r")]
    rma: String,
}

/// The right to work on one order.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    #[serde(rename = "o")]
    pub(crate) order: String,
    #[serde(rename = "p")]
    pub(crate) proof: String,
    #[serde(rename = "g", default)]
    pub(crate) is_gift: bool,
    #[serde(rename = "e")]
    pub(crate) expires_at: DateTime<Utc>,
}

impl Shopper {
    /// The shopper of a request. A cookie that does not open counts as none.
    pub(crate) fn of(request: &HttpRequest, sealer: &Sealer) -> Self {
        request.cookie(NAME).and_then(|cookie| open(sealer, cookie.value())).unwrap_or_default()
    }

    /// The same shopper on the pages of a merchant.
    #[must_use]
    pub(crate) fn at(mut self, merchant: &str) -> Self {
        if self.merchant != merchant {
            self.proofs.clear();
            self.withdrawal = None;
            self.confirmed.clear();
            merchant.clone_into(&mut self.merchant);
        }
        self
    }

    /// The proofs that are valid now, oldest first.
    pub(crate) fn proofs(&self, now: DateTime<Utc>) -> Vec<&Proof> {
        self.proofs.iter().filter(|proof| proof.expires_at > now).collect()
    }

    /// The proof of the order that the shopper has to find again: the first that expired, else the last one.
    pub(crate) fn proof_to_renew(&self, now: DateTime<Utc>) -> Option<&Proof> {
        let expired = self.proofs.iter().find(|proof| proof.expires_at <= now);
        expired.or(self.proofs.last())
    }

    /// Adds an order, or renews its proof. A return is for gifts or for own orders, so proofs of the other kind are
    /// removed.
    pub(crate) fn add(&mut self, proof: Proof) {
        self.proofs.retain(|stored| stored.order != proof.order && stored.is_gift == proof.is_gift);
        self.proofs.push(proof);
    }

    /// Keeps the person of a withdrawal until the confirmation.
    pub(crate) fn begin_withdrawal(&mut self, order: &str, person: Withdrawal) {
        self.withdrawal = Some(BegunWithdrawal { order: order.to_owned(), person });
    }

    /// The person who began to withdraw from the contract of an order. A second tab may be about another
    /// order and another person.
    pub(crate) fn withdrawing(&self, order: &str) -> Option<&Withdrawal> {
        let begun = self.withdrawal.as_ref().filter(|begun| begun.order == order);
        begun.map(|begun| &begun.person)
    }

    /// Removes the person, whom the return has now.
    pub(crate) fn end_withdrawal(&mut self, order: &str) {
        if self.withdrawing(order).is_some() {
            self.withdrawal = None;
        }
    }

    /// Remembers a confirmed return by the digest of its lines, so that Back does not lead to a second one.
    pub(crate) fn remember(&mut self, lines: u64, rma: &str) {
        self.forget(rma);
        self.confirmed.push(Confirmed { lines, rma: rma.to_owned() });
        let surplus = self.confirmed.len().saturating_sub(MAX_CONFIRMED);
        self.confirmed.drain(..surplus);
    }

    /// Forgets a return that was canceled.
    pub(crate) fn forget(&mut self, rma: &str) {
        self.confirmed.retain(|confirmed| confirmed.rma != rma);
    }

    /// The latest return of the same lines in this visit.
    pub(crate) fn confirmed(&self, lines: u64) -> Option<&str> {
        let same = self.confirmed.iter().rev().find(|confirmed| confirmed.lines == lines);
        same.map(|confirmed| confirmed.rma.as_str())
    }

    /// The cookie to send. Leaves out the oldest orders if the cookie becomes too long.
    pub(crate) fn cookie(&self, sealer: &Sealer) -> Result<Cookie<'static>, SealError> {
        let mut shopper = self.clone();
        loop {
            let text = serde_json::to_string(&shopper).map_err(|_impossible| SealError::Damaged)?;
            let sealed = sealer.seal(CONTEXT, &text)?;
            if sealed.0.len() <= MAX_COOKIE_BYTES || shopper.proofs.is_empty() {
                return Ok(build(sealed.0));
            }
            shopper.proofs.remove(0);
        }
    }
}

/// A cookie that removes the shopper's.
pub(crate) fn removal() -> Cookie<'static> {
    let mut cookie = build(String::new());
    cookie.make_removal();
    cookie
}

fn open(sealer: &Sealer, value: &str) -> Option<Shopper> {
    let text = sealer.open(CONTEXT, &Sealed(value.to_owned())).ok()?;
    serde_json::from_str(text.expose_secret()).ok()
}

/// Browsers delete the cookie when they close. A link in an e-mail can lead to a page with it.
fn build(value: String) -> Cookie<'static> {
    Cookie::build(NAME, value)
        .path("/")
        .secure(true)
        .http_only(true)
        .same_site(SameSite::Lax)
        .finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use actix_web::test::TestRequest;
    use platform::{config::List, sealing};

    use super::*;

    pub(crate) fn sealer() -> Sealer {
        let key = "k1:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=".to_owned().into();
        Sealer::new(&sealing::Settings { keys: List(vec![key]) }).unwrap()
    }

    pub(crate) fn proof(order: &str, expires_at: &str) -> Proof {
        let expires_at = expires_at.parse().unwrap();
        Proof { order: order.to_owned(), proof: "p".repeat(300), is_gift: false, expires_at }
    }

    #[test]
    fn the_data_of_a_withdrawal_stay_at_one_merchant() {
        let mut shopper = shopper(&["A-1"]);
        let [name, email] = ["Ada Lovelace", "ada@b.test"].map(str::to_owned);
        shopper.begin_withdrawal("A-1", Withdrawal { name, email });
        let sent = sent_back(shopper.cookie(&sealer()).unwrap());
        assert!(sent == shopper);
        assert!(sent.at("other").withdrawing("A-1").is_none());
    }

    #[test]
    fn a_withdrawal_is_about_one_order() {
        let mut shopper = shopper(&["A-1", "A-2"]);
        let [name, email] = ["Ada Lovelace", "ada@b.test"].map(str::to_owned);
        let ada = Withdrawal { name, email };
        shopper.begin_withdrawal("A-1", ada.clone());
        shopper.end_withdrawal("A-2");
        assert_eq!(shopper.withdrawing("A-2"), None);
        assert_eq!(shopper.withdrawing("A-1"), Some(&ada));
        shopper.end_withdrawal("A-1");
        assert_eq!(shopper.withdrawing("A-1"), None);
    }

    fn shopper(orders: &[&str]) -> Shopper {
        let mut shopper = Shopper::default().at("acme");
        orders.iter().for_each(|order| shopper.add(proof(order, "2026-11-16T09:00:00Z")));
        shopper
    }

    fn sent_back(cookie: Cookie<'static>) -> Shopper {
        Shopper::of(&TestRequest::get().cookie(cookie).to_http_request(), &sealer())
    }

    #[test]
    fn a_cookie_comes_back_as_it_was_sent() {
        let mut shopper = shopper(&["A-1", "A-2"]);
        shopper.lang = Some("de".to_owned());
        let cookie = shopper.cookie(&sealer()).unwrap();
        assert!(!cookie.value().contains("acme"));
        assert!(sent_back(cookie) == shopper);
    }

    #[test]
    fn a_changed_cookie_counts_as_none() {
        let mut cookie = shopper(&["A-1"]).cookie(&sealer()).unwrap();
        let changed = cookie.value().replace('A', "B");
        cookie.set_value(changed);
        assert!(sent_back(cookie) == Shopper::default());
        let empty = TestRequest::get().to_http_request();
        assert!(Shopper::of(&empty, &sealer()) == Shopper::default());
    }

    #[test]
    fn proofs_count_for_one_merchant_and_until_they_expire() {
        let shopper = shopper(&["A-1", "A-2", "A-1"]);
        let orders = |shopper: &Shopper, now: &str| -> Vec<String> {
            let proofs = shopper.proofs(now.parse().unwrap());
            proofs.iter().map(|proof| proof.order.clone()).collect()
        };
        assert_eq!(orders(&shopper, "2026-11-16T08:59:59Z"), ["A-2", "A-1"]);
        assert!(orders(&shopper, "2026-11-16T09:00:00Z").is_empty());
        assert!(orders(&shopper.at("other"), "2026-11-16T08:00:00Z").is_empty());
    }

    #[test]
    fn orders_whose_proof_expired_are_found_again_one_by_one() {
        let now = "2026-11-16T09:00:00Z".parse().unwrap();
        let mut shopper = shopper(&["A-1", "A-2"]);
        let order = |shopper: &Shopper| {
            shopper.proof_to_renew(now).map(|proof| proof.order.clone()).unwrap_or_default()
        };
        shopper.add(proof("A-3", "2026-11-16T09:10:00Z"));
        assert_eq!(order(&shopper), "A-1");
        shopper.add(proof("A-1", "2026-11-16T09:30:00Z"));
        assert_eq!(order(&shopper), "A-2");
        shopper.add(proof("A-2", "2026-11-16T09:30:00Z"));
        assert_eq!(order(&shopper), "A-2");
        assert_eq!(order(&Shopper::default()), "");
    }

    #[test]
    fn gifts_and_own_orders_are_not_mixed() {
        let mut shopper = shopper(&["A-1"]);
        let gift = |order| Proof { is_gift: true, ..proof(order, "2026-11-16T09:00:00Z") };
        shopper.add(gift("G-1"));
        shopper.add(gift("G-2"));
        let proofs = shopper.proofs("2026-11-16T08:00:00Z".parse().unwrap());
        let orders: Vec<_> = proofs.iter().map(|proof| proof.order.as_str()).collect();
        assert_eq!(orders, ["G-1", "G-2"]);
    }

    #[test]
    fn the_latest_returns_of_a_visit_are_remembered() {
        let mut shopper = shopper(&["A-1"]);
        for line in 1..=5 {
            shopper.remember(line, &format!("RMA-{line}"));
        }
        shopper.remember(5, "RMA-6");
        let shopper = sent_back(shopper.cookie(&sealer()).unwrap());
        assert_eq!(shopper.confirmed(1), None);
        assert_eq!(shopper.confirmed(3), Some("RMA-3"));
        assert_eq!(shopper.confirmed(5), Some("RMA-6"));
        let mut canceled = shopper.clone();
        canceled.forget("RMA-6");
        assert_eq!(canceled.confirmed(5), Some("RMA-5"));
        assert_eq!(shopper.at("other").confirmed(5), None);
    }

    #[test]
    fn a_long_cookie_loses_its_oldest_orders() {
        let orders: Vec<_> = (0..30).map(|number| format!("A-{number}")).collect();
        let orders: Vec<_> = orders.iter().map(String::as_str).collect();
        let cookie = shopper(&orders).cookie(&sealer()).unwrap();
        assert!(cookie.value().len() <= MAX_COOKIE_BYTES);
        let kept = sent_back(cookie);
        assert_eq!(kept.proofs.last().unwrap().order, "A-29");
        assert!((5..30).contains(&kept.proofs.len()), "{}", kept.proofs.len());
    }
}
