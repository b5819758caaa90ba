//! The acknowledgement of a withdrawal: its content, and the date and time of receipt.

use actix_web::{
    HttpResponse, get,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    web,
};
use askama::Template;
use chrono::{DateTime, Utc};
use domain::returns::Withdrawal;

use crate::{
    error::PageError,
    method,
    page::{Page, html},
    returns::{Item, Return, items, return_url},
    visit::{Proven, Visit},
};

#[derive(Template)]
#[template(path = "withdrawal.html")]
struct Acknowledgement {
    page: Page,
    rma: Return,
    items: Vec<Item>,
    /// The path of the return's page.
    url: String,
}

#[get("/{merchant}/returns/{rma}/withdrawal")]
pub(super) async fn show_acknowledgement(
    Proven(visit): Proven,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (_, name) = path.into_inner();
    let acknowledgement = Acknowledgement::load(&visit, &name).await?;
    html(&acknowledgement.page, &acknowledgement)
}

#[get("/{merchant}/returns/{rma}/withdrawal.txt")]
pub(super) async fn download(
    Proven(visit): Proven,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (_, name) = path.into_inner();
    let acknowledgement = Acknowledgement::load(&visit, &name).await?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/plain; charset=utf-8"))
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"withdrawal.txt\""))
        .body(acknowledgement.text()))
}

impl Acknowledgement {
    async fn load(visit: &Visit, rma: &str) -> Result<Self, PageError> {
        let rma = Return::load(visit, rma).await?;
        if !rma.is_withdrawal() {
            return Err(PageError::NotFound);
        }
        Ok(Self {
            page: Page::new(visit, None),
            items: items(&rma),
            url: return_url(visit, &rma.rma_identifier, ""),
            rma,
        })
    }

    /// The date and the time of receipt at the merchant's place.
    fn received(&self) -> String {
        self.with_time("withdrawn-received", &self.rma.created_at)
    }

    /// The date and the time at which the last unit was canceled, or the return declined, if no unit is left.
    fn canceled(&self) -> Option<String> {
        let at = self.rma.units.iter().map(|unit| unit.canceled_at).max()??;
        let is_canceled = self.rma.active_units().next().is_none();
        let id = if self.rma.is_declined() { "withdrawn-declined" } else { "withdrawn-canceled" };
        is_canceled.then(|| self.with_time(id, &at))
    }

    /// A sentence with a date and a time at the merchant's place.
    fn with_time(&self, id: &str, at: &DateTime<Utc>) -> String {
        let local = self.page.portal.local(at);
        let time = local.format("%H:%M:%S");
        let offset = local.format("%:z");
        let time =
            self.page.t2("withdrawn-time", "time", time.to_string(), "offset", offset.to_string());
        self.page.t2(id, "date", self.page.date(at), "time", time)
    }

    /// The sentence before the content.
    fn content(&self) -> String {
        let is_valid = self.rma.active_units().next().is_some();
        self.page.t(if is_valid { "withdrawn-content" } else { "withdrawn-content-canceled" })
    }

    /// The title of an item, with a remark if it is canceled.
    fn item(&self, item: &Item) -> String {
        let title = item.title(&self.page);
        if item.is_canceled() {
            format!("{title} ({})", self.page.t("withdrawn-item-canceled"))
        } else {
            title
        }
    }

