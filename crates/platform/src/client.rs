//! The HTTP client for calls to our own services: with a deadline, without redirects and without a
//! proxy from the environment. Calls to merchants use the client of `delivery`, which checks addresses.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use rustls::{ClientConfig, RootCertStore, crypto::CryptoProvider};

/// A client with a deadline for every request.
pub fn http_client(deadline: Duration) -> anyhow::Result<reqwest::Client> {
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(client_tls()?)
        .timeout(deadline)
        .connect_timeout(deadline.min(Duration::from_secs(5)))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("backhaul/", env!("CARGO_PKG_VERSION")))
        .build()?)
}

/// TLS for outgoing connections. Certificates are always verified with the certificate authorities of
/// the system, which are read once because parsing them takes long.
pub fn client_tls() -> anyhow::Result<ClientConfig> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots.clone())
        .with_no_client_auth())
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
