//! Mails to shoppers about their returns.
//!
//! A mail is written when a return changes, from the state that the return has then, and is stored with the change. Its
//! texts are those of the crate `texts`, in the language that the shopper chose in the portal; its name, logo and colours
//! are the merchant's. Its link leads to the page of the return and proves nothing: a mail can be forwarded, and people
//! read it in the delivery log.
//!
//! See docs/decisions/mail.md.

pub(crate) mod drafts;
mod html;
mod items;
mod parts;
mod sample;
#[cfg(test)]
mod tests;
mod text;
mod writer;

use delivery::{NewDelivery, NewMessage};
use domain::access::MerchantId;
use domain::erasure::is_erased;
use domain::mail::Mail;
use domain::merchant::{MailEvent, Merchant};
use domain::message_kind::{MessageKind, MessageVersion};
use domain::returns::{MailOccasion, Rma};
use platform::database::DatabaseError;
use platform::telemetry;
use uuid::Uuid;

use self::writer::Writer;

/// A mail that is stored with a change of a return.
#[derive(Debug)]
pub(crate) struct NewMail {
    pub(crate) merchant: MerchantId,
    pub(crate) rma_identifier: String,
    event: MailEvent,
    /// The address of the shopper; `None` until it is read from the stored return.
    pub(crate) to: Option<String>,
    /// Without the recipient.
    mail: Mail,
    /// The trace of the request that caused the mail.
    traceparent: Option<String>,
}

impl NewMail {
    /// Writes the mail about an occasion.
    pub(crate) fn write(
        portal_url: &str,
        merchant: &Merchant,
        rma: &Rma,
        occasion: &MailOccasion<'_>,
    ) -> Result<Self, DatabaseError> {
        let mail = Writer::new(portal_url, merchant, rma).mail(occasion);
        Ok(Self {
            merchant: rma.merchant.clone(),
            rma_identifier: rma.rma_identifier.clone(),
            event: occasion.event,
            to: None,
            mail: mail.map_err(|error| {
                DatabaseError::Internal(format!("a mail cannot be rendered: {error}"))
            })?,
            traceparent: telemetry::traceparent(),
        })
    }

    /// The approximate size of the message.
    pub(crate) fn bytes(&self) -> usize {
        self.mail.text.len() + self.mail.html.len()
    }

    /// The message, if the shopper has an address and was not erased.
    pub(crate) fn delivery(self, id: Uuid) -> Result<Option<NewDelivery>, DatabaseError> {
        let Self { merchant, rma_identifier, event, to, mail, traceparent } = self;
        let Some(to) = to.filter(|to| to.contains('@') && !is_erased(to)) else { return Ok(None) };
        let key = Some(ordering_key(&rma_identifier));
        let message = message(merchant, key, event.message_event(), &Mail { to, ..mail })?;
        Ok(Some(NewDelivery { id, traceparent, message }))
    }

    /// The message of a test, which is about no return.
    fn test(self, to: String) -> Result<NewMessage, DatabaseError> {
        message(self.merchant, None, "sample", &Mail { to, ..self.mail })
    }
}

fn message(
    merchant: MerchantId,
    ordering_key: Option<String>,
    event: &str,
    mail: &Mail,
) -> Result<NewMessage, DatabaseError> {
    let body = serde_json::to_vec(mail)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    Ok(NewMessage {
        merchant,
        kind: MessageKind::Mail,
        version: MessageVersion(1),
        ordering_key,
        event: event.to_owned(),
        body: body.into(),
    })
}

/// The ordering key of the mails about a return. Those to the merchant have another one: a server of the merchant that
/// fails delays no mail.
pub(crate) fn ordering_key(rma_identifier: &str) -> String {
    format!("mail:rma:{rma_identifier}")
}
