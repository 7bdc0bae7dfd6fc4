//! Configurations that programs write and read again, such as those in the folders of runs.
//!
//! Their first line is a comment with the CRC-32 of all that follows, so that a damaged number is no other setting. Without
//! that line, as after a change by hand, the rest is read as it is.

use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};
use toml::{Table, Value};

use super::{RunConfig, words};

/// Start of the first line, before eight hexadecimal digits.
const CHECKSUM: &str = "# crc32 ";
/// End of the first line.
const ADVICE: &str = " of all that follows; delete this line after a change by hand";

impl RunConfig {
    /// The text of a configuration that is kept, for [`RunConfig::read`].
    ///
    /// # Errors
    /// Those of [`to_toml`](Self::to_toml).
    pub fn to_kept(&self) -> Result<String> {
        let text = self.to_toml()?;
        Ok(format!("{CHECKSUM}{:08x}{ADVICE}\n{text}", crc32fast::hash(text.as_bytes())))
    }

    /// Reads the configuration that a run keeps at `path`, without the checks of [`load`](crate::load): they were made
    /// when the run began.
    ///
    /// # Errors
    /// If there is none, or it is damaged; the error names the key.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).at(path)?;
        let of_file = |text: &str| Error::invalid(format!("{}: {text}", path.display()));
        if let Some(rest) = text.strip_prefix(CHECKSUM) {
            let (line, settings) = rest.split_once('\n').unwrap_or((rest, ""));
            let found = crc32fast::hash(settings.as_bytes());
            if line.get(..8) != Some(&format!("{found:08x}")) {
                return Err(of_file("damaged or changed after it was written: checksum differs")
                    .hint("delete its first line if the change is yours"));
            }
        }
        let table: Table =
            text.parse().map_err(|e: toml::de::Error| of_file(e.to_string().trim_end()))?;
        Value::Table(table.clone())
            .try_into()
            .map_err(|e| of_file(&words::of(&e, &table).to_string()))
    }

    /// The run file of all settings.
    ///
    /// # Errors
    /// If a value has no form in TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string_pretty(self)
            .map_err(|e| Error::invalid(format!("the configuration has no form in TOML: {e}")))
    }

    /// The settings by section.
    ///
    /// # Errors
    /// Those of [`to_toml`](Self::to_toml).
    pub fn to_table(&self) -> Result<Table> {
        // By way of the text: another serializer of all sections would take a second of every build.
        let text = self.to_toml()?;
        text.parse().map_err(|e| Error::invalid(format!("the configuration is not TOML: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let mut run = RunConfig::default();
        run.train.lr = 0.1;
        run.sample.fanouts = vec![5, -1];
        std::fs::write(&path, run.to_toml().unwrap()).unwrap();
        let again = RunConfig::read(&path).unwrap();
        assert_eq!(again.to_table().unwrap(), run.to_table().unwrap());
        assert_eq!((again.train.lr, again.sample.fanouts), (0.1, vec![5, -1]));
    }

    #[test]
    fn a_flipped_bit_is_named_and_a_change_by_hand_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let run = RunConfig::default();
        let kept = run.to_kept().unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            RunConfig::read(&path)
        };
        let expected = run.to_toml().unwrap();
        let mut named = 0;
        for bit in (0..8 * kept.len()).step_by(7) {
            let mut flipped = kept.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match read(&flipped) {
                Ok(found) => assert_eq!(found.to_toml().unwrap(), expected, "bit {bit}"),
                Err(error) => {
                    assert!(error.to_string().contains("config.toml"), "{error}");
                    named += 1;
                }
            }
        }
        assert!(named > 8 * expected.len() / 7 - 1, "{named}");
        let changed = kept.replace("epochs = ", "epochs = 1");
        let error = read(changed.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("delete its first line"), "{error}");
        let (_, by_hand) = changed.split_once('\n').unwrap();
        assert!(read(by_hand.as_bytes()).unwrap().train.epochs > run.train.epochs);
    }

    #[test]
    fn damage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let whole = RunConfig::default().to_toml().unwrap();
        for (text, named) in [
            (whole.replace("lr = ", "lr = 'a' # "), "train.lr"),
            (whole.replacen('=', "", 1), "line"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = RunConfig::read(&path).unwrap_err().to_string();
            assert!(error.contains("config.toml") && error.contains(named), "{error}");
        }
    }
}
