//! Read-ahead of a stream of edges on a thread of its own.

use std::sync::mpsc::sync_channel;
use std::thread;

use gnarl_common::error::Result;
use gnarl_graph::{CHUNK_EDGES, EdgeChunk, EdgeStream};

/// Chunks in the queue: with the two in use, 4 MiB.
const WAITING: usize = 2;

/// Calls `visit` with every chunk of the stream, in its order, while another thread reads the next
/// ones. Graphs of few chunks are read by the caller's thread.
///
/// # Errors
/// Those of the stream.
pub(crate) fn for_each_chunk(
    edges: &mut dyn EdgeStream,
    visit: &mut dyn FnMut(&EdgeChunk),
) -> Result<()> {
    edges.reset()?;
    if edges.num_edges() <= (4 * CHUNK_EDGES) as u64 {
        let mut chunk = EdgeChunk::default();
        while edges.next_chunk(&mut chunk)? {
            visit(&chunk);
        }
        return Ok(());
    }
    thread::scope(|scope| {
        let (full, read) = sync_channel::<EdgeChunk>(WAITING);
        let (done, empty) = sync_channel::<EdgeChunk>(WAITING + 2);
        let reader = scope.spawn(move || -> Result<()> {
            loop {
                let mut chunk = empty.try_recv().unwrap_or_default();
                if !edges.next_chunk(&mut chunk)? || full.send(chunk).is_err() {
                    return Ok(());
                }
            }
        });
        for chunk in read {
            visit(&chunk);
            // A reader that has finished takes no more chunks back.
            let _ = done.try_send(chunk);
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_common::error::Error;
    use gnarl_graph::MemoryEdges;

    #[test]
    fn chunks_come_in_order() {
        for count in [0, 10, 700_000] {
            let pairs: Vec<(u64, u64)> = (0..count).map(|i| (i % 1000, i % 7)).collect();
            let mut seen = Vec::new();
            let mut edges = MemoryEdges::new(1000, pairs.clone()).unwrap();
            for_each_chunk(&mut edges, &mut |chunk| seen.extend(chunk.iter())).unwrap();
            assert_eq!(seen, pairs);
        }
    }

    /// A stream that fails after some chunks.
    struct Broken(u32);

    impl EdgeStream for Broken {
        fn num_nodes(&self) -> u64 {
            1
        }

        fn num_edges(&self) -> u64 {
            u64::MAX
        }

        fn reset(&mut self) -> Result<()> {
            Ok(())
        }

        fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> Result<bool> {
            chunk.clear();
            chunk.src.push(0);
            chunk.dst.push(0);
            self.0 -= 1;
            if self.0 > 0 { Ok(true) } else { Err(Error::invalid("torn")) }
        }
    }

    #[test]
    fn errors_of_the_reader_arrive() {
        let mut visited = 0;
        let error = for_each_chunk(&mut Broken(9), &mut |_| visited += 1).unwrap_err();
        assert_eq!((visited, error.to_string().contains("torn")), (8, true));
    }
}
