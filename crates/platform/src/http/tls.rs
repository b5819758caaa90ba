//! TLS of the server: version 1.2 only, unless `allow_tls13` is set. The server reads the certificate
//! again when its files change, so a renewal needs no restart.

use std::{path::Path, sync::Arc, time::Duration, time::SystemTime};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

use super::Tls;
use crate::{Tasks, client::provider, telemetry};

const CHECK_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Certificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// Checks that the files are readable and that the key belongs to the certificate.
pub(super) fn check(settings: &Tls) -> anyhow::Result<()> {
    load(settings).map(drop)
}

/// A TLS configuration that reloads its files when they change.
pub(super) fn server_config(settings: &Tls, tasks: &Tasks) -> anyhow::Result<ServerConfig> {
    let first = load(settings)?;
    record_expiry(&first);
    let certificate = Arc::new(Certificate(ArcSwap::from_pointee(first)));
    let versions: &[_] = if settings.allow_tls13 { &[&TLS13, &TLS12] } else { &[&TLS12] };
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_cert_resolver(certificate.clone());
    start_reloading(settings.clone(), certificate, tasks);
    Ok(config)
}

/// Starts a task that loads the certificate again when its files change.
fn start_reloading(settings: Tls, certificate: Arc<Certificate>, tasks: &Tasks) {
    let mut seen = modified_at(&settings);
    tasks.spawn_interval("certificate", CHECK_INTERVAL, move || {
        let now = modified_at(&settings);
        if now != seen {
            match load(&settings) {
                Ok(fresh) => {
                    record_expiry(&fresh);
                    certificate.0.store(Arc::new(fresh));
                    seen = now;
                    tracing::info!(
                        "the certificate was renewed from {}",
                        settings.certificate.display()
                    );
                }
                // Only one of the two files may be written yet. The old pair stays in use until the next check.
                Err(error) => tracing::warn!(
                    error = format!("{error:#}"),
                    "the new certificate is not usable"
                ),
            }
        }
        std::future::ready(())
    });
}

fn modified_at(settings: &Tls) -> [Option<SystemTime>; 2] {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    [modified(&settings.certificate), modified(&settings.key)]
}

/// Records when the certificate expires.
fn record_expiry(pair: &CertifiedKey) {
    let end = pair.cert.first().and_then(|der| {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        u64::try_from(certificate.validity().not_after.timestamp()).ok()
    });
    let gauge = telemetry::meter()
        .u64_gauge("tls_certificate_expiration_timestamp_seconds")
        .with_description("Unix time at which the certificate of the server expires")
        .build();
    match end {
        Some(end) => gauge.record(end, &[]),
        None => tracing::warn!("the expiry of the certificate cannot be read"),
    }
}

fn load(settings: &Tls) -> anyhow::Result<CertifiedKey> {
    let chain = CertificateDer::pem_file_iter(&settings.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("http.tls.certificate {}", settings.certificate.display()))?;
    let key = PrivateKeyDer::from_pem_file(&settings.key)
        .with_context(|| format!("http.tls.key {}", settings.key.display()))?;
    let pair = CertifiedKey::from_der(chain, key, &provider());
    pair.with_context(|| {
        let key = settings.key.display();
        let certificate = settings.certificate.display();
        format!("http.tls.key {key} is not the key of {certificate}")
    })
}
