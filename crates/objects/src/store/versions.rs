//! Versions of objects, and numbers of texts.

use object_store::ObjectMeta;

/// A text that differs between versions of an object.
pub(crate) fn version_of(meta: &ObjectMeta) -> String {
    match &meta.e_tag {
        Some(tag) => format!("{} {tag}", meta.size),
        None => format!("{} {}", meta.size, meta.last_modified.to_rfc3339()),
    }
}

/// A number of a text: FNV-1a, which is the same in every build.
pub(crate) fn number_of(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
