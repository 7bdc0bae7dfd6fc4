//! Configurations that programs write and read again, such as those in the folders of runs.

use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};
use toml::{Table, Value};

use super::{RunConfig, words};

impl RunConfig {
    /// Reads the configuration that a run keeps at `path`, without the checks of [`load`](crate::load): they were made
    /// when the run began.
    ///
    /// # Errors
    /// If there is none, or it is damaged; the error names the key.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).at(path)?;
        let of_file = |text: &str| Error::invalid(format!("{}: {text}", path.display()));
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
