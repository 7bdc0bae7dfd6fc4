//! The memory of calls under way.
//!
//! A call begins with a small place. One whose request or reply turns out to be large gives it back, and waits for a large
//! place with no more than its request in memory, which is counted, too: what waits never holds what others wait for.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// Bytes of a request, and those of a reply, up to which a call is small.
pub const SMALL: u64 = 1 << 20;
/// Most bytes of a message of a request, which is here before the request can be known to be large.
pub const MESSAGE: usize = 4 << 20;
/// Most bytes of a request.
pub const LONGEST: u64 = 64 << 20;
/// Bytes of a piece of a large reply.
pub const PIECE: u64 = 4 << 20;

/// Memory of a small call: a message of its request, and its reply as it is made, encoded, framed and sent.
const SMALL_PLACE: u64 = MESSAGE as u64 + 4 * SMALL;
/// Memory of a call with a large reply: a piece as it is made, encoded, framed and sent.
const REPLY_PLACE: u64 = 4 * PIECE;
/// Memory of a call with a large request: in both forms.
const REQUEST_PLACE: u64 = 2 * LONGEST;
/// Unit of the places of large calls, and of requests that wait for one.
const UNIT: u64 = 1 << 10;

/// The least memory: one large request beside small calls and such that wait.
pub const LEAST: u64 = 2 * REQUEST_PLACE;

/// The memory of all calls of a server; clones share it.
#[derive(Clone)]
pub(crate) struct Budget {
    small: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// The part of the memory that a call has.
pub(crate) struct Share {
    budget: Budget,
    place: Option<OwnedSemaphorePermit>,
    size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    Waiting,
    Small,
    Reply,
    Request,
}

impl Budget {
    /// A budget of `memory` bytes, at least [`LEAST`]: half for large calls, a quarter for small ones and for requests that
    /// wait.
    pub fn new(memory: u64) -> Self {
        let places = |bytes: u64, unit: u64| Arc::new(Semaphore::new((bytes / unit) as usize));
        Self {
            small: places(memory / 4, SMALL_PLACE),
            waiting: places(memory / 4, UNIT),
            large: places(memory / 2, UNIT),
        }
    }

    /// Waits for the place of a small call.
    ///
    /// # Errors
    /// If the server ends.
    pub async fn share(&self) -> Result<Share, Status> {
        let place = self.small().await?;
        Ok(Share { budget: self.clone(), place: Some(place), size: Size::Small })
    }

    async fn small(&self) -> Result<OwnedSemaphorePermit, Status> {
        self.small.clone().acquire_owned().await.map_err(|_| ends())
    }

    /// The place of a request of `held` bytes that waits.
    fn waiting(&self, held: u64) -> Result<OwnedSemaphorePermit, Status> {
        let place = self.waiting.clone().try_acquire_many_owned(units(held));
        place.map_err(|_| Status::unavailable("too many calls wait"))
    }
}

impl Share {
    /// Makes room for a large request of which `arrived` bytes are here.
    ///
    /// # Errors
    /// If too many others wait: the client may ask again.
    pub async fn grow_for_request(&mut self, arrived: u64) -> Result<(), Status> {
        self.grow(Size::Request, arrived).await
    }

    /// Makes room for the pieces of a large reply to a request of `asked` bytes.
    ///
    /// # Errors
    /// If too many others wait: the client may ask again.
    pub async fn grow_for_reply(&mut self, asked: u64) -> Result<(), Status> {
        self.grow(Size::Reply, asked).await
    }

    /// Gives the place back while a call with a request of `held` bytes waits for something else than memory.
    ///
    /// # Errors
    /// If too many others wait: the client may ask again.
    pub fn wait(&mut self, held: u64) -> Result<(), Status> {
        if self.size != Size::Waiting {
            self.place = Some(self.budget.waiting(held)?);
            self.size = Size::Waiting;
        }
        Ok(())
    }

    /// Waits for the place of a small call again after [`Share::wait`].
    ///
    /// # Errors
    /// If the server ends.
    pub async fn settle(&mut self) -> Result<(), Status> {
        if self.size == Size::Waiting {
            self.place = Some(self.budget.small().await?);
            self.size = Size::Small;
        }
        Ok(())
    }

    /// Gives back what a large request took as it arrived: its nodes are left, and the pieces of its reply.
    pub fn shrink(&mut self) {
        let kept = LONGEST / 2 + REPLY_PLACE;
        if self.size == Size::Request
            && let Some(place) = &mut self.place
        {
            drop(place.split(units(REQUEST_PLACE - kept) as usize));
        }
    }

    async fn grow(&mut self, size: Size, held: u64) -> Result<(), Status> {
        if self.size >= size {
            return Ok(());
        }
        if self.size <= Size::Small {
            self.place = Some(self.budget.waiting(held)?);
        }
        let bytes = if size == Size::Request { REQUEST_PLACE } else { REPLY_PLACE };
        let large = self.budget.large.clone().acquire_many_owned(units(bytes));
        self.place = Some(large.await.map_err(|_| ends())?);
        self.size = size;
        Ok(())
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

fn ends() -> Status {
    Status::unavailable("the server ends")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn within<F: Future>(work: F) -> Option<F::Output> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(Duration::from_millis(50), work).await.ok() })
    }

    #[test]
    fn large_calls_wait_for_large_ones_and_small_ones_for_none_of_them() {
        let budget = Budget::new(LEAST);
        let mut large = within(budget.share()).unwrap().unwrap();
        within(large.grow_for_request(SMALL)).unwrap().unwrap();
        let mut other = within(budget.share()).unwrap().unwrap();
        assert!(within(other.grow_for_reply(SMALL)).is_none());
        within(budget.share()).unwrap().unwrap();
        drop(large);
        let mut other = within(budget.share()).unwrap().unwrap();
        within(other.grow_for_reply(SMALL)).unwrap().unwrap();
        within(other.grow_for_reply(SMALL)).unwrap().unwrap();
    }

    #[test]
    fn small_calls_are_bounded_and_their_places_come_back() {
        let budget = Budget::new(LEAST);
        let places = LEAST / 4 / SMALL_PLACE;
        let held: Vec<_> = (0..places).map(|_| within(budget.share()).unwrap().unwrap()).collect();
        assert!(within(budget.share()).is_none());
        drop(held);
        within(budget.share()).unwrap().unwrap();
    }

    #[test]
    fn requests_that_wait_are_bounded() {
        let budget = Budget::new(LEAST);
        let mut first = within(budget.share()).unwrap().unwrap();
        within(first.grow_for_request(LONGEST)).unwrap().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut second = budget.share().await.unwrap();
            let waits = tokio::spawn(async move { second.grow_for_reply(LEAST / 4).await });
            tokio::task::yield_now().await;
            let mut third = budget.share().await.unwrap();
            let refused = third.grow_for_reply(SMALL).await.unwrap_err();
            assert_eq!(refused.code(), tonic::Code::Unavailable);
            drop(first);
            waits.await.unwrap().unwrap();
        });
    }
}
