//! The trait of cache policies.

/// Assigns slots to keys. The rows themselves are stored elsewhere, one per slot.
pub trait Policy: Send {
    /// Number of slots, above all that it assigns.
    fn slots(&self) -> usize;

    /// The slot of `key`, if it has one. Counts as a use of the key.
    fn get(&mut self, key: u64) -> Option<u32>;

    /// Offers a key that [`Policy::get`] does not find. Returns the slot for its row, which belongs
    /// to no other key any more, or `None` if the row is not to be cached.
    fn insert(&mut self, key: u64) -> Option<u32>;
}
