//! The trait of synchronization.

use gnarl_common::Result;
use gnarl_engine::Communicator;

use crate::session::Session;
use crate::state::TrainState;
use crate::step::AnyStep;

/// A training loop over the steps `S`: which ranks compute what, and when they share it.
pub(crate) trait Synchronization<S: AnyStep + ?Sized> {
    /// Trains from `state` to the last epoch or until patience ends. All ranks call it together and
    /// return the same weights.
    ///
    /// # Errors
    /// Those of sampling and of the other ranks; a loss or weight that is no finite number.
    fn train(
        &self,
        session: &Session<'_>,
        steps: &S,
        comm: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState>;
}
