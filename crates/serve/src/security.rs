//! Authentication and encryption.

use std::net::SocketAddr;
use std::path::Path;

use gnarl_common::{Context, Error, Kind, Result, ResultExt};
use subtle::ConstantTimeEq;
use tonic::metadata::MetadataMap;
use tonic::transport::{Identity, ServerTlsConfig};
use tonic::{Request, Status};

use crate::limits;

/// A server's certificate and key, in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The certificate, and the chain of those that sign it.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
}

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// If one cannot be read, naming it.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self> {
        let read = |path: &Path| std::fs::read(path).at(path);
        warn_of_readers("private key", key);
        Ok(Self { certificate: read(certificate)?, key: read(key)? })
    }

    /// A self-signed certificate for `addresses`, for clients that receive it another way.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn self_signed(addresses: Vec<String>) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(addresses)
            .map_err(|e| Error::new(Kind::Limit, format!("cannot make a certificate: {e}")))?;
        let certificate = made.cert.pem().into_bytes();
        Ok(Self { certificate, key: made.signing_key.serialize_pem().into_bytes() })
    }

    pub(crate) fn config(&self) -> ServerTlsConfig {
        ServerTlsConfig::new().identity(Identity::from_pem(&self.certificate, &self.key))
    }
}

/// An unguessable token: 32 random bytes in hexadecimal.
///
/// # Errors
/// If the system has no random numbers.
pub fn random_token() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::new(Kind::Limit, format!("cannot make a token: {e}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Warns of a secret file that other users of the machine may read.
fn warn_of_readers(what: &str, path: &Path) {
    #[cfg(unix)]
    if let Some(mode) = others_may_read(path) {
        let path = path.display();
        tracing::warn!(
            "other users may read the {what} {path} (mode {mode:03o}): chmod 600 {path}"
        );
    }
    #[cfg(not(unix))]
    let _ = (what, path);
}

/// The permissions of a file that its group or others may read.
#[cfg(unix)]
fn others_may_read(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o044 != 0).then_some(mode)
}

/// Reads the token in a file, without the end of its line.
///
/// # Errors
/// If the file cannot be read, or is not one word of ASCII characters.
pub fn read_token(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).at(path).while_doing(|| "reading the token")?;
    warn_of_readers("token", path);
    let token = text.trim();
    if token.is_empty() || token.contains(|c: char| !c.is_ascii_graphic()) {
        let what =
            format!("invalid token in {}: expected one word of ASCII characters", path.display());
        return Err(Error::usage(what).hint("such as the output of 'openssl rand -hex 32'"));
    }
    Ok(token.into())
}

/// Rejects a public address without a token and encryption, unless `open` allows it.
///
/// # Errors
/// [`Kind::Usage`] naming what the address `listen` requires.
pub fn check_address(listen: SocketAddr, token: bool, tls: bool, open: bool) -> Result<()> {
    if listen.ip().is_loopback() || open || (token && tls) {
        return Ok(());
    }
    let missing = match (token, tls) {
        (false, false) => "a token and a certificate",
        (false, true) => "a token",
        _ => "a certificate",
    };
    let what = format!("listening on {listen}, which other machines can reach, requires {missing}");
    Err(Error::usage(what)
        .hint("give --token-file, --tls-cert and --tls-key, or --open-to-everyone"))
}

/// Admits calls that bear the token.
#[derive(Clone)]
pub struct Guard(Option<String>);

impl Guard {
    /// Admits all calls without a token.
    pub fn new(token: Option<String>) -> Self {
        Self(token.map(|token| bearer(&token)))
    }

    /// Compares the header `authorization` of a call, empty if there is none, in constant time.
    ///
    /// # Errors
    /// If it does not bear the token: the reason, for the client.
    pub fn admit(&self, header: &[u8]) -> Result<(), &'static str> {
        match &self.0 {
            Some(expected) if !bool::from(header.ct_eq(expected.as_bytes())) => {
                Err(if header.is_empty() { "no token was given" } else { "the token is wrong" })
            }
            _ => Ok(()),
        }
    }
}

impl tonic::service::Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let given = header(request.metadata());
        self.admit(given.as_bytes()).map_err(Status::unauthenticated)?;
        if let Some(peer) = limits::peer(request.extensions()) {
            peer.connection.admit();
        }
        Ok(request)
    }
}

/// The authorization header of a token.
pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn header(metadata: &MetadataMap) -> &str {
    metadata.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn secrets_that_others_may_read_are_noticed() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        let with = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), permissions).unwrap();
            others_may_read(file.path())
        };
        assert_eq!(with(0o600), None);
        assert_eq!(with(0o640), Some(0o640));
        assert_eq!(with(0o604), Some(0o604));
    }

    #[test]
    fn only_loopback_is_open() {
        let check =
            |at: &str, token, tls, open| check_address(at.parse().unwrap(), token, tls, open);
        check("127.0.0.1:1", false, false, false).unwrap();
        check("[::1]:1", false, false, false).unwrap();
        check("10.0.0.1:1", true, true, false).unwrap();
        check("0.0.0.0:1", false, false, true).unwrap();
        for (token, tls, text) in [
            (false, false, "requires a token and a certificate"),
            (true, false, "requires a certificate"),
            (false, true, "requires a token"),
        ] {
            let error = check("0.0.0.0:1", token, tls, false).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("--open-to-everyone"), "{error}");
        }
    }
}
