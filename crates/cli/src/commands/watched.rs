//! Files of a server, compared while it serves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gnarl_common::integrity::{self, Background};
use gnarl_common::staging::interrupt;
use gnarl_common::{Context, Error, Kind, Result};
use signal_hook::consts::SIGTERM;

/// Pause between two looks at the files.
const PAUSE: Duration = Duration::from_secs(10);

/// Checksums of the files that a server has opened, and opens from now on.
pub struct Watched {
    damage: Arc<Mutex<Option<Error>>>,
    _checksums: Background,
}

impl Watched {
    /// Compares checksums in the background.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new() -> Result<Self> {
        Ok(Self { damage: Arc::default(), _checksums: integrity::in_background()? })
    }

    /// Asks the process to end if a file is found to be damaged, or is written to and has other values then. So many bytes are
    /// compared as fast as the disk allows, those left as far as the background comes to them.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch(&self, at_once: u64) -> Result<()> {
        let damage = self.damage.clone();
        let look = move || {
            let mut compared = integrity::finish(at_once).map(drop);
            while compared.is_ok() && interrupt::wait_for(PAUSE).is_none() {
                compared = integrity::unharmed();
            }
            if let Err(e) = compared {
                damage.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                interrupt::request(SIGTERM);
            }
        };
        let thread = std::thread::Builder::new().name("compare".into()).spawn(look);
        thread.map_err(|e| Error::new(Kind::Limit, format!("cannot start a thread: {e}")))?;
        Ok(())
    }

    /// Compares the files for the last time.
    ///
    /// # Errors
    /// If one is damaged, now or when it was looked at, naming it.
    pub fn finish(self) -> Result<()> {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner).take();
        let compared = damage.map_or_else(integrity::unharmed, Err);
        compared.while_doing(|| "comparing checksums of the files that were served")
    }
}
