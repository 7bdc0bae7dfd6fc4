//! What carries parcels to other ranks: a thread beside the one that computes, or that one itself.

use std::collections::VecDeque;
use std::thread::Scope;

use crossbeam_channel::{Receiver, Sender, unbounded};
use gnarl_common::{Error, Kind, Result};

use crate::step::tensor_parallel::Columns;

/// Something for each rank, under the name of a stage.
type Parcel = (&'static str, Vec<Vec<u8>>);
/// What came from each rank.
type Received = Result<Vec<Vec<u8>>>;

/// Exchanges between all ranks, which come back in the order they were sent. All ranks send in the same
/// order.
pub(super) enum Courier<'a> {
    /// Each exchange ends before the next piece is computed.
    Inline { columns: &'a Columns<'a>, received: VecDeque<Vec<Vec<u8>>> },
    /// Exchanges go on under computation (NeutronTP, section 4.2.2).
    Beside { columns: &'a Columns<'a>, send: Sender<Parcel>, received: Receiver<Received> },
}

impl<'a> Courier<'a> {
    /// Exchanges one at a time.
    pub fn inline(columns: &'a Columns<'a>) -> Self {
        Self::Inline { columns, received: VecDeque::new() }
    }

    /// Exchanges on a thread of `scope`, which ends when the courier is dropped.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn beside<'s>(scope: &'s Scope<'s, '_>, columns: &'s Columns<'s>) -> Result<Courier<'s>> {
        let (send, parcels) = unbounded::<Parcel>();
        let (done, received) = unbounded();
        let carry = move || {
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
        Ok(Courier::Beside { columns, send, received })
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
                // If the thread is gone, its error is among what was received.
                _ = send.send((stage, parcel));
                Ok(())
            }
        }
    }

    /// What came of the oldest exchange that was not asked for yet.
    ///
    /// # Errors
    /// If a rank failed.
    pub fn receive(&mut self) -> Result<Vec<Vec<u8>>> {
        let none = || Error::new(Kind::Rank, "exchange: nothing was sent");
        match self {
            Self::Inline { received, .. } => received.pop_front().ok_or_else(none),
            Self::Beside { columns, received, .. } => {
                columns.counted().timed(|| received.recv()).map_err(|_| none())?
            }
        }
    }
}
