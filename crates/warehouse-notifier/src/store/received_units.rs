//! The inbound ASNs and lines of units that were received.

use std::collections::{BTreeSet, HashMap};

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::warehouse::{InboundHeader, InboundLine};
use platform::database::{prepared, sql};

use crate::error::Error;

platform::rows! {
    struct HeaderRow {
        asn_number: String,
        header: String,
    }
}

/// Loads ASNs without their lines, by number. Each is looked up by its key; see `receipts::headers`.
pub(crate) async fn headers(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    numbers: &BTreeSet<&str>,
) -> Result<HashMap<String, InboundHeader>, Error> {
    let query = sql(
        "SELECT stored.* FROM unnest((SELECT $2)) AS requested (asn_number), LATERAL ( \
             SELECT asn_number, header FROM inbound_asns AS own \
             WHERE own.merchant = $1 AND own.asn_number = requested.asn_number LIMIT 1 \
         ) AS stored",
        (merchant.as_str(), numbers.iter().copied().collect::<Vec<_>>()),
    );
    let rows: Vec<HeaderRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(|row| Ok((row.asn_number, serde_json::from_str(&row.header)?))).collect()
}

platform::rows! {
    struct LineRow {
        asn_number: String,
        unit_identifier: String,
        line: String,
    }
}

/// The line of a received unit.
pub(crate) struct ReceivedUnit {
    pub(crate) asn: String,
    pub(crate) unit: String,
    pub(crate) line: InboundLine,
}

/// Loads the lines of received units, by the number of the ASN and the identifier of the unit.
pub(crate) async fn lines(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    units: &BTreeSet<(&str, &str)>,
) -> Result<Vec<ReceivedUnit>, Error> {
    let (numbers, identifiers): (Vec<_>, Vec<_>) = units.iter().copied().unzip();
    let query = sql(include_str!("received_lines.sql"), (merchant.as_str(), numbers, identifiers));
    let rows: Vec<LineRow> = prepared(query).load(conn).await?;
    let unit = |row: LineRow| {
        let line = serde_json::from_str(&row.line)?;
        Ok(ReceivedUnit { asn: row.asn_number, unit: row.unit_identifier, line })
    };
    rows.into_iter().map(unit).collect()
}
