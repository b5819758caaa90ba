//! Previews and tests of the mails of a merchant, with words that are not saved yet.

use api::mails::{MailPreview, SentTest};
use domain::mail::Mail;
use domain::merchant::{Language, MailEvent, MailText, Merchant};
use platform::Timestamp;
use platform::database::DatabaseError;
use platform::identity::Caller;

use super::{NewMail, sample};
use crate::App;
use crate::error::Error;

/// The words of a merchant for a mail.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) event: MailEvent,
    pub(crate) language: Language,
    /// Instead of the words that are stored.
    pub(crate) text: MailText,
}

/// The mail about a sample return.
pub(crate) fn preview(
    app: &App,
    merchant: &Merchant,
    draft: Draft,
) -> Result<MailPreview, DatabaseError> {
    let written = write(app, merchant, draft, app.clock.now())?;
    let Mail { from_name, reply_to, subject, text, html, .. } = written.mail;
    Ok(MailPreview { from_name: from_name.unwrap_or_default(), reply_to, subject, text, html })
}

/// Sends the mail about a sample return to the person who asks for it. A client has no address, so the address of the
/// merchant gets its tests.
pub(crate) async fn send_test(
    app: &App,
    merchant: &Merchant,
    caller: &Caller,
    draft: Draft,
) -> Result<SentTest, Error> {
    if !app.messages.deliveries.sends_mail() {
        return Err(Error::NoMails);
    }
    let is_person = caller.claims.sid.is_some();
    let person = is_person.then(|| caller.actor().to_owned());
    let to = person.or_else(|| merchant.settings.mails.reply_to.clone());
    let to = to.ok_or(Error::NoReplyAddress)?;
    let now = app.clock.now();
    let message = write(app, merchant, draft, now)?.test(to.clone())?;
    let mut conn = app.pool.get().await?;
    let ids = conn.transaction(async |conn| {
        app.messages.deliveries.append(conn, now, &[message.clone()]).await
    });
    let delivery = ids.await?.first().copied();
    let delivery = delivery.ok_or_else(|| Error::Internal("a test has no id".to_owned()))?;
    Ok(SentTest { to, delivery })
}

fn write(
    app: &App,
    merchant: &Merchant,
    Draft { event, language, text }: Draft,
    now: Timestamp,
) -> Result<NewMail, DatabaseError> {
    let mut merchant = merchant.clone();
    let texts = &mut merchant.settings.mails.texts;
    texts.entry(language).or_default().insert(event, text);
    let mut rma = sample::rma(&merchant, language, now);
    sample::apply(&mut rma, event);
    app.messages.write(&merchant, &rma, &sample::occasion(&rma, event))
}
