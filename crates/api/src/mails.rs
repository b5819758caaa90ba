//! Mails to shoppers about a sample return, as rma-engine writes them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A mail about a sample return.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MailPreview {
    /// The name of the sender.
    #[schema(example = "Acme Returns")]
    pub from_name: String,
    /// The address that gets the replies of shoppers; null if shoppers get no mails.
    pub reply_to: Option<String>,
    pub subject: String,
    /// The mail as plain text.
    pub text: String,
    /// The mail as HTML.
    pub html: String,
}

/// A test that was sent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SentTest {
    /// The person who sent the request. For a client, the address of the merchant for replies.
    #[schema(example = "ada@acme.example")]
    pub to: String,
    /// `GET /v1/deliveries/{id}` shows whether the mail server accepted the mail.
    pub delivery: Uuid,
}
