//! The messages that changes of returns cause: to merchants, and as mails to shoppers.

use std::sync::Arc;

use delivery::Deliveries;
use domain::merchant::Merchant;
use domain::returns::{MailOccasion, Rma};
use platform::database::DatabaseError;

use crate::mails::NewMail;
use crate::settings::WebPages;

#[derive(Clone)]
pub(crate) struct Messages {
    pub(crate) deliveries: Deliveries,
    portal_url: Arc<str>,
}

impl Messages {
    pub(crate) fn new(deliveries: Deliveries, portal: &WebPages) -> Self {
        Self { deliveries, portal_url: portal.public_url.trim_end_matches('/').into() }
    }

    /// The mail to the shopper about an occasion; `None` if this installation sends no mails, or the merchant none about
    /// this event.
    pub(crate) fn mail(
        &self,
        rma: &Rma,
        occasion: &MailOccasion<'_>,
    ) -> Result<Option<NewMail>, DatabaseError> {
        if !self.deliveries.sends_mail() {
            return Ok(None);
        }
        let merchant = self.deliveries.merchant(&rma.merchant);
        let merchant = merchant.filter(|it| it.settings.mails.are_sent(occasion.event));
        merchant.map(|merchant| self.write(&merchant, rma, occasion)).transpose()
    }

    /// Writes a mail, also if none is sent.
    pub(crate) fn write(
        &self,
        merchant: &Merchant,
        rma: &Rma,
        occasion: &MailOccasion<'_>,
    ) -> Result<NewMail, DatabaseError> {
        NewMail::write(&self.portal_url, merchant, rma, occasion)
    }
}
