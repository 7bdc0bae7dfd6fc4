//! The trait of metrics, and the targets they compare predictions with.

/// The targets of predictions.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// One class a row.
    Classes(&'a [u32]),
    /// `C` zeros or ones a row, row-major: several labels a node.
    Multi(&'a [u8]),
    /// One number a row, which metrics of classes pass over, as those of numbers pass over classes.
    Values(&'a [f32]),
}

/// A measure of predictions that accumulates over batches and merges over ranks.
pub trait Metric: Send {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// Adds one batch: `logits` is row-major with `num_classes` columns, `rows[i]` the row that
    /// target `i` belongs to.
    fn update(&mut self, logits: &[f32], num_classes: usize, rows: &[u32], targets: Targets<'_>);

    /// The state as words, for another rank's [`Metric::merge`].
    fn state(&self) -> Vec<u64>;

    /// Adds the state of another rank.
    fn merge(&mut self, state: &[u64]);

    /// The most bytes of memory that each value of the logits takes until the end; 0 of metrics that count.
    fn bytes_per_value(&self) -> usize {
        0
    }

    /// The value over all batches so far, of metrics of classes in `[0, 1]`; 0 where nothing defines it.
    fn value(&self) -> f64;
}

/// Column of the largest value; the first one on ties.
pub fn argmax(row: &[f32]) -> usize {
    let mut best = 0;
    for (c, &x) in row.iter().enumerate() {
        if x > row[best] {
            best = c;
        }
    }
    best
}

/// Row `row` of row-major `logits`.
pub(super) fn row_of(logits: &[f32], num_classes: usize, row: u32) -> &[f32] {
    &logits[row as usize * num_classes..][..num_classes]
}
