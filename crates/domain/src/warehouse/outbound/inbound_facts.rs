//! Fields of an outbound unit that come from the inbound ASN against which it was received.

use super::carton::{OutboundCarton, OutboundDetail};
use super::shipment::OutboundShipment;
use crate::warehouse::inbound::{InboundHeader, InboundLine};
use crate::warehouse::reference::Reference;

/// The flags and the reference of a received unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboundFacts {
    pub eligibility_flags: Option<Vec<String>>,
    pub reference: Option<Reference>,
}

impl InboundFacts {
    /// Takes each field from the line, or else from the header. The line is unknown if the unit was not
    /// received under its identifier.
    pub fn new(header: &InboundHeader, line: Option<&InboundLine>) -> Self {
        let flags = line.and_then(|line| line.detail.unit_fields.eligibility_flags.clone());
        let reference = line.and_then(|line| line.reference.clone());
        Self {
            eligibility_flags: flags.or_else(|| header.unit_fields.eligibility_flags.clone()),
            reference: reference.or_else(|| header.reference.clone()),
        }
    }
}

impl OutboundShipment {
    /// The units whose ASN may have fields that the report leaves out: the number of the ASN, and the
    /// identifiers under which the unit can have been received.
    pub fn received_units(&self) -> impl Iterator<Item = (&str, [Option<&str>; 2])> {
        let needed = |carton: &OutboundCarton, detail: &OutboundDetail| {
            carton.reference.is_none() || detail.eligibility_flags.is_none()
        };
        self.cartons.iter().flat_map(move |carton| {
            let details = carton.details.iter().filter(move |detail| needed(carton, detail));
            details.filter_map(|detail| {
                let unit = Some(detail.unit_identifier.as_str());
                let asn = detail.inbound_received_asn.as_deref().filter(|asn| !asn.is_empty())?;
                Some((asn, [unit, detail.client_unit_identifier.as_deref()]))
            })
        })
    }

    /// Adds the fields that the report leaves out. A carton gets a reference if all its units have the same.
    pub fn complete(&mut self, facts: impl Fn(&OutboundDetail) -> Option<InboundFacts>) {
        for carton in &mut self.cartons {
            let mut references = Vec::with_capacity(carton.details.len());
            for detail in &mut carton.details {
                let facts = facts(detail).unwrap_or_default();
                if detail.eligibility_flags.is_none() {
                    detail.eligibility_flags = facts.eligibility_flags;
                }
                references.push(facts.reference);
            }
            if carton.reference.is_none()
                && let Some(first) = references.first()
                && references.iter().all(|reference| reference == first)
            {
                carton.reference = first.clone();
            }
        }
    }
}
