//! Plausible mistakes of new users: none is silent, none is answered by a message that misleads.

mod case;
mod import;
mod runs;
mod settings;
mod tables;
mod values;
