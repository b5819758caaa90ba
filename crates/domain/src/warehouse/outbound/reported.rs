//! The schema of the header as warehouses report it: a location can name a warehouse of the merchant instead of
//! its identifier, type and address.

use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::header::OutboundHeader;
use super::receiver::LocationType;
use crate::warehouse::address::ReceiverAddress;
use crate::warehouse::identifier::Identifier;

/// [`OutboundHeader`] with the locations of a report.
pub(super) struct ReportedHeader;

impl PartialSchema for ReportedHeader {
    fn schema() -> RefOr<Schema> {
        let mut schema = OutboundHeader::schema();
        if let RefOr::T(Schema::Object(header)) = &mut schema {
            header.description = Some("The header of a reported shipment.".to_owned());
            for (key, location) in
                [("from", ReportedSender::name()), ("to", ReportedReceiver::name())]
            {
                header.properties.insert(key.to_owned(), Ref::from_schema_name(location).into());
            }
        }
        schema
    }
}

impl ToSchema for ReportedHeader {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        OutboundHeader::schemas(schemas);
        schemas.push((ReportedSender::name().into_owned(), ReportedSender::schema()));
        ReportedSender::schemas(schemas);
        schemas.push((ReportedReceiver::name().into_owned(), ReportedReceiver::schema()));
        ReportedReceiver::schemas(schemas);
    }
}

/// The origin: a warehouse of the merchant, or an identifier and a type. Those that are given win.
#[derive(ToSchema)]
#[expect(dead_code, reason = "Sender is read; the report has another form")]
struct ReportedSender {
    /// Our identifier of a warehouse of the merchant.
    #[schema(min_length = 1, max_length = 255, example = "reno")]
    warehouse: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    identifier: Option<String>,
    #[serde(rename = "type")]
    kind: Option<LocationType>,
}

/// The destination: a warehouse of the merchant, or an identifier, a type and an address. Those that are given
/// win.
#[derive(ToSchema)]
#[expect(dead_code, reason = "Receiver is read; the report has another form")]
struct ReportedReceiver {
    /// Our identifier of a warehouse of the merchant.
    #[schema(min_length = 1, max_length = 255, example = "reno")]
    warehouse: Option<String>,
    /// The identifier of the location. For a vendor a number, which can be written as a string.
    identifier: Option<Identifier>,
    #[serde(rename = "type")]
    kind: Option<LocationType>,
    address: Option<ReceiverAddress>,
}
