//! Membership of groups.

use gnarl_common::{Error, Result};

/// Encodes `numbers` as a message.
pub(crate) fn message<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.map(u64::to_le_bytes).concat()
}

/// Decodes the numbers of each rank's message.
pub(crate) fn numbers<const N: usize>(stage: &str, all: &[Vec<u8>]) -> Result<Vec<[u64; N]>> {
    let read = |bytes: &Vec<u8>| -> Option<[u64; N]> {
        let numbers: Vec<u64> =
            bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        numbers.try_into().ok()
    };
    let all: Option<Vec<_>> = all.iter().map(read).collect();
    all.ok_or_else(|| Error::invalid(format!("{stage}: a rank sent a damaged message")))
}

/// The ranks of `color` among everyone's color and key, in the order of keys.
pub(crate) fn members(choices: impl Iterator<Item = (u64, u64)>, color: u64) -> Vec<usize> {
    let of_color = choices.enumerate().filter(|(_, choice)| choice.0 == color);
    let mut members: Vec<(u64, usize)> = of_color.map(|(rank, choice)| (choice.1, rank)).collect();
    members.sort_unstable();
    members.into_iter().map(|(_, rank)| rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_decide_and_ranks_where_they_are_equal() {
        let choices = [(7, 2), (0, 0), (7, 1), (7, 2), (0, 9)];
        assert_eq!(members(choices.into_iter(), 7), [2, 0, 3]);
        assert_eq!(members(choices.into_iter(), 0), [1, 4]);
    }

    #[test]
    fn a_message_of_another_length_is_refused() {
        let sent = [message([1, 2]), message([3, 4])];
        assert_eq!(numbers::<2>("split", &sent).unwrap(), [[1, 2], [3, 4]]);
        assert!(numbers::<3>("split", &sent).unwrap_err().to_string().starts_with("split:"));
    }
}