    /// The facts of the withdrawal: the id of each name, and the value.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("withdrawn-shop", self.page.portal.name.clone())];
        if let Some(Withdrawal { name, email }) = &self.rma.withdrawal {
            facts.extend([("withdrawn-name", name.clone()), ("withdrawn-contact", email.clone())]);
        }
        facts.extend(self.rma.orders().into_iter().map(|it| ("withdrawn-order", it.to_owned())));
        facts.push(("return-number", self.rma.rma_identifier.clone()));
        facts.push(("withdrawn-method", self.page.t(method::text_id(&self.rma.return_method))));
        facts.extend(self.cost().map(|cost| ("withdrawn-cost", cost)));
        facts
    }

    /// The cost of sending the items back; absent if there is nothing to send.
    fn cost(&self) -> Option<String> {
        let cents = self.rma.return_shipping_cost_cents.filter(|_| !self.rma.is_kept())?;
        Some(match cents {
            0 => self.page.t("method-free"),
            cents => self.page.money(&cents, &self.rma.currency),
        })
    }

    /// The acknowledgement as a text file, with one fact on each line.
    fn text(&self) -> String {
        let page = &self.page;
        let mut lines = vec![page.t("withdrawn-title"), String::new(), self.received()];
        lines.extend(self.canceled());
        lines.extend([self.content(), String::new()]);
        lines.extend(self.facts().iter().map(|(name, value)| format!("{} {value}", page.t(name))));
        lines.extend([String::new(), page.t("withdrawn-items")]);
        lines.extend(self.items.iter().map(|item| format!("- {}", self.item(item))));
        let lines = lines.iter().map(|line| line.replace(char::is_control, " "));
        lines.map(|line| format!("{line}\r\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use serde_json::json;

    use super::*;
    use crate::{merchant::Portal, returns::tests::rma};

    fn acknowledgement(language: &str, name: Option<&str>) -> Acknowledgement {
        let request = TestRequest::get().insert_header(("accept-language", language));
        let mut page = Page::without_merchant(&request.to_http_request());
        let portal = json!({
            "merchant": "a", "version": 1, "name": "Acme", "time_zone": "Europe/Berlin",
        });
        page.portal = serde_json::from_value::<Portal>(portal).unwrap().into();
        let mut rma =
            rma(&[json!({}), json!({}), json!({ "title": "Hat", "order_identifier": "A-2" })]);
        let email = "ada@b.test".to_owned();
        rma.withdrawal = name.map(|name| Withdrawal { name: name.to_owned(), email });
        Acknowledgement { page, items: items(&rma), url: String::new(), rma }
    }

    #[test]
    fn the_text_has_the_content_and_the_time_of_receipt() {
        let text = acknowledgement("en", Some("Ada\r\nLovelace")).text();
        for part in [
            "16 November 2026",
            "10:30:00 (UTC+01:00)",
            "Name: Ada  Lovelace\r\n",
            "ada@b.test\r\n",
            "Order number: A-1\r\n",
            "Order number: A-2\r\n",
            "RMA-1\r\n",
            "- 2 × Tee, L\r\n",
            "- Hat\r\n",
            "Acme\r\n",
            "Return method: By parcel\r\n",
            "Cost of sending the items back: €5.00\r\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text}");
    }

    #[test]
    fn a_canceled_withdrawal_says_so() {
        let canceled_at = |hour: u32| json!({ "canceled_at": format!("2026-11-17T{hour}:00:00Z") });
        let with_units = |units: &[serde_json::Value]| {
            let mut acknowledgement = acknowledgement("en", Some("Ada"));
            acknowledgement.rma = rma(units);
            acknowledgement.items = items(&acknowledgement.rma);
            let page = acknowledgement.render().unwrap();
            [page, acknowledgement.text()]
        };
        for text in with_units(&[canceled_at(10), canceled_at(11)]) {
            for part in ["was canceled on 17 November 2026 at 12:00:00", "Tee, L (canceled)"] {
                assert!(text.contains(part), "{part} in {text}");
            }
            for part in ["You withdraw from the contract", "How to send the items back"] {
                assert!(!text.contains(part), "{part} in {text}");
            }
        }
        for text in with_units(&[canceled_at(10), json!({})]) {
            assert!(text.contains("You withdraw from the contract"), "{text}");
            assert!(text.contains("Tee, L (canceled)") && !text.contains("was canceled"), "{text}");
        }
    }

    #[test]
    fn the_text_is_in_the_shoppers_language() {
        let text = acknowledgement("de", None).text();
        assert!(text.contains("16. November 2026") && text.contains("Bestellnummer"), "{text}");
        assert!(!text.contains("ada@b.test"), "{text}");
    }
}
