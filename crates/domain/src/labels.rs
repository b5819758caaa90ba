//! Labels: the messages that ask a label provider for the label of a parcel, and the provider's responses.
//!
//! A label costs money. A request is therefore the same in every attempt, a parcel has one request at a time, and a
//! label that is not used is canceled.

mod document;
mod message;
mod refusal;
mod response;
mod state;

#[cfg(test)]
mod tests;

pub use document::{LabelDocument, LabelFormat, MAX_DOCUMENT_BYTES};
pub use message::{
    CancelReason, LABEL_CANCELED, LABEL_REQUESTED, LabelCanceled, LabelForm, LabelMessage,
    LabelReceiver, LabelRequested, LabelSender, LabelUnit, OrderNotLoaded, Parcel,
    label_message_schema,
};
pub use refusal::{LabelRefusal, RefusalReason};
pub use response::{BoughtLabel, InvalidLabel, LabelContent, MAX_LABEL_RESPONSE_BYTES, ReadLabel};
pub use state::LabelState;
