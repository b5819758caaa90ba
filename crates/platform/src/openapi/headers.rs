//! The rules of request headers that many handlers have.

use domain::access::MerchantId;
use serde_json::json;
use utoipa::PartialSchema as _;
use utoipa::openapi::{
    ObjectBuilder, RefOr, Schema,
    path::{Operation, Parameter},
    schema::Type,
};

use crate::{idempotency, shopper_proof};

const MERCHANT: &str = "X-Service-Id";
const API_VERSION: &str = "Api-Version";

const MERCHANT_RULES: &str = "\
The identifier of the merchant that the request is about. Required if the token belongs to no merchant, as \
the tokens of warehouses, carriers, portals and operators: a request without it gets 400. Not needed with a \
token of a merchant; the identifier of another merchant gets 403.";

const KEY_RULES: &str = "\
Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A \
repeated request with the same key and the same body takes effect once and gets the first response. The \
same key with another body gets 422. A request that failed does not use up its key. Keys belong to one \
merchant and one operation and are kept for 7 days, unless the setting `idempotency.retention` says \
otherwise.";

const PROOF_RULES: &str = "\
Proofs of `POST /v1/lookups`, one for each order that the request concerns, separated by commas. Required \
with the scope `shopper`, which allows nothing without them. Other tokens do not need it. A missing or \
invalid proof gets 403 with the code `proof_required`, an expired one 403 with the code `proof_expired`.";

const API_VERSION_RULES: &str = "\
The version of the message format. Required, and always 3: a request without it, or with another value, \
gets 400.";

/// Whether the handler has the header that names a merchant.
pub(super) fn names_merchant(operation: &Operation) -> bool {
    let parameters = operation.parameters.iter().flatten();
    parameters.into_iter().any(|it| matches!(it, RefOr::T(header) if header.name == MERCHANT))
}

/// Adds the rules of common headers. A handler with other rules describes the header itself.
pub(super) fn describe(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(header) = parameter
            && let Some((rules, schema)) = rules(header)
        {
            header.description.get_or_insert_with(|| rules.to_owned());
            header.schema = Some(schema);
        }
    }
}

fn rules(header: &Parameter) -> Option<(&'static str, RefOr<Schema>)> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    Some(match header.name.as_str() {
        MERCHANT => (MERCHANT_RULES, MerchantId::schema()),
        idempotency::HEADER => {
            let length = text.min_length(Some(1)).max_length(Some(idempotency::MAX_KEY_LENGTH));
            (KEY_RULES, length.into())
        }
        shopper_proof::HEADER => (PROOF_RULES, text.into()),
        API_VERSION => (API_VERSION_RULES, text.enum_values(Some([json!("3")])).into()),
        _ => return None,
    })
}
