//! Nonblocking MPI buffers, and short messages.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use mpi::point_to_point::{Destination, Source};
use mpi::request::{Request, StaticScope};
use mpi::topology::{Communicator, Rank, SimpleCommunicator};
use mpi::traits::Equivalence;

/// Largest frame in bytes: MPI counts in 31 bits, and transports do not gain from larger ones.
const FRAME: usize = 1 << 26;
/// Most bytes sent with the head: with the stage's name they stay below the eager limit of
/// transports (4 KiB in shared memory), so that receiving them never waits.
pub(super) const FEW: usize = 2048;

/// A buffer in transfer, in frames. One dropped before completion stays allocated: MPI may access
/// it at any time, and waiting could block forever.
///
/// The safe interface of MPI offers only unbounded waits, hence the `unsafe` below. It is sound
/// since the buffers lie on the heap, are accessed through this type alone until no request is
/// left, and are never freed before.
pub(super) struct Transfer<B> {
    frames: Vec<Request<'static, [u8], StaticScope>>,
    buffer: ManuallyDrop<B>,
}

impl Transfer<Arc<Vec<u8>>> {
    /// Sends `bytes` to rank `to`.
    pub(super) fn send(to: Rank, tag: i32, bytes: Arc<Vec<u8>>) -> Self {
        // SAFETY: see the type; shared bytes are never written.
        let all: &'static [u8] = unsafe { &*std::ptr::from_ref(bytes.as_slice()) };
        let send = |frame| {
            let world = SimpleCommunicator::world();
            world.process_at_rank(to).immediate_send_with_tag(StaticScope, frame, tag)
        };
        Self { frames: all.chunks(FRAME).map(send).collect(), buffer: ManuallyDrop::new(bytes) }
    }
}

impl Transfer<Vec<u8>> {
    /// Receives `length` bytes from rank `from`.
    pub(super) fn receive(from: Rank, tag: i32, length: usize) -> Self {
        let mut bytes = vec![0; length];
        // SAFETY: see the type; nothing else reads or writes the bytes.
        let all: &'static mut [u8] = unsafe { &mut *std::ptr::from_mut(bytes.as_mut_slice()) };
        let receive = |frame| {
            let world = SimpleCommunicator::world();
            world.process_at_rank(from).immediate_receive_into_with_tag(StaticScope, frame, tag)
        };
        let frames = all.chunks_mut(FRAME).map(receive).collect();
        Self { frames, buffer: ManuallyDrop::new(bytes) }
    }
}

impl<B: Default> Transfer<B> {
    /// Number of frames completed since the last call.
    pub(super) fn look(&mut self) -> usize {
        let before = self.frames.len();
        let frames = std::mem::take(&mut self.frames);
        self.frames = frames.into_iter().filter_map(|frame| frame.test().err()).collect();
        before - self.frames.len()
    }

    /// Returns whether all frames are completed.
    pub(super) fn is_done(&self) -> bool {
        self.frames.is_empty()
    }

    /// The buffer.
    ///
    /// # Panics
    /// If the transfer is not complete.
    pub(super) fn into_buffer(mut self) -> B {
        assert!(self.is_done(), "the buffer is still on its way");
        std::mem::take(&mut self.buffer)
    }
}

impl<B> Drop for Transfer<B> {
    fn drop(&mut self) {
        if self.frames.is_empty() {
            // SAFETY: dropped here only, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
        self.frames.drain(..).for_each(std::mem::forget);
    }
}

/// The next message of a source under `tag` and its sender, if one arrived; only for short
/// messages, which arrive at once.
pub(super) fn take(source: impl Source, tag: i32) -> Option<(usize, Vec<u8>)> {
    let (message, status) = source.immediate_matched_probe_with_tag(tag)?;
    let mut bytes = vec![0; status.count(u8::equivalent_datatype()) as usize];
    message.matched_receive_into(&mut bytes[..]);
    Some((status.source_rank() as usize, bytes))
}
