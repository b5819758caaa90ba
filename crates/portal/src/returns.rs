//! The shopper's returns: the list, one return with its tracking, the calendar entry and the
//! cancellation.

mod calendar;
mod cancel;
mod items;
mod label_file;
mod labels;
mod list;
mod model;
mod renew;
mod show;
mod timeline;
mod tracking;

use actix_web::web;
use pages::path;

#[cfg(test)]
pub(crate) use self::model::tests;
pub(crate) use self::{
    items::{Item, items},
    model::Return,
};
use crate::visit::Visit;

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list::show_returns)
        .service(calendar::show_drop_off)
        .service(cancel::show_cancel)
        .service(cancel::cancel)
        .service(label_file::show_label)
        .service(renew::renew_labels)
        .service(show::show_return);
}

/// The path of a return's page, or of a page below it.
pub(crate) fn return_url(visit: &Visit, rma: &str, below: &str) -> String {
    visit.url(&format!("/returns/{}{below}", path!(rma)))
}
