//! Conversion between errors and gRPC statuses.

use arrow_flight::error::FlightError;
use gnarl_common::{Error, Kind};
use tonic::{Code, Status};

/// The gRPC status of an error.
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

/// The error of a gRPC status.
pub(crate) fn error(status: &Status) -> Error {
    let kind = match status.code() {
        Code::FailedPrecondition | Code::Unauthenticated => Kind::Usage,
        Code::Unimplemented => {
            return Error::invalid(status.message())
                .hint("no gnarl server is there, or one of another version");
        }
        Code::InvalidArgument => Kind::InvalidInput,
        Code::ResourceExhausted | Code::OutOfRange => Kind::Limit,
        _ => Kind::Rank,
    };
    Error::new(kind, status.message())
}

/// The status behind a failed call.
pub(crate) fn status_of(e: FlightError) -> Status {
    match e {
        FlightError::Tonic(status) => *status,
        other => Status::internal(other.to_string()),
    }
}

/// Returns whether a retry may succeed: the server is away, or restarting.
pub(crate) fn is_passing(status: &Status) -> bool {
    use Code::{Aborted, Cancelled, DeadlineExceeded, Unavailable, Unknown};
    matches!(status.code(), Unavailable | Unknown | Cancelled | Aborted | DeadlineExceeded)
}
