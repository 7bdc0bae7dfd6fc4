//! The comm thread: exchanges between ranks beside computation, or inline.

use std::collections::VecDeque;
use std::thread::Scope;

use crossbeam_channel::{Receiver, Sender, unbounded};
use gnarl_common::{Error, Kind, Result, profile};

use crate::step::tensor_parallel::Columns;

/// One message per rank, under the name of a stage.
type Parcel = (&'static str, Vec<Vec<u8>>);
/// The messages received from each rank.
type Received = Result<Vec<Vec<u8>>>;

/// Exchanges between all ranks, which complete in the order they were sent. All ranks send in the
/// same order.
pub(super) enum CommThread<'a> {
    /// Each exchange completes before the next row block is computed.
    Inline { columns: &'a Columns<'a>, received: VecDeque<Vec<Vec<u8>>> },
    /// Exchanges overlap with computation (NeutronTP, section 4.2.2).
    Beside { columns: &'a Columns<'a>, send: Sender<Parcel>, received: Receiver<Received> },
}

impl<'a> CommThread<'a> {
    /// A comm with one exchange at a time.
    pub fn inline(columns: &'a Columns<'a>) -> Self {
        Self::Inline { columns, received: VecDeque::new() }
    }

    /// A comm with exchanges on a thread of `scope`, which ends when the comm is dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn beside<'s>(
        scope: &'s Scope<'s, '_>,
        columns: &'s Columns<'s>,
    ) -> Result<CommThread<'s>> {
        let (send, parcels) = unbounded::<Parcel>();
        let (done, received) = unbounded();
        let rank = profile::rank();
        let carry = move || {
            profile::set_rank(rank);
            for (stage, parcel) in parcels {
                let came = columns.carry(stage, parcel);
                let failed = came.is_err();
                if done.send(came).is_err() || failed {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("exchange".into());
        thread
            .spawn_scoped(scope, carry)
            .map_err(|e| Error::new(Kind::Limit, format!("cannot start a thread: {e}")))?;
        Ok(CommThread::Beside { columns, send, received })
    }

    /// Sends `parcel[r]` to each rank `r`.
    ///
    /// # Errors
    /// If a rank failed.
    pub fn send(&mut self, stage: &'static str, parcel: Vec<Vec<u8>>) -> Result<()> {
        match self {
            Self::Inline { columns, received } => {
                received.push_back(columns.give(stage, parcel)?);
                Ok(())
            }
            Self::Beside { send, .. } => {
                // If the thread is gone, its error is among the received results.
                _ = send.send((stage, parcel));
                Ok(())
            }
        }
    }

    /// The result of the oldest exchange that was not received yet.
    ///
    /// # Errors
    /// If a rank failed.
    pub fn receive(&mut self) -> Result<Vec<Vec<u8>>> {
        let none = || Error::new(Kind::Rank, "exchange: nothing to receive");
        match self {
            Self::Inline { received, .. } => received.pop_front().ok_or_else(none),
            Self::Beside { columns, received, .. } => {
                columns.counted().timed(|| received.recv()).map_err(|_| none())?
            }
        }
    }
}
