//! Errors of object stores, with the address, what was being done and a hint.

use std::future::Future;
use std::time::Duration;

use gnarl_common::{Error, Kind, Result};
use object_store::Error as StoreError;

use crate::uri::Uri;

/// The error of a request about `uri`, made while `doing` something, such as "uploading".
pub(crate) fn failed(uri: &Uri, doing: &str, e: &StoreError) -> Error {
    let error = match e {
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } => exists(uri),
        _ if is_missing(e) => Error::new(Kind::Io, format!("{uri}: {e}")).hint(bucket_hint(uri)),
        _ if is_forbidden(e) => {
            Error::new(Kind::Io, format!("{uri}: {e}")).hint(credentials_hint(uri))
        }
        _ => Error::new(Kind::Io, format!("{uri}: {e}")).hint(endpoint_hint(uri)),
    };
    error.context(doing.to_string())
}

/// True if the object, or the bucket, is not there.
fn is_missing(e: &StoreError) -> bool {
    matches!(e, StoreError::NotFound { .. }) || has_status(e, "404")
}

/// True if the credentials do not suffice.
pub(crate) fn is_forbidden(e: &StoreError) -> bool {
    matches!(e, StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. })
        || has_status(e, "403")
        || has_status(e, "401")
}

/// True if the same request fails again at any later time.
pub(crate) fn is_lasting(e: &StoreError) -> bool {
    let refused = matches!(
        e,
        StoreError::NotSupported { .. }
            | StoreError::NotImplemented { .. }
            | StoreError::InvalidPath { .. }
            | StoreError::UnknownConfigurationKey { .. }
    );
    refused || is_missing(e) || is_forbidden(e) || has_status(e, "400")
}

/// True if a server answered with the status `code`: errors of listings have it in their text alone.
fn has_status(e: &StoreError, code: &str) -> bool {
    matches!(e, StoreError::Generic { .. })
        && e.to_string().contains(&format!("status code: {code} "))
}

/// The error of an object that is in the way.
pub(crate) fn exists(uri: &Uri) -> Error {
    Error::usage(format!("{uri}: exists already"))
        .hint("replace it with --force, or choose another --out")
}

/// The result of `request`, or an error after `deadline`.
///
/// # Errors
/// As [`failed`]; if the deadline is missed.
pub(crate) async fn within<T>(
    deadline: Duration,
    uri: &Uri,
    doing: &str,
    request: impl Future<Output = object_store::Result<T>>,
) -> Result<T> {
    match tokio::time::timeout(deadline, request).await {
        Ok(done) => done.map_err(|e| failed(uri, doing, &e)),
        Err(_) => Err(silent(deadline, uri, doing)),
    }
}

/// The error of a request about `uri` that nobody has answered, made while `doing` something.
pub(crate) fn silent(deadline: Duration, uri: &Uri, doing: &str) -> Error {
    let seconds = deadline.as_secs_f64();
    Error::new(Kind::Io, format!("{uri}: no answer within {seconds} s"))
        .hint(endpoint_hint(uri))
        .context(doing.to_string())
}

fn bucket_hint(uri: &Uri) -> String {
    match uri.scheme() {
        "file" => format!("is there a file /{}?", uri.path()),
        "s3" => format!(
            "is there a bucket '{}' in the region AWS_REGION, at AWS_ENDPOINT_URL if it is set?",
            uri.bucket()
        ),
        "gs" => format!("is there a bucket '{}'?", uri.bucket()),
        _ => format!("is there a container '{}' in AZURE_STORAGE_ACCOUNT_NAME?", uri.bucket()),
    }
}

fn credentials_hint(uri: &Uri) -> String {
    let names = match uri.scheme() {
        "file" => return "may this user read and write there?".into(),
        "s3" => "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
        "gs" => "GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS",
        _ => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    };
    format!("check the credentials in the environment: {names}; may they use '{}'?", uri.bucket())
}

fn endpoint_hint(uri: &Uri) -> &'static str {
    match uri.scheme() {
        "file" => "is the folder writable, and has the disk room?",
        "s3" => {
            "check the network, AWS_REGION, AWS_ENDPOINT_URL (with AWS_ALLOW_HTTP=true for http://) and the \
             credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
        }
        "gs" => "check the network and the credentials (GOOGLE_SERVICE_ACCOUNT)",
        _ => {
            "check the network, AZURE_STORAGE_ENDPOINT and the credentials (AZURE_STORAGE_ACCOUNT_NAME, \
             AZURE_STORAGE_ACCOUNT_KEY)"
        }
    }
}
