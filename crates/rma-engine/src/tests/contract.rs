//! The OpenAPI file in the repository matches the code.

use testkit::check_contract;

use super::*;

#[test]
fn the_api_document_is_up_to_date() {
    let document = platform::openapi::<App>().to_yaml().unwrap();
    check_contract("openapi/rma-engine.yaml", &document);
}
