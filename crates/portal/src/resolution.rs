//! The page on which the shopper chooses a refund, an exchange or a gift card for each item.

mod options;

use actix_web::{HttpResponse, web};
use askama::Template;
use futures_util::future::try_join_all;
use pages::form::Fields;
use platform::http::Sequential;
use url::form_urlencoded;

use self::options::{Exchange, ItemOptions};
use crate::{
    basket::{self, Item},
    choose::{self, Accepted},
    draft::{MAX_QUERY_BYTES, Resolution, ReturnDraft},
    error::PageError,
    offer::{self, Offer, Pickers},
    page::{Page, Step, html, redirect, rejected},
    sent::{Problem, Sent},
    visit::{Proven, Visit},
};

#[derive(Template)]
#[template(path = "resolution.html")]
struct ResolutionPage {
    page: Page,
    items: Vec<ItemOptions>,
    problems: Vec<Problem>,
    hidden: Vec<(&'static str, String)>,
    form_method: &'static str,
    back: String,
    /// This page with all variants, for browsers without scripts.
    plain: String,
}

/// The variants of one item.
#[derive(Template)]
#[template(path = "variants.html")]
struct VariantsPart {
    page: Page,
    index: usize,
    key: String,
    pickers: Pickers,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(
        web::resource("/{merchant}/resolution")
            .route(web::get().to(show_resolutions))
            .route(web::post().to(show_resolutions)),
    )
    .route("/{merchant}/variants", web::get().to(show_variants));
}

async fn show_resolutions(
    Sequential(Proven(visit), sent): Sequential<Proven, Sent>,
) -> Result<HttpResponse, PageError> {
    let draft = if sent.fields.has("choose") {
        match choose::accept(&visit, &sent).await? {
            Accepted::ReturnDraft(draft) => draft,
            Accepted::Page(page) => return Ok(page),
        }
    } else {
        sent.draft.clone()
    };
    if draft.choices.is_empty() {
        return Ok(redirect(&visit.url("/choose")));
    }
    let Some(items) = basket::load(&visit, &draft).await? else {
        return choose::show_again(&visit, &draft).await;
    };
    let is_later = sent.has_scripts();
    let offers = if is_later { Vec::new() } else { load_offers(&visit, &items).await? };
    let page = ResolutionPage::new(&visit, &draft, &items, &offers, &sent.fields);
    html(&page.page, &page)
}

/// A part of the page that scripts load, because the merchant can take seconds to respond.
async fn show_variants(
    Sequential(Proven(visit), sent): Sequential<Proven, Sent>,
) -> Result<HttpResponse, PageError> {
    let items = basket::load(&visit, &sent.draft).await?.unwrap_or_default();
    let item = items.first().ok_or(PageError::Changed)?;
    let offer = offer::load(&visit, item).await?;
    let page = Page::new(&visit, None);
    let part = VariantsPart {
        index: sent.fields.text("row").parse().unwrap_or_default(),
        key: item.key(),
        pickers: Pickers::new(&page, item, &offer, &sent.fields),
        page,
    };
    html(&part.page, &part)
}

/// The merchant's variants for each item that can be exchanged.
async fn load_offers(visit: &Visit, items: &[Item]) -> Result<Vec<Option<Offer>>, PageError> {
    let page = Page::new(visit, None);
    let is_gift = is_gift(visit);
    let load = async |item: &Item| {
        let can_exchange = item.resolutions(&page, is_gift).contains(&Resolution::Exchange);
        if can_exchange { offer::load(visit, item).await.map(Some) } else { Ok(None) }
    };
    Ok(try_join_all(items.iter().map(load)).await?)
}

pub(crate) fn is_gift(visit: &Visit) -> bool {
    visit.proofs().iter().any(|proof| proof.is_gift)
}

/// Reads the form of this page, which leads to the next step.
pub(crate) async fn accept(visit: &Visit, sent: &Sent) -> Result<Accepted, PageError> {
    let Some(items) = basket::load(visit, &sent.draft).await? else {
        return Ok(Accepted::Page(choose::show_again(visit, &sent.draft).await?));
    };
    let offers = load_offers(visit, &items).await?;
    let mut page = ResolutionPage::new(visit, &sent.draft, &items, &offers, &sent.fields);
    page.check();
    if !page.problems.is_empty() {
        return Ok(Accepted::Page(rejected(&page.page, &page)?));
    }
    let choices = items.iter().zip(&page.items).map(|(item, shown)| shown.choice(&item.choice));
    let draft = ReturnDraft { choices: choices.collect(), method: sent.draft.method.clone() };
    Ok(Accepted::new(visit, draft, "/method", sent))
}

/// The page with choices that are not possible any more.
pub(crate) async fn show_again(
    visit: &Visit,
    draft: &ReturnDraft,
    items: &[Item],
) -> Result<HttpResponse, PageError> {
    let offers = load_offers(visit, items).await?;
    let mut page = ResolutionPage::new(visit, draft, items, &offers, &Fields::default());
    page.check();
    if page.problems.is_empty() {
        return Ok(redirect(&draft.url(visit, "/resolution")));
    }
    rejected(&page.page, &page)
}

impl ResolutionPage {
    /// The page. Without offers, scripts load them.
    fn new(
        visit: &Visit,
        draft: &ReturnDraft,
        items: &[Item],
        offers: &[Option<Offer>],
        fields: &Fields,
    ) -> Self {
        let page = Page::new(visit, Some(Step::Resolution));
        let query = draft.query();
        let is_gift = is_gift(visit);
        let shown = items.iter().enumerate().map(|(index, item)| {
            let exchange = match offers.get(index) {
                Some(Some(offer)) => Exchange::Shown(Pickers::new(&page, item, offer, fields)),
                Some(None) => Exchange::None,
                None => Exchange::Later(part_url(visit, item, index, fields)),
            };
            ItemOptions::new(&page, item, index, is_gift, exchange, fields)
        });
        let items: Vec<_> = shown.collect();
        let is_long = query.len() + items.len() * 200 > MAX_QUERY_BYTES;
        Self {
            items,
            problems: Vec::new(),
            hidden: draft.fields(),
            form_method: if is_long { "post" } else { "get" },
            back: draft.url(visit, "/choose"),
            plain: draft.url(visit, "/resolution"),
            page,
        }
    }

    fn check(&mut self) {
        let problems = self.items.iter_mut().filter_map(|item| item.check(&self.page));
        self.problems = problems.collect();
    }
}

/// The URL of the part with the variants of an item.
fn part_url(visit: &Visit, item: &Item, index: usize, fields: &Fields) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("i", &item.choice.value()).append_pair("row", &index.to_string());
    for name in (0..4).map(|picker| offer::field(&item.key(), picker)) {
        if fields.has(&name) {
            query.append_pair(&name, fields.text(&name));
        }
    }
    format!("{}?{}", visit.url("/variants"), query.finish())
}
