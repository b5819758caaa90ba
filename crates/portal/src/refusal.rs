//! The reasons why units cannot be returned, in words.

use chrono::{DateTime, TimeDelta, Utc};
use domain::returns::IneligibleCode;
use serde::Deserialize;

use crate::page::Page;

/// Why a unit cannot be returned, as rma-engine responds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    /// The merchant's rule that caused it.
    pub(crate) rule: Option<String>,
}

/// A time on the day before the time for returns ended.
pub(crate) fn last_day(until: DateTime<Utc>) -> DateTime<Utc> {
    until.checked_sub_signed(TimeDelta::seconds(1)).unwrap_or(until)
}

/// The sentence for a refusal: the merchant's words about the rule, or ours. `until` is the end of the unit's time for
/// returns.
pub(crate) fn sentence(page: &Page, refusal: &Refusal, until: Option<DateTime<Utc>>) -> String {
    let code: Option<IneligibleCode> = refusal.code.parse().ok();
    // The words about a rule that names a warehouse do not say that another unit of the return goes elsewhere.
    let by_rule = code != Some(IneligibleCode::OtherWarehouse);
    let rule = refusal.rule.as_deref().filter(|_| by_rule);
    if let Some(text) = page.portal.rule_text(rule, page.language) {
        return text.to_owned();
    }
    match (code, until) {
        (Some(IneligibleCode::WindowExpired), Some(until)) => {
            page.t1("ineligible-window-expired-on", "date", page.date(&last_day(until)))
        }
        (code, _) => page.t(code.map_or("ineligible-other", text_id)),
    }
}

fn text_id(code: IneligibleCode) -> &'static str {
    match code {
        IneligibleCode::OrderCancelled => "ineligible-order-cancelled",
        IneligibleCode::NotShipped => "ineligible-not-shipped",
        IneligibleCode::AlreadyReturned => "ineligible-already-returned",
        IneligibleCode::AlreadyRefunded => "ineligible-already-refunded",
        IneligibleCode::AlreadyExchanged => "ineligible-already-exchanged",
        IneligibleCode::TooHeavyForExpress => "ineligible-too-heavy-for-express",
        IneligibleCode::FinalSale => "ineligible-final-sale",
        IneligibleCode::WindowExpired => "ineligible-window-expired",
        IneligibleCode::NotReturnable => "ineligible-not-returnable",
        IneligibleCode::OutcomeNotOffered => "ineligible-outcome-not-offered",
        IneligibleCode::MethodNotOffered => "ineligible-method-not-offered",
        IneligibleCode::KeepNotAllowed => "ineligible-keep-not-allowed",
        IneligibleCode::OtherWarehouse => "ineligible-other-warehouse",
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use texts::{Language, Texts};

    use super::*;

    #[test]
    fn every_code_has_a_sentence_in_every_language() {
        for language in Language::TRANSLATED {
            let texts: Vec<_> = IneligibleCode::ALL
                .iter()
                .map(|code| Texts::of(language).t(text_id(*code)))
                .collect();
            assert!(texts.iter().all(|text| text.ends_with('.')), "{texts:?}");
        }
    }

    #[test]
    fn the_last_day_is_named() {
        let page = Page::without_merchant(&TestRequest::get().to_http_request());
        let until = Some("2026-12-03T00:00:00Z".parse().unwrap());
        let sentence = |code: &str, until| {
            let refusal = Refusal { code: code.to_owned(), rule: Some("unknown".to_owned()) };
            sentence(&page, &refusal, until)
        };
        assert!(sentence("window_expired", until).contains("2 December 2026"));
        assert_eq!(sentence("final_sale", until), page.t("ineligible-final-sale"));
        assert_eq!(sentence("of_a_newer_version", None), page.t("ineligible-other"));
    }

    #[test]
    fn the_merchant_has_its_own_words_about_a_rule() {
        let mut page = crate::basket::tests::page();
        let refusal = Refusal { code: "not_returnable".to_owned(), rule: Some("sale".to_owned()) };
        assert_eq!(sentence(&page, &refusal, None), "Sale items stay yours.");
        let elsewhere = Refusal { code: "other_warehouse".to_owned(), ..refusal.clone() };
        assert_eq!(sentence(&page, &elsewhere, None), page.t("ineligible-other-warehouse"));
        page.language = Language::De;
        assert_eq!(sentence(&page, &refusal, None), page.t("ineligible-not-returnable"));
    }
}
