//! Encryption of connections.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_serve::Tls;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Accepts encrypted connections by the certificate of `tls`.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] if the certificate or its key is invalid.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor> {
    let wrong = |e: &dyn std::fmt::Display| {
        Error::usage(format!("invalid certificate or key: {e}")).hint("both are PEM files")
    };
    let chain = CertificateDer::pem_slice_iter(&tls.certificate);
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|e| wrong(&e))?;
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|e| wrong(&e))?;
    // Named, as a build with several providers of encryption has no default.
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| wrong(&e))?;
    let mut config =
        config.with_no_client_auth().with_single_cert(chain, key).map_err(|e| wrong(&e))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
