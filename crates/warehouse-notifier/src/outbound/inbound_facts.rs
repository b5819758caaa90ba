//! A shipment takes the flags and references that its report leaves out from the inbound ASNs of its units.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use domain::access::MerchantId;
use domain::warehouse::{InboundFacts, OutboundShipment};

use crate::App;
use crate::error::Error;
use crate::store::received_units as store;

/// The maximum size of the flags that a shipment takes from inbound ASNs.
const MAX_ADDED_BYTES: usize = 8 * 1024 * 1024;
/// The memory of a flag besides its text.
const FLAG_OVERHEAD: usize = size_of::<String>();

pub(super) async fn complete(
    app: &App,
    merchant: &MerchantId,
    shipment: &mut OutboundShipment,
) -> Result<(), Error> {
    let mut numbers = BTreeSet::new();
    let mut units = BTreeSet::new();
    for (number, identifiers) in shipment.received_units() {
        numbers.insert(number);
        units.extend(identifiers.into_iter().flatten().map(|unit| (number, unit)));
    }
    if numbers.is_empty() {
        return Ok(());
    }
    let mut conn = app.pool.get().await?;
    let headers = store::headers(&mut conn, merchant, &numbers).await?;
    let lines = store::lines(&mut conn, merchant, &units).await?;
    drop(conn);
    let lines: HashMap<_, _> = lines.iter().map(|it| ((&*it.asn, &*it.unit), &it.line)).collect();
    // Many units may repeat the flags of one ASN.
    let added_bytes = Cell::new(0);
    shipment.complete(|detail| {
        if added_bytes.get() > MAX_ADDED_BYTES {
            return None;
        }
        let number = detail.inbound_received_asn.as_deref()?;
        let client_unit = detail.client_unit_identifier.as_deref();
        let mut identifiers =
            [Some(detail.unit_identifier.as_str()), client_unit].into_iter().flatten();
        let line = identifiers.find_map(|unit| lines.get(&(number, unit)).copied());
        let facts = InboundFacts::new(headers.get(number)?, line);
        let flags = facts.eligibility_flags.iter().flatten();
        added_bytes
            .update(|bytes| bytes + flags.map(|flag| flag.len() + FLAG_OVERHEAD).sum::<usize>());
        Some(facts)
    });
    if added_bytes.get() > MAX_ADDED_BYTES {
        let detail = "the eligibility_flags of the inbound ASNs are too long for this shipment";
        return Err(Error::field("$.cartons", detail));
    }
    Ok(())
}
