//! The split of a shipment into messages of limited lines and bytes.

use serde::Serialize;

use super::carton::OutboundCarton;
use super::header::OutboundHeader;
use super::shipment::OutboundShipment;
use crate::json::{FieldError, ValidationError};
use crate::warehouse::limits::{IDENTIFIER, MAX_MESSAGE_BYTES, MAX_MESSAGE_LINES};
use crate::warehouse::reference::Reference;

/// Bytes reserved for a header that grows: a longer status, dates with microseconds, a suffix, and
/// the JSON around the cartons.
const HEADER_RESERVE: usize = 256;

/// The units of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsnPart {
    /// The number of the shipment, with a suffix when there are several parts.
    pub asn_number: String,
    pub units: usize,
    /// The cartons as a JSON array.
    pub cartons: String,
}

/// A carton without its units.
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
    /// Splits the shipment in the order of its cartons and units. Fails when the header leaves no space
    /// for units.
    pub fn split(&self) -> Result<Vec<AsnPart>, ValidationError> {
        let mut writer = PartWriter::new(available_bytes(&self.header)?);
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
            let max = IDENTIFIER.end() - suffix;
            let detail = format!("must have at most {max} characters: the shipment is split");
            return Err(FieldError::invalid("$.asn_number", detail).into());
        }
        let parts = (1..).zip(written).map(|(index, (units, cartons))| AsnPart {
            asn_number: format!("{number}_{index}"),
            units,
            cartons,
        });
        Ok(parts.collect())
    }
}

/// The bytes that the header leaves for cartons.
fn available_bytes(header: &OutboundHeader) -> Result<usize, ValidationError> {
    let size = to_json(header)?.len() + HEADER_RESERVE;
    MAX_MESSAGE_BYTES.checked_sub(size).ok_or_else(too_long)
}

/// The tracking number is the only field of a header without a maximum length.
fn too_long() -> ValidationError {
    FieldError::invalid("$.tracking_number", "leaves no room for units in a message").into()
}

fn to_json(part: &impl Serialize) -> Result<String, ValidationError> {
    serde_json::to_string(part).map_err(|error| FieldError::invalid("$", error.to_string()).into())
}

/// Writes arrays of cartons, and starts a new array when the current one is full.
struct PartWriter {
    /// The maximum size of a part.
    available_bytes: usize,
    full: Vec<(usize, String)>,
    units: usize,
    cartons: String,
}

impl PartWriter {
    fn new(available_bytes: usize) -> Self {
        Self { available_bytes, full: Vec::new(), units: 0, cartons: "[".to_owned() }
    }

    fn carton(&mut self, carton: &OutboundCarton) -> Result<(), ValidationError> {
        const CLOSING: usize = "]}]".len();
        let head = to_json(&CartonHead {
            identifier: carton.identifier.as_deref(),
            reference: carton.reference.as_ref(),
            sorting_template_name: carton.sorting_template_name.as_deref(),
        })?;
        let comma = if head == "{}" { "" } else { "," };
        let opening = format!("{}{comma}\"details\":[", head.strip_suffix('}').unwrap_or(&head));
        let mut is_open = false;
        for detail in &carton.details {
            let detail = to_json(detail)?;
            let alone = opening.len() + detail.len() + CLOSING + 1;
            let grown = if is_open { detail.len() + 1 + CLOSING } else { alone + 1 };
            if self.units == MAX_MESSAGE_LINES || self.cartons.len() + grown > self.available_bytes
            {
                self.end_carton(is_open);
                self.end_part();
                is_open = false;
            }
            if alone > self.available_bytes {
                return Err(too_long());
            }
            if is_open {
                self.cartons.push(',');
            } else {
                if self.units > 0 {
                    self.cartons.push(',');
                }
                self.cartons.push_str(&opening);
                is_open = true;
            }
            self.cartons.push_str(&detail);
            self.units += 1;
        }
        self.end_carton(is_open);
        Ok(())
    }

    fn end_carton(&mut self, is_open: bool) {
        if is_open {
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
