//! Addresses in object stores.

use std::fmt;
use std::path::Path;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Error, Result};

/// The known schemes.
pub const SCHEMES: [&str; 4] = ["s3", "gs", "az", "file"];

/// True if `path` is an address, such as `s3://bucket/nodes.parquet`, rather than a path of this host.
pub fn is_uri(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://"))
}

/// The address of an object, or of a folder of objects: `s3://bucket/path`, `gs://bucket/path`,
/// `az://container/path`, or `file:///path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    text: String,
    scheme: &'static str,
    bucket: String,
    path: String,
}

impl Uri {
    /// The address in `text`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the scheme is unknown, or the bucket or the path is missing.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = |what: &str| Error::usage(format!("invalid address '{text}': {what}"));
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(invalid("expected a scheme such as s3://"));
        };
        let Some(scheme) = SCHEMES.iter().find(|known| **known == scheme) else {
            return Err(unknown("scheme", scheme, &SCHEMES).context(text.to_string()));
        };
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        match (*scheme, bucket) {
            ("file", "") => {}
            ("file", _) => {
                return Err(invalid("expected no host")
                    .hint("paths have three slashes: file:///data/nodes.csv"));
            }
            (_, "") => {
                return Err(invalid("no bucket").hint(format!("expected {scheme}://bucket/path")));
            }
            _ => {}
        }
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return Err(
                invalid("no path in the bucket").hint(format!("expected {scheme}://bucket/path"))
            );
        }
        if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return Err(invalid("expected names between slashes"));
        }
        let text = text.trim_end_matches('/').to_string();
        Ok(Self { text, scheme, bucket: bucket.into(), path: path.into() })
    }

    /// The scheme, one of [`SCHEMES`].
    pub fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// The bucket or container; empty for `file`.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The path in the bucket, without a slash at its ends.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The last name of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }

    /// The address of `name` in the same folder.
    #[must_use]
    pub fn sibling(&self, name: &str) -> Self {
        let replaced = |text: &str| {
            let kept = text.len() - self.name().len();
            format!("{}{name}", &text[..kept])
        };
        Self { text: replaced(&self.text), path: replaced(&self.path), ..self.clone() }
    }

    /// The address of `name`, which may have slashes, below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        let below = |text: &str| format!("{text}/{name}");
        Self { text: below(&self.text), path: below(&self.path), ..self.clone() }
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_bucket_and_a_path() {
        let uri = Uri::parse("s3://bucket/a b/nodes.parquet").unwrap();
        let parts = (uri.scheme(), uri.bucket(), uri.path(), uri.name());
        assert_eq!(parts, ("s3", "bucket", "a b/nodes.parquet", "nodes.parquet"));
        assert_eq!(uri.sibling("x.csv").to_string(), "s3://bucket/a b/x.csv");
        assert_eq!(uri.sibling("x.csv").path(), "a b/x.csv");
        assert_eq!(uri.child("c/0").to_string(), "s3://bucket/a b/nodes.parquet/c/0");
        let folder = Uri::parse("gs://bucket/nodes.zarr/").unwrap();
        assert_eq!(
            (folder.name(), folder.to_string().as_str()),
            ("nodes.zarr", "gs://bucket/nodes.zarr")
        );
        let file = Uri::parse("file:///data/nodes.csv").unwrap();
        assert_eq!((file.bucket(), file.path()), ("", "data/nodes.csv"));
    }

    #[test]
    fn other_addresses_are_refused() {
        for (text, expected) in [
            ("s4://bucket/a", "unknown scheme 's4'"),
            ("s3://bucket", "no path in the bucket"),
            ("s3:///a", "no bucket"),
            ("s3://bucket/a//b", "names between slashes"),
            ("s3://bucket/../b", "names between slashes"),
            ("file://data/a", "three slashes"),
        ] {
            let error = Uri::parse(text).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
