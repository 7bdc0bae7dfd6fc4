//! The place of an object in a store.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;

use crate::store::limits::Limits;
use crate::uri::Uri;

/// The store and the place there, as tasks share them.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub uri: Uri,
    pub path: Path,
    pub store: Arc<dyn ObjectStore>,
    pub limits: Limits,
}

impl Target {
    /// The place of `name` in the same folder.
    pub fn sibling(&self, name: &str) -> Self {
        let mut parts: Vec<_> = self.path.parts().collect();
        parts.pop();
        let path = parts.into_iter().chain([name.into()]).collect();
        Self { uri: self.uri.sibling(name), path, ..self.clone() }
    }

    /// The place of `name`, which may have slashes, below this one.
    pub fn child(&self, name: &str) -> Self {
        let path = name.split('/').fold(self.path.clone(), |path, part| path.join(part));
        Self { uri: self.uri.child(name), path, ..self.clone() }
    }
}
