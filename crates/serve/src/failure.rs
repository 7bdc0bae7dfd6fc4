//! Errors on their way through gRPC.

use arrow_flight::error::FlightError;
use gnarl_common::{Error, Kind};
use tonic::{Code, Status};

/// The status a client gets for an error.
pub(crate) fn status(e: &Error) -> Status {
    let code = match e.kind() {
        Kind::Usage => Code::FailedPrecondition,
        Kind::InvalidInput => Code::InvalidArgument,
        Kind::Limit => Code::ResourceExhausted,
        Kind::Interrupted => Code::Cancelled,
        Kind::Io | Kind::Rank => Code::Internal,
    };
    Status::new(code, e.to_string())
}

/// The error a status stands for.
pub(crate) fn error(status: &Status) -> Error {
    let kind = match status.code() {
        Code::FailedPrecondition | Code::Unauthenticated => Kind::Usage,
        Code::InvalidArgument => Kind::InvalidInput,
        Code::ResourceExhausted | Code::OutOfRange => Kind::Limit,
        _ => Kind::Rank,
    };
    Error::new(kind, status.message())
}

/// What a call failed of.
pub(crate) fn status_of(e: FlightError) -> Status {
    match e {
        FlightError::Tonic(status) => *status,
        other => Status::internal(other.to_string()),
    }
}

/// Whether the same call may succeed a moment later: the server is away, or on its way back.
pub(crate) fn is_passing(status: &Status) -> bool {
    use Code::{Aborted, Cancelled, DeadlineExceeded, Unavailable, Unknown};
    matches!(status.code(), Unavailable | Unknown | Cancelled | Aborted | DeadlineExceeded)
}
