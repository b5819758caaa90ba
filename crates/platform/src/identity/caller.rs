//! The caller of a request, as a handler sees it.

use std::{borrow::Cow, future::Future, pin::Pin, sync::Arc};

use actix_web::{FromRequest, HttpMessage as _, HttpRequest, dev::Payload, http::header, web};
use domain::access::{MerchantId, Scope};

use super::{Claims, TokenError, Verifier};
use crate::{
    ErrorKind, Failure, Problem,
    rejections::{Reason, record},
};

/// The header in which a caller without a merchant of its own names one.
const MERCHANT_HEADER: &str = "x-service-id";

/// The client that sent a valid token, and the merchant that it acts for.
#[derive(Debug, Clone)]
pub struct Caller {
    pub claims: Arc<Claims>,
    merchant: Option<MerchantId>,
}

/// The reason why a caller may not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Access {
    #[error("this needs the scope {0}")]
    Scope(Scope),
    #[error("this token is for merchant {0} only")]
    OtherMerchant(MerchantId),
    #[error("name the merchant in the X-Service-Id header")]
    NoMerchant,
    #[error("X-Service-Id is not a merchant's identifier")]
    BadMerchant,
}

impl Failure for Access {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Scope(_) | Self::OtherMerchant(_) => ErrorKind::Denied,
            Self::NoMerchant | Self::BadMerchant => ErrorKind::Malformed,
        }
    }

    fn challenge(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Scope(scope) => {
                Some(format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"").into())
            }
            Self::OtherMerchant(_) | Self::NoMerchant | Self::BadMerchant => None,
        }
    }
}

impl Caller {
    /// Rejects a caller without `scope`. An operator may do everything.
    pub fn require(&self, scope: Scope) -> Result<(), Access> {
        let granted = self.claims.scope.contains(scope) || self.is_operator();
        if granted { Ok(()) } else { Err(Access::Scope(scope)) }
    }

    /// Rejects a caller that has none of `scopes`. The error names the first.
    pub fn require_any(&self, scopes: &[Scope]) -> Result<(), Access> {
        let first = scopes.first().copied().unwrap_or(Scope::Operator);
        let granted = scopes.iter().any(|scope| self.require(*scope).is_ok());
        if granted { Ok(()) } else { self.require(first) }
    }

    /// The person or client that sent the request, for audit records and logs.
    pub fn actor(&self) -> &str {
        &self.claims.sub
    }

    pub fn is_operator(&self) -> bool {
        self.claims.scope.contains(Scope::Operator)
    }

    /// The merchant of this request.
    pub fn merchant(&self) -> Result<&MerchantId, Access> {
        self.merchant.as_ref().ok_or(Access::NoMerchant)
    }

    /// The merchant to which this request is limited, if there is one.
    pub fn merchant_scope(&self) -> Option<&MerchantId> {
        self.merchant.as_ref()
    }

    /// The holder of a quota of shared resources: the merchant of the token, or the person or client if
    /// the token has no merchant.
    pub(crate) fn quota_key(&self) -> &str {
        self.claims.merchant.as_ref().map_or(self.actor(), MerchantId::as_str)
    }

    /// The caller of a request. The middleware calls this before it reads anything else of a request
    /// whose operation needs a token; handlers get the same caller.
    pub(crate) async fn authenticate(request: &HttpRequest) -> Result<Self, Problem> {
        if let Some(caller) = request.extensions().get::<Self>() {
            return Ok(caller.clone());
        }
        let claims = verify(request).await?;
        let named =
            request.headers().get(MERCHANT_HEADER).map(|value| value.to_str().unwrap_or("?"));
        let caller = Self::new(claims.clone(), named).inspect_err(|error| {
            if error.kind() == ErrorKind::Denied {
                let client = &claims.sub;
                let merchant = claims.merchant.as_ref();
                record(request, Reason::InsufficientScope, Some(client), merchant);
            }
        })?;
        if let Some(merchant) = caller.merchant_scope() {
            tracing::Span::current().record("merchant", merchant.as_str());
        }
        // The body counts against this caller, see `RequestMemory`.
        request.extensions_mut().insert(caller.clone());
        Ok(caller)
    }

