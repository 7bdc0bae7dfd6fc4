//! The one error type of the project.
//!
//! An [`Error`] has a message, the steps during which it occurred (outermost first), and, where one
//! is known, a hint. It prints as
//!
//! ```text
//! importing npy: edges.npy: row 17: source id -3 is negative
//! hint: ids are counted from 0
//! ```

use std::fmt;
use std::path::Path;

/// The class of failure of an [`Error`], which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command line or configuration asks for something that does not exist. Exit code 2.
    Usage,
    /// A file's content is invalid. Exit code 1.
    InvalidInput,
    /// The operating system reported an error: missing file, no permission, full disk. Exit code 1.
    Io,
    /// A stated memory or size limit does not suffice. Exit code 1.
    Limit,
    /// A rank missed its deadline, or left. Exit code 1.
    Rank,
    /// A user or scheduler requested the end. Exit code 130, or the signal's.
    Interrupted,
}

/// A structured error: kind, message, context and hint. It has the size of a pointer, as results are passed on at every
/// step of the hot loops, and errors are rare.
pub struct Error(Box<Parts>);

struct Parts {
    kind: Kind,
    message: String,
    context: Vec<String>,
    hint: Option<String>,
    source: Option<std::io::Error>,
}

/// The result of everything fallible in gnarl.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with `message`.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Parts { kind, message, context: Vec::new(), hint: None, source: None }))
    }

    /// Shorthand for [`Kind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Shorthand for [`Kind::InvalidInput`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidInput, message)
    }

    /// An operating-system error at `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        let mut error = Self::new(Kind::Io, format!("{}: {source}", path.as_ref().display()));
        error.0.source = Some(source);
        error
    }

    /// Adds the current step; the last context added is the outermost and prints first.
    #[must_use]
    pub fn context(mut self, doing: impl Into<String>) -> Self {
        self.0.context.push(doing.into());
        self
    }

    /// Adds a hint, printed on a line of its own.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The message with the steps during which it occurred, without the hint.
    pub fn message(&self) -> String {
        let steps = self.0.context.iter().rev().map(|doing| format!("{doing}: "));
        steps.chain([self.0.message.clone()]).collect()
    }

    /// The hint, if there is one.
    pub fn advice(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The class of failure.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The process exit code of this error.
    pub fn exit_code(&self) -> u8 {
        match self.0.kind {
            Kind::Usage => 2,
            Kind::Interrupted => 130,
            _ => 1,
        }
    }
}

/// For several ranks that fail by one cause.
impl Clone for Error {
    fn clone(&self) -> Self {
        let Parts { kind, message, context, hint, source } = &*self.0;
        // The system's errors have no copies; kind and text are all that is read of them.
        let source = source.as_ref().map(|e| std::io::Error::new(e.kind(), e.to_string()));
        Self(Box::new(Parts {
            kind: *kind,
            message: message.clone(),
            context: context.clone(),
            hint: hint.clone(),
            source,
        }))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { kind, message, context, hint, source } = &*self.0;
        let mut all = f.debug_struct("Error");
        all.field("kind", kind).field("message", message).field("context", context);
        all.field("hint", hint).field("source", source).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for doing in self.0.context.iter().rev() {
            write!(f, "{doing}: ")?;
        }
        f.write_str(&self.0.message)?;
        match &self.0.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}

/// Attaches a path or a step to foreign results.
pub trait ResultExt<T> {
    /// Turns an I/O error into one that names `path`.
    fn at(self, path: impl AsRef<Path>) -> Result<T>;
}

impl<T> ResultExt<T> for std::io::Result<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|e| Error::io(path, e))
    }
}

/// Adds context to our own results, lazily.
pub trait Context<T> {
    /// Adds the step during which the error occurred.
    fn while_doing<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T>;
}

impl<T> Context<T> for Result<T> {
    fn while_doing<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|e| e.context(doing()))
    }
}
