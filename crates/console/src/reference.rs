//! The API reference, rendered from the OpenAPI documents of the services, with a form that sends a
//! request to an operation.

mod curl;
mod document;
mod prose;
mod request_form;
mod schema;

use actix_web::{get, post, web};
use askama::Template;
use futures_util::future::join_all;
use pages::api::{ApiError, Part, RawResponse, Service};

use crate::{
    Page, PageError, PageResult, Posted, Section, SignedIn, html, person::Role,
    record_list::indented, rejected,
};
use document::{Document, Operation, TagGroup};
use prose::{Paragraph, paragraphs};
use request_form::RequestForm;
use schema::BodyField;

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_operations).service(show_operation).service(send_request);
}

/// The operations of one service.
struct ServiceReference {
    service: Service,
    document: Part<Operations>,
}

struct Operations {
    about: String,
    tags: Vec<TagGroup>,
}

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferencePage {
    page: Page,
    services: Vec<ServiceReference>,
}

#[get("/reference")]
async fn list_operations(signed_in: SignedIn) -> PageResult {
    let load = async |service| (service, load_document(&signed_in, service).await);
    let mut services = Vec::new();
    for (service, document) in join_all(Service::ALL.map(load)).await {
        let operations = document.map(|document| {
            let tags = document.by_tag();
            Operations { about: document.info.description, tags }
        });
        services.push(ServiceReference { service, document: Part::new(operations)? });
    }
    html(&ReferencePage { page: signed_in.page(Section::Reference), services })
}

/// A possible response of an operation.
struct DocumentedResponse {
    status: String,
    /// The name of the table.
    label: String,
    about: Vec<Paragraph>,
    kind: String,
    /// The fields of a success. Errors all have the same body.
    fields: Vec<BodyField>,
}

/// The response to the request of the form.
struct Outcome {
    response: RawResponse,
    body: String,
    tone: &'static str,
}

#[derive(Template)]
#[template(path = "reference_operation.html")]
struct OperationPage {
    page: Page,
    service: Service,
    operation: Operation,
    about: Vec<Paragraph>,
    /// The person's role lacks the scope.
    is_denied: bool,
    form: RequestForm,
    body_fields: Vec<BodyField>,
    responses: Vec<DocumentedResponse>,
    curl: String,
    outcome: Option<Result<Outcome, String>>,
}

#[get("/reference/{service}/{operation}")]
async fn show_operation(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (service, document, operation) = find_operation(&signed_in, &path).await?;
    let mut form = RequestForm::new(&operation, &document.components.schemas);
    form.renew_key();
    let page = signed_in.page(Section::Reference);
    html(&OperationPage::new(page, service, &document, operation, form))
}

/// Sends the request with the person's own token. The service decides what the person may do.
#[post("/reference/{service}/{operation}")]
async fn send_request(
    posted: Posted<Vec<(String, String)>>,
    path: web::Path<(String, String)>,
) -> PageResult {
    let Posted { signed_in, form: sent } = posted;
    let (service, document, operation) = find_operation(&signed_in, &path).await?;
    let mut form = RequestForm::new(&operation, &document.components.schemas);
    form.fill(&sent);
    let is_valid = form.check();
    let request = form.request(&operation);
    let page = signed_in.page(Section::Reference);
    let mut shown = OperationPage::new(page, service, &document, operation, form);
    if !is_valid {
        return rejected(&shown);
    }
    let response = signed_in.api.send_raw(service, &request).await;
    shown.form.renew_key();
    shown.outcome = Some(response.map(Outcome::new).map_err(|error| error.to_string()));
    html(&shown)
}

async fn find_operation(
    signed_in: &SignedIn,
    path: &web::Path<(String, String)>,
) -> Result<(Service, Document, Operation), PageError> {
    let service = &path.0;
    let operation = &path.1;
    let service = Service::from_name(service).ok_or(PageError::NotFound)?;
    let document = load_document(signed_in, service).await?;
    let operation = document.operation(operation).ok_or(PageError::NotFound)?;
    Ok((service, document, operation))
}

async fn load_document(signed_in: &SignedIn, service: Service) -> Result<Document, ApiError> {
    signed_in.api.get(service, "openapi.json", &[]).await
}

impl OperationPage {
    fn new(
        page: Page,
        service: Service,
        document: &Document,
        operation: Operation,
        form: RequestForm,
    ) -> Self {
        let schemas = &document.components.schemas;
        let fields = |content: &document::Content| schemas.fields(&content.schema);
        let body_fields =
            operation.content().map(|(_, content)| fields(content)).unwrap_or_default();
        let responses = operation.responses.iter().map(|(status, response)| {
            let schema = response.schema().filter(|_| status.starts_with('2'));
            DocumentedResponse {
                status: status.clone(),
                label: format!("Body of the response {status}"),
                about: paragraphs(&response.description),
                kind: schema.map(|schema| schemas.kind(schema)).unwrap_or_default(),
                fields: schema.map(|schema| schemas.fields(schema)).unwrap_or_default(),
            }
        });
        Self {
            responses: responses.collect(),
            is_denied: !may_call(page.person.role, &operation.scopes()),
            about: description(&operation),
            curl: curl::command(service, &form.request(&operation)),
            body_fields,
            outcome: None,
            page,
            service,
            operation,
            form,
        }
    }
}

/// The description without the generated sentence about scopes, which the page shows on its own.
fn description(operation: &Operation) -> Vec<Paragraph> {
    let parts = operation.description.split("\n\n");
    let kept: Vec<_> = parts.filter(|part| !part.starts_with("Requires the scope ")).collect();
    paragraphs(&kept.join("\n\n"))
}

impl Outcome {
    fn new(response: RawResponse) -> Self {
        let tone = match response.status {
            200..300 => "good",
            500.. => "bad",
            _ => "warn",
        };
        Self { body: indented(&response.body), tone, response }
    }
}

/// Whether the tokens of a role have one of the scopes. Operators have all.
fn may_call(role: Role, scopes: &[&str]) -> bool {
    let own: &[&str] = match role {
        Role::Operator => return true,
        Role::Support => &["read", "replay"],
        Role::MerchantAdmin => &["orders", "returns", "read", "replay", "manage"],
        Role::MerchantViewer => &["read"],
    };
    scopes.is_empty() || scopes.iter().any(|scope| own.contains(scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_calls_operations_of_its_scopes() {
        assert!(may_call(Role::Operator, &["warehouse"]));
        assert!(may_call(Role::MerchantViewer, &["orders", "read"]));
        assert!(!may_call(Role::Support, &["manage"]));
        assert!(may_call(Role::Support, &[]));
    }
}
