//! A two-stage pipeline: one thread fills buffers, the other consumes them.

use std::sync::mpsc::sync_channel;

use gnarl_common::error::Result;

/// Calls `take` with every buffer that `fill` fills, in order, until `fill` reports the end.
/// The next buffer is filled while one is consumed: there are two, which keep their memory.
///
/// The first error of either.
/// The first of either's.
pub(super) fn pipeline<T: Default + Send>(
    mut fill: impl FnMut(&mut T) -> Result<bool> + Send,
    mut take: impl FnMut(&T) -> Result<()>,
) -> Result<()> {
    let (full, fulls) = sync_channel(1);
    let (empty, empties) = sync_channel(2);
    std::thread::scope(|scope| {
        let filler = scope.spawn(move || {
            let mut spare = vec![T::default(), T::default()];
            while let Some(mut buffer) = spare.pop().or_else(|| empties.recv().ok()) {
                if !fill(&mut buffer)? || full.send(buffer).is_err() {
                    break;
                }
            }
            Ok(())
        });
        let taken = fulls.iter().try_for_each(|buffer| {
            take(&buffer)?;
            // The receiver is gone once everything is filled.
            let _ = empty.send(buffer);
            Ok(())
        });
        // An unfinished filler stops at the closed channels.
        drop((fulls, empty));
        let filled = filler.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken.and(filled)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_common::Error;

    #[test]
    fn all_buffers_are_taken_in_order_and_errors_stop_both_sides() {
        let run = |bad_fill: u32, bad_take: u32| {
            let (mut next, mut taken) = (0, Vec::new());
            let result = pipeline(
                |buffer: &mut u32| {
                    next += 1;
                    *buffer = next;
                    let fails = next == bad_fill;
                    if fails { Err(Error::invalid("fill")) } else { Ok(next <= 20) }
                },
                |&buffer| {
                    taken.push(buffer);
                    if buffer == bad_take { Err(Error::invalid("take")) } else { Ok(()) }
                },
            );
            (result.is_ok(), taken)
        };
        assert_eq!(run(0, 0), (true, (1..=20).collect()));
        assert_eq!(run(7, 0), (false, (1..=6).collect()));
        assert_eq!(run(0, 3), (false, (1..=3).collect()));
    }
}
