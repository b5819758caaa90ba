//! A part of a page, which can be missing.

use super::{ApiError, Service};

/// A part of a page. The page stands without it while its service does not respond.
#[derive(Debug, Clone)]
pub enum Part<T> {
    Loaded(T),
    Missing(Service),
}

impl<T> Part<T> {
    /// A service that is not available, rejects the token or has too many requests leaves a gap. Auth
    /// issued the token for this page, so a 401 of another service is a problem of that service. Other
    /// errors concern the whole page.
    pub fn new(result: Result<T, ApiError>) -> Result<Self, ApiError> {
        match result {
            Ok(value) => Ok(Self::Loaded(value)),
            Err(
                ApiError::Unavailable { service }
                | ApiError::Unauthenticated { service }
                | ApiError::TooManyRequests { service, .. },
            ) => Ok(Self::Missing(service)),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_rejects_a_call_leaves_a_gap() {
        let service = Service::Exchange;
        for error in [
            ApiError::Unavailable { service },
            ApiError::Unauthenticated { service },
            ApiError::TooManyRequests { service, retry_after: None },
        ] {
            let part = Part::<()>::new(Err(error)).unwrap();
            assert!(matches!(part, Part::Missing(Service::Exchange)), "{part:?}");
        }
        assert!(Part::<()>::new(Err(ApiError::NotFound)).is_err());
    }
}
