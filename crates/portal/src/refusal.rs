//! The reasons why units cannot be returned, in words.

use chrono::{DateTime, Utc};
use domain::returns::IneligibleCode;

use crate::{order::last_day, page::Page};

/// The sentence for a code. `until` is the end of the unit's time for returns.
pub(crate) fn sentence(page: &Page, code: &str, until: Option<DateTime<Utc>>) -> String {
    let code = code.parse().ok();
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
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::{language::Language, texts::Texts};

    #[test]
    fn every_code_has_a_sentence_in_every_language() {
        let codes = [
            IneligibleCode::OrderCancelled,
            IneligibleCode::NotShipped,
            IneligibleCode::AlreadyReturned,
            IneligibleCode::AlreadyRefunded,
            IneligibleCode::AlreadyExchanged,
            IneligibleCode::TooHeavyForExpress,
            IneligibleCode::FinalSale,
            IneligibleCode::WindowExpired,
        ];
        for language in Language::TRANSLATED {
            let texts: Vec<_> =
                codes.iter().map(|code| Texts::of(language).t(text_id(*code))).collect();
            assert!(texts.iter().all(|text| text.ends_with('.')), "{texts:?}");
        }
    }

    #[test]
    fn the_last_day_is_named() {
        let page = Page::without_merchant(&TestRequest::get().to_http_request());
        let until = Some("2026-12-03T00:00:00Z".parse().unwrap());
        assert!(sentence(&page, "window_expired", until).contains("2 December 2026"));
        assert_eq!(sentence(&page, "final_sale", until), page.t("ineligible-final-sale"));
        assert_eq!(sentence(&page, "of_a_newer_version", None), page.t("ineligible-other"));
    }
}
