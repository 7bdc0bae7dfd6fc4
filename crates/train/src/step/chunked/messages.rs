//! A pass of messages of one step, forward or backward.

use gnarl_common::Result;
use gnarl_common::rng::Key;

use super::layout::{Columns, Layout};
use super::passes::{ColumnPass, Part};
use super::schedule::Wire;

/// Forward or backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// A pass in one of its directions.
pub(super) struct Messages<'m> {
    pub pass: &'m dyn ColumnPass,
    pub direction: Direction,
    /// Key of its random draws.
    pub key: Option<Key>,
    /// What was sent forward, if the backward pass reads it.
    pub sent: Option<&'m Wire>,
}

impl<'m> Messages<'m> {
    /// The columns of what arrives where these are passed.
    pub fn arriving(&self, from: Columns) -> Columns {
        let heads = match self.direction {
            Direction::Forward => 0,
            Direction::Backward => self.pass.heads(),
        };
        Columns { heads, ..from }
    }

    /// Passes column block `column_block` of the columns `from`, but for the last step.
    ///
    /// # Errors
    /// Those of files.
    pub fn begin(
        &self,
        layout: &Layout,
        from: &Wire,
        column_block: usize,
    ) -> Result<Box<dyn Part + 'm>> {
        let columns = layout.split(from.columns.split, layout.rank, column_block);
        let given = from.matrix.column_block(column_block)?;
        let pass = self.pass;
        Ok(match self.direction {
            Direction::Forward => pass.forward(columns, self.key, given),
            Direction::Backward => {
                let sent = self.sent.map(|sent| sent.matrix.column_block(column_block));
                pass.backward(columns, self.key, sent.transpose()?, given)
            }
        })
    }
}
