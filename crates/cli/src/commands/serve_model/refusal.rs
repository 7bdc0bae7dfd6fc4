//! Answers to requests that are refused.

use hyper::StatusCode;
use serde_json::{Map, Value};

/// A refused request: its status, and the reason for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: StatusCode,
    /// True if the client is to ask again over another connection.
    pub closes: bool,
    message: String,
    hint: Option<String>,
}

impl Refusal {
    /// A refusal with `status`.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, closes: false, message: message.into(), hint: None }
    }

    /// A request that is wrong in itself.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A refusal after which the connection is closed.
    #[must_use]
    pub fn closing(self) -> Self {
        Self { closes: true, ..self }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The body of the answer.
    pub fn body(&self) -> String {
        let mut body = Map::from_iter([("error".into(), Value::from(&*self.message))]);
        if let Some(hint) = &self.hint {
            body.insert("hint".into(), hint.as_str().into());
        }
        Value::Object(body).to_string()
    }
}
