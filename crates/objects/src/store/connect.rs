//! Stores by their schemes, with settings of the environment.

use std::sync::Arc;
use std::time::Duration;

use gnarl_common::Result;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};

use crate::store::failure::failed;
use crate::uri::Uri;

/// Longest wait for one request, where the environment has no other. A part of 16 MiB arrives within it over
/// a line of 1.2 MBit/s.
const TIMEOUT: &str = "120 seconds";

/// The store of `uri`, and the path of `uri` there. No request is made.
///
/// # Errors
/// If a setting of the environment is invalid, or the path is none of an object.
pub(crate) fn connect(uri: &Uri) -> Result<(Arc<dyn ObjectStore>, Path)> {
    // Another part of the program may have chosen a provider; either will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let opened = store(uri).and_then(|store| Ok((store, path(uri)?)));
    opened.map_err(|e| failed(uri, "opening", &e))
}

fn path(uri: &Uri) -> object_store::Result<Path> {
    match uri.scheme() {
        "file" => Ok(Path::from_absolute_path(format!("/{}", uri.path()))?),
        _ => Ok(Path::parse(uri.path())?),
    }
}

fn store(uri: &Uri) -> object_store::Result<Arc<dyn ObjectStore>> {
    // A request is repeated for as long as credentials and deadlines allow.
    let retry = RetryConfig {
        max_retries: 5,
        retry_timeout: Duration::from_secs(60),
        ..RetryConfig::default()
    };
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let bucket = uri.bucket();
    let timeout = ClientConfigKey::Timeout;
    Ok(match uri.scheme() {
        "s3" => {
            let mut s3 = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
            if !is_set("AWS_TIMEOUT") {
                s3 = s3.with_config(AmazonS3ConfigKey::Client(timeout), TIMEOUT);
            }
            Arc::new(s3.build()?)
        }
        "gs" => {
            let mut gcs = GoogleCloudStorageBuilder::from_env();
            gcs = gcs.with_bucket_name(bucket).with_retry(retry);
            if !is_set("GOOGLE_TIMEOUT") {
                gcs = gcs.with_config(GoogleConfigKey::Client(timeout), TIMEOUT);
            }
            Arc::new(gcs.build()?)
        }
        "az" => {
            let mut azure = MicrosoftAzureBuilder::from_env();
            azure = azure.with_container_name(bucket).with_retry(retry);
            if !is_set("AZURE_TIMEOUT") {
                azure = azure.with_config(AzureConfigKey::Client(timeout), TIMEOUT);
            }
            Arc::new(azure.build()?)
        }
        _ => Arc::new(LocalFileSystem::new()),
    })
}
