//! The trait of policies.

/// Decides which keys have a slot. The rows themselves lie elsewhere, one in each slot.
pub trait Policy: Send {
    /// Number of slots. All slots it gives are below it.
    fn slots(&self) -> usize;

    /// The slot of `key`, if it has one. Counts as a use of the key.
    fn get(&mut self, key: u64) -> Option<u32>;

    /// Offers a key that [`Policy::get`] does not find. Returns the slot for its row, which no
    /// other key has any more, or `None` if the row is not to be kept.
    fn insert(&mut self, key: u64) -> Option<u32>;
}
