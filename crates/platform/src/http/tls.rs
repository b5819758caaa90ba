//! The server's side of TLS: 1.2 only unless told otherwise, certificates read again when the
//! files change, so that a renewal needs no restart.

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

const LOOK_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Certificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// Whether the files are readable and fit together now.
pub(super) fn check(settings: &Tls) -> anyhow::Result<()> {
    load(settings).map(drop)
}

/// A TLS configuration that follows its files, which must be readable and fit together now.
pub(super) fn server_config(settings: &Tls, tasks: &Tasks) -> anyhow::Result<ServerConfig> {
    let first = load(settings)?;
    show_expiry(&first);
    let certificate = Arc::new(Certificate(ArcSwap::from_pointee(first)));
    let versions: &[_] = if settings.allow_tls13 { &[&TLS13, &TLS12] } else { &[&TLS12] };
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_cert_resolver(certificate.clone());
    follow(settings.clone(), certificate, tasks);
    Ok(config)
}

fn follow(settings: Tls, certificate: Arc<Certificate>, tasks: &Tasks) {
    let mut seen = changed(&settings);
    tasks.spawn_interval("certificate", LOOK_EVERY, move || {
        let now = changed(&settings);
        if now != seen {
            match load(&settings) {
                Ok(fresh) => {
                    show_expiry(&fresh);
                    certificate.0.store(Arc::new(fresh));
                    seen = now;
                    tracing::info!(
                        "the certificate was renewed from {}",
                        settings.certificate.display()
                    );
                }
                // The two files may be caught between two writes: keep the old pair and look again.
                Err(error) => tracing::warn!(
                    error = format!("{error:#}"),
                    "the new certificate is not usable"
                ),
            }
        }
        std::future::ready(())
    });
}

fn changed(settings: &Tls) -> [Option<SystemTime>; 2] {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    [modified(&settings.certificate), modified(&settings.key)]
}

/// A certificate that nobody renewed is an outage with a date: the metric says when.
fn show_expiry(shown: &CertifiedKey) {
    let end = shown.cert.first().and_then(|der| {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        u64::try_from(certificate.validity().not_after.timestamp()).ok()
    });
    let gauge = telemetry::meter()
        .u64_gauge("tls_certificate_expires_at_seconds")
        .with_description("When the certificate expires, in seconds since 1970")
        .build();
    match end {
        Some(end) => gauge.record(end, &[]),
        None => tracing::warn!("the certificate's last day cannot be read"),
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
        format!("{} is not the key of {}", settings.key.display(), settings.certificate.display())
    })
}
