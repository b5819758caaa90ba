//! The messages that changes of returns cause: to merchants, and as mails to shoppers.

use std::sync::Arc;

use delivery::Deliveries;
use domain::access::MerchantId;
use domain::merchant::{MailEvent, Merchant};
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
        let merchant = self.mailing_merchant(&rma.merchant, occasion.event);
        merchant.map(|merchant| self.write(&merchant, rma, occasion)).transpose()
    }

    /// The merchant, if its shoppers get mails about an event.
    pub(crate) fn mailing_merchant(
        &self,
        id: &MerchantId,
        event: MailEvent,
    ) -> Option<Arc<Merchant>> {
        let merchant = self.deliveries.merchant(id).filter(|_| self.deliveries.sends_mail());
        merchant.filter(|it| it.settings.mails.are_sent(event))
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
