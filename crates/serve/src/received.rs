//! The request of an exchange, received within limits.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use futures::{Stream, TryStreamExt, stream};
use tokio::time::{Instant, timeout};
use tonic::Status;

use crate::failure::status_of;
use crate::limits::{LONGEST, MESSAGE, SMALL, Share};
use crate::traffic::{Meter, bytes};

/// Time of a client to send a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time for which a request that arrives has the place of a small call. Then it is one of those that wait: slow clients must
/// not keep the places of others.
const HURRY: Duration = Duration::from_millis(50);

/// A request.
pub(crate) struct Asked {
    /// The descriptor's command.
    pub descriptor: Vec<u8>,
    /// All that was sent with it.
    pub batches: Vec<RecordBatch>,
    /// Bytes of all messages.
    pub bytes: u64,
    /// The memory for it.
    pub share: Share,
}

impl Asked {
    /// Receives the messages of an exchange, which `meter` counts, in the memory of `share`, which grows with them.
    ///
    /// # Errors
    /// If there is none, the request is too long, or it does not arrive in time.
    pub async fn receive(
        mut messages: impl Stream<Item = Result<FlightData, Status>> + Unpin,
        mut share: Share,
        meter: &Meter,
    ) -> Result<Self, Status> {
        let late = |_| {
            let seconds = PATIENCE.as_secs();
            Status::deadline_exceeded(format!("the request did not arrive within {seconds} s"))
        };
        let mut patience = PATIENCE;
        let mut hurry = HURRY;
        let mut all = Vec::new();
        let mut arrived = 0;
        loop {
            let start = Instant::now();
            let next = match timeout(hurry, messages.try_next()).await {
                Ok(next) => next?,
                Err(_) => {
                    share.wait(arrived + MESSAGE as u64)?;
                    timeout(patience, messages.try_next()).await.map_err(late)??
                }
            };
            // Waits for memory are the server's, not the client's.
            patience = patience.saturating_sub(start.elapsed());
            hurry = hurry.saturating_sub(start.elapsed());
            let Some(message) = next else { break };
            meter.receive(&message);
            arrived += bytes(&message);
            if arrived > LONGEST {
                let most = LONGEST >> 20;
                let message =
                    format!("the request is longer than {most} MiB: ask in several calls");
                return Err(Status::out_of_range(message));
            }
            all.push(message);
            if arrived > SMALL {
                share.grow_for_request(arrived).await?;
            }
        }
        match arrived > SMALL {
            true => share.grow_for_request(arrived).await?,
            false => share.settle().await?,
        }
        let Some(first) = all.first() else {
            return Err(Status::invalid_argument("the exchange has no message"));
        };
        let descriptor = first.flight_descriptor.as_ref().map(|d| d.cmd.to_vec());
        // Some clients send the descriptor alone first, others with the schema.
        let skipped = usize::from(first.data_header.is_empty());
        let rest = stream::iter(all.into_iter().skip(skipped).map(Ok));
        let batches = FlightRecordBatchStream::new_from_flight_data(rest).try_collect().await;
        let batches = batches.map_err(status_of)?;
        Ok(Self { descriptor: descriptor.unwrap_or_default(), batches, bytes: arrived, share })
    }
}
