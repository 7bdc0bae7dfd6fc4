//! Ids divided among parts.

use crate::{Error, Kind, Result, prefetch};

/// Shortest block of ids whose counts are kept.
const BLOCK: usize = 64;

/// The part of each id, and the position of the id among those of its part, which ascend.
///
/// Memory: a byte an id and at most half a byte of counts, or two bytes and as much beyond 256 parts. Positions are counted
/// from the start of a block of ids, as in a rank structure of a bit set.
///
/// ```
/// use gnarl_common::IdMap;
///
/// let ids = IdMap::new(2, &[1, 0, 1])?;
/// assert_eq!(ids.place(2), (1, 1));
/// // All ids in the order of parts: 1, then 0 and 2.
/// assert_eq!(ids.new_id(2), 2);
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug)]
pub struct IdMap {
    part: Parts,
    /// Ids of each part before each block: `blocks × parts`.
    before: Vec<u32>,
    /// Ids of a block are those with the same bits from here on.
    shift: u32,
    /// First position of each part among all ids in the order of parts, and the number of ids.
    starts: Vec<u64>,
}

/// The part of each id in few bytes.
#[derive(Debug)]
enum Parts {
    Byte(Vec<u8>),
    Word(Vec<u16>),
}

impl Default for IdMap {
    /// No ids in no parts.
    fn default() -> Self {
        Self {
            part: Parts::Byte(Vec::new()),
            before: Vec::new(),
            shift: BLOCK.trailing_zeros(),
            starts: vec![0],
        }
    }
}

impl IdMap {
    /// Id `i` is in part `of[i]` of `parts` parts.
    ///
    /// # Errors
    /// If an id is in none of the parts, a part has more than 2³² ids, or there are more than 65,536 parts.
    pub fn new(parts: usize, of: &[u32]) -> Result<Self> {
        if let Some(id) = of.iter().position(|&part| part as usize >= parts) {
            let part = of[id];
            return Err(Error::invalid(format!("id {id} is in part {part} of {parts}")));
        }
        if parts > usize::from(u16::MAX) + 1 {
            return Err(Error::new(Kind::Limit, format!("{parts} parts are more than 65,536")));
        }
        // Four bytes a part for each block are at most half a byte an id.
        let length = (8 * parts).next_power_of_two().max(BLOCK);
        let mut counts = vec![0u64; parts];
        let mut before = Vec::with_capacity(of.len().div_ceil(length) * parts);
        for block in of.chunks(length) {
            for &count in &counts {
                before.push(u32::try_from(count).map_err(|_| {
                    Error::new(Kind::Limit, "a part has more than 4 294 967 295 ids")
                })?);
            }
            block.iter().for_each(|&part| counts[part as usize] += 1);
        }
        let mut starts = vec![0];
        starts.extend(counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        }));
        let part = match parts <= usize::from(u8::MAX) + 1 {
            true => Parts::Byte(of.iter().map(|&part| part as u8).collect()),
            false => Parts::Word(of.iter().map(|&part| part as u16).collect()),
        };
        Ok(Self { part, before, shift: length.trailing_zeros(), starts })
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        match &self.part {
            Parts::Byte(part) => part.len(),
            Parts::Word(part) => part.len(),
        }
    }

    /// True if there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// First position of each part among all ids in the order of parts, and the number of ids.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The part of an id.
    ///
    /// # Panics
    /// If there is no such id; [`IdMap::place`] and [`IdMap::new_id`] likewise.
    #[inline(always)]
    pub fn part(&self, id: usize) -> usize {
        match &self.part {
            Parts::Byte(part) => part[id].into(),
            Parts::Word(part) => part[id].into(),
        }
    }

    /// The part of an id, and its position among the ids of the part.
    #[inline]
    pub fn place(&self, id: usize) -> (usize, u64) {
        let block = id >> self.shift;
        let within = block << self.shift..id;
        let (part, count) = match &self.part {
            Parts::Byte(parts) => (parts[id].into(), bytecount::count(&parts[within], parts[id])),
            Parts::Word(parts) => {
                let same = |&&part: &&u16| part == parts[id];
                (parts[id].into(), parts[within].iter().filter(same).count())
            }
        };
        (part, u64::from(self.before[block * self.parts() + part]) + count as u64)
    }

    /// The ids of a part, ascending. Takes a pass over the parts of all ids.
    pub fn ids_of(&self, part: usize) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.part {
            Parts::Byte(parts) => {
                let found = u8::try_from(part).ok().map(|part| memchr::memchr_iter(part, parts));
                Box::new(found.into_iter().flatten().map(|id| id as u64))
            }
            Parts::Word(parts) => {
                let own = (0u64..).zip(parts).filter(move |(_, of)| usize::from(**of) == part);
                Box::new(own.map(|(id, _)| id))
            }
        }
    }

    /// The position of an id in part `part`; none if it is in another one, or there is no such id.
    #[inline]
    pub fn position_in(&self, part: usize, id: u64) -> Option<u64> {
        let id = usize::try_from(id).ok().filter(|&id| id < self.len())?;
        let (found, position) = self.place(id);
        (found == part).then_some(position)
    }

    /// The position of an id among all ids in the order of parts.
    #[inline]
    pub fn new_id(&self, id: usize) -> u64 {
        let (part, position) = self.place(id);
        self.starts[part] + position
    }

    /// Prefetches what [`IdMap::part`] and [`IdMap::place`] read of an id.
    #[inline(always)]
    pub fn prefetch(&self, id: usize) {
        match &self.part {
            Parts::Byte(part) => prefetch::item(part, id),
            Parts::Word(part) => prefetch::item(part, id),
        }
        prefetch::item(&self.before, (id >> self.shift) * self.parts());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;

    #[test]
    fn positions_count_the_ids_of_a_part_before() {
        for (parts, len) in [(1, 1), (2, 64), (3, 1000), (9, 5000), (256, 9000), (300, 20_000)] {
            let of: Vec<u32> =
                (0..len).map(|id| Key::new(1).below(id, parts as u64) as u32).collect();
            let ids = IdMap::new(parts, &of).unwrap();
            let mut counts = vec![0; parts];
            assert_eq!((ids.len(), ids.parts()), (of.len(), parts));
            for (id, &part) in of.iter().enumerate() {
                let part = part as usize;
                let count = &mut counts[part];
                assert_eq!((ids.part(id), ids.place(id)), (part, (part, *count)), "{parts} parts");
                assert_eq!(ids.new_id(id), ids.starts()[part] + *count);
                assert_eq!(ids.position_in(part, id as u64), Some(*count));
                assert_eq!(ids.position_in(part + 1, id as u64), None);
                *count += 1;
            }
            assert_eq!(ids.position_in(0, len), None);
            assert_eq!(ids.starts()[parts], len);
        }
    }

    #[test]
    fn ids_in_no_part_are_refused() {
        let text = IdMap::new(2, &[0, 1, 2]).unwrap_err().to_string();
        assert!(text.contains("id 2 is in part 2 of 2"), "{text}");
        assert!(IdMap::new(2, &[]).unwrap().is_empty());
    }
}