    fn new(claims: Arc<Claims>, named: Option<&str>) -> Result<Self, Access> {
        let named =
            named.map(str::parse::<MerchantId>).transpose().map_err(|_bad| Access::BadMerchant)?;
        let merchant = match (&claims.merchant, named) {
            (Some(own), Some(named)) if *own != named => {
                return Err(Access::OtherMerchant(own.clone()));
            }
            (Some(own), _) => Some(own.clone()),
            (None, named) => named,
        };
        Ok(Self { claims, merchant })
    }
}

#[cfg(test)]
impl Caller {
    /// The caller of a test that is about no merchant and no scope.
    pub(crate) fn of_client(client: &str) -> Self {
        let claims = Claims {
            iss: "test".to_owned(),
            sub: client.to_owned(),
            aud: super::AUDIENCE.to_owned(),
            client_id: client.to_owned(),
            jti: "j".to_owned(),
            iat: 0,
            exp: 1,
            scope: Default::default(),
            merchant: None,
            sid: None,
        };
        Self { claims: Arc::new(claims), merchant: None }
    }
}

impl FromRequest for Caller {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Self::authenticate(&request).await })
    }
}

/// Verifies the token of a request. The client of an expired or revoked token is known.
async fn verify(request: &HttpRequest) -> Result<Arc<Claims>, TokenError> {
    let Some(token) = bearer(request) else {
        record(request, Reason::MissingToken, None, None);
        return Err(TokenError::Absent);
    };
    let verifier = request.app_data::<web::Data<Verifier>>().ok_or(TokenError::NoKeys)?;
    let verified = verifier.verify(token).await;
    if let Err(error) = &verified
        && error.kind() == ErrorKind::Unauthenticated
    {
        let claims = verifier.cached(token);
        let client = claims.as_ref().map(|claims| claims.sub.as_str());
        let merchant = claims.as_ref().and_then(|claims| claims.merchant.as_ref());
        record(request, Reason::InvalidToken, client, merchant);
    }
    verified
}

fn bearer(request: &HttpRequest) -> Option<&str> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(scope: &str, merchant: Option<&str>) -> Arc<Claims> {
        Arc::new(Claims {
            iss: "i".into(),
            sub: "c".into(),
            aud: super::super::AUDIENCE.into(),
            client_id: "c".into(),
            jti: "j".into(),
            iat: 0,
            exp: 1,
            scope: scope.parse().unwrap(),
            merchant: merchant.map(|id| id.parse().unwrap()),
            sid: None,
        })
    }

    #[test]
    fn a_merchants_token_acts_for_that_merchant_only() {
        let claims = claims("orders", Some("acme"));
        assert_eq!(Caller::new(claims.clone(), None).unwrap().merchant().unwrap().as_str(), "acme");
        assert_eq!(
            Caller::new(claims.clone(), Some("acme")).unwrap().merchant().unwrap().as_str(),
            "acme"
        );
        assert_eq!(
            Caller::new(claims, Some("rival")).unwrap_err(),
            Access::OtherMerchant("acme".parse().unwrap())
        );
    }

    #[test]
    fn an_operator_names_the_merchant() {
        let claims = claims("operator", None);
        assert_eq!(Caller::new(claims.clone(), None).unwrap().merchant(), Err(Access::NoMerchant));
        assert_eq!(
            Caller::new(claims.clone(), Some("acme")).unwrap().merchant().unwrap().as_str(),
            "acme"
        );
        assert_eq!(Caller::new(claims, Some("no such!")).unwrap_err(), Access::BadMerchant);
    }

    #[test]
    fn scopes_are_required() {
        let caller = Caller::new(claims("orders", Some("acme")), None).unwrap();
        assert_eq!(caller.require(Scope::Orders), Ok(()));
        assert_eq!(caller.require(Scope::Returns), Err(Access::Scope(Scope::Returns)));
        assert_eq!(
            Caller::new(claims("operator", None), None).unwrap().require(Scope::Returns),
            Ok(())
        );
        let any = caller.require_any(&[Scope::Read, Scope::Orders]);
        assert_eq!(any, Ok(()));
        let none = caller.require_any(&[Scope::Read, Scope::Replay]);
        assert_eq!(none, Err(Access::Scope(Scope::Read)));
    }
}
