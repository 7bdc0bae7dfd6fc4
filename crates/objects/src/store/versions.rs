//! Versions of objects.

use object_store::ObjectMeta;

/// A text that differs between versions of an object.
pub(crate) fn version_of(meta: &ObjectMeta) -> String {
    match &meta.e_tag {
        Some(tag) => format!("{} {tag}", meta.size),
        None => format!("{} {}", meta.size, meta.last_modified.to_rfc3339()),
    }
}
