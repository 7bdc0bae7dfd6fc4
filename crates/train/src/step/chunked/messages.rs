//! A pass of messages of one step, forward or backward.

use super::layout::{Columns, Layout, Scores};
use super::passes::{ColumnPass, Direction, Made, Random};
use super::wire::Wire;

/// A pass in one of its directions.
pub(super) struct Messages<'m> {
    pub pass: &'m dyn ColumnPass,
    pub direction: Direction,
    pub random: Random,
    /// The rows that were sent forward, if the backward pass reads them.
    pub sent: Option<&'m Wire>,
}

impl<'m> Messages<'m> {
    /// The columns of what arrives where these are passed.
    pub fn arriving(&self, from: Columns) -> Columns {
        let scores = match self.direction {
            Direction::Forward => Scores::None,
            Direction::Backward => self.pass.scores(),
        };
        Columns { scores, ..from }
    }

    /// Passes column block `column_block` of the columns `from`, but for the last step.
    ///
    /// # Errors
    /// Those of files and of operations.
    pub fn begin(&self, layout: &Layout, from: &Wire, column_block: usize) -> Made<'m> {
        let columns = layout.split(from.columns.split, layout.rank, column_block);
        let given = from.matrix.column_block(column_block)?;
        let pass = self.pass;
        match self.direction {
            Direction::Forward => pass.forward(columns, self.random, given),
            Direction::Backward => {
                let sent = self.sent.map(|sent| sent.matrix.column_block(column_block));
                pass.backward(columns, self.random, sent.transpose()?, given)
            }
        }
    }
}
