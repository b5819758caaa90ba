//! Cutting a shipment into messages: at most so many units in each, and at most so many bytes.

use serde::Serialize;

use super::super::IDENTIFIER;
use super::super::reference::Reference;
use super::OutboundShipment;
use super::carton::OutboundCarton;
use super::header::OutboundHeader;
use crate::json::{FieldError, ValidationError};

/// A message holds at most this many detail lines.
pub const MAX_MESSAGE_LINES: usize = 1_000;
/// And has at most this many bytes.
pub const MAX_MESSAGE_BYTES: usize = 512 * 1024;
/// What a header may grow by: a longer status, dates to the microsecond, a suffix, and what stands
/// around the cartons.
const SLACK: usize = 256;

/// The units of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsnPart {
    /// The shipment's, with a suffix when there are several parts.
    pub asn_number: String,
    pub units: usize,
    /// A JSON array.
    pub cartons: String,
}

/// A carton but for its units.
#[derive(Serialize)]
struct CartonHead<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sorting_template_name: Option<&'a str>,
}

impl OutboundShipment {
    /// Cuts the shipment, in the order of its cartons and their units. Fails when the header is so
    /// long that units do not fit beside it.
    pub fn split(&self) -> Result<Vec<AsnPart>, ValidationError> {
        let mut writer = Writer::new(room(&self.header)?);
        for carton in &self.cartons {
            writer.carton(carton)?;
        }
        let written = writer.finish();
        let number = &self.header.asn_number;
        if let [(units, cartons)] = written.as_slice() {
            let part =
                AsnPart { asn_number: number.clone(), units: *units, cartons: cartons.clone() };
            return Ok(vec![part]);
        }
        let suffix = written.len().to_string().len() + 1;
        if number.len() + suffix > *IDENTIFIER.end() {
            let most = IDENTIFIER.end() - suffix;
            let detail = format!("must have at most {most} characters: the shipment is split");
            return Err(FieldError::invalid("$.asn_number", detail).into());
        }
        let parts = (1..).zip(written).map(|(place, (units, cartons))| AsnPart {
            asn_number: format!("{number}_{place}"),
            units,
            cartons,
        });
        Ok(parts.collect())
    }
}

/// How many bytes a header leaves for cartons.
fn room(header: &OutboundHeader) -> Result<usize, ValidationError> {
    let size = text(header)?.len() + SLACK;
    MAX_MESSAGE_BYTES.checked_sub(size).ok_or_else(too_long)
}

/// Only one field of a header has no bound of its own.
fn too_long() -> ValidationError {
    FieldError::invalid("$.tracking_number", "leaves no room for units in a message").into()
}

fn text(part: &impl Serialize) -> Result<String, ValidationError> {
    serde_json::to_string(part).map_err(|error| FieldError::invalid("$", error.to_string()).into())
}

/// Writes arrays of cartons, beginning a new one when the last is full.
struct Writer {
    room: usize,
    full: Vec<(usize, String)>,
    units: usize,
    cartons: String,
}

impl Writer {
    fn new(room: usize) -> Self {
        Self { room, full: Vec::new(), units: 0, cartons: "[".to_owned() }
    }

    fn carton(&mut self, carton: &OutboundCarton) -> Result<(), ValidationError> {
        const CLOSING: usize = "]}]".len();
        let head = text(&CartonHead {
            identifier: carton.identifier.as_deref(),
            reference: carton.reference.as_ref(),
            sorting_template_name: carton.sorting_template_name.as_deref(),
        })?;
        let comma = if head == "{}" { "" } else { "," };
        let opening = format!("{}{comma}\"details\":[", head.strip_suffix('}').unwrap_or(&head));
        let mut open = false;
        for detail in &carton.details {
            let detail = text(detail)?;
            let alone = opening.len() + detail.len() + CLOSING + 1;
            let grown = if open { detail.len() + 1 + CLOSING } else { alone + 1 };
            if self.units == MAX_MESSAGE_LINES || self.cartons.len() + grown > self.room {
                self.end_carton(open);
                self.end_part();
                open = false;
            }
            if alone > self.room {
                return Err(too_long());
            }
            if open {
                self.cartons.push(',');
            } else {
                if self.units > 0 {
                    self.cartons.push(',');
                }
                self.cartons.push_str(&opening);
                open = true;
            }
            self.cartons.push_str(&detail);
            self.units += 1;
        }
        self.end_carton(open);
        Ok(())
    }

    fn end_carton(&mut self, open: bool) {
        if open {
            self.cartons.push_str("]}");
        }
    }

    fn end_part(&mut self) {
        if self.units > 0 {
            self.cartons.push(']');
            let cartons = std::mem::replace(&mut self.cartons, "[".to_owned());
            self.full.push((std::mem::take(&mut self.units), cartons));
        }
    }

    fn finish(mut self) -> Vec<(usize, String)> {
        self.end_part();
        self.full
    }
}
