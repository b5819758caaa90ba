//! The handlers of the API. The attribute of each handler names its method and URL, as does the API document.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::{drop_shipments, inbound, outbound, receipts, records};

pub(crate) fn configure(config: &mut ServiceConfig<'_>) {
    config
        .service(inbound::register_asn)
        .service(inbound::change_asn)
        .service(inbound::list_asns)
        .service(inbound::show_asn)
        .service(outbound::report_shipment)
        .service(outbound::change_shipment)
        .service(outbound::list_shipments)
        .service(outbound::show_shipment)
        .service(receipts::receive_units)
        .service(receipts::list_receipts)
        .service(drop_shipments::confirm_drop_shipment)
        .service(drop_shipments::cancel_drop_shipment)
        .service(drop_shipments::cancel_drop_shipment_partially)
        .service(drop_shipments::list_drop_shipments)
        .service(records::find_records);
    delivery::routes(config);
    messaging::routes(config);
}
