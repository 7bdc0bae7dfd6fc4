//! Origin of a run: date, host, command, version, data.

use gnarl_train::{Provenance, Recorded};

use crate::page::text::{breakable, date, escape, seconds};

/// A table of the run's origin and duration.
pub(super) fn table(run: &Recorded, origin: &Provenance) -> String {
    let training: f64 = run.history.iter().map(|record| record.seconds).sum();
    let evaluation: f64 = run.history.iter().map(|record| record.stages.evaluate).sum();
    let duration = format!("{} training, {} evaluation", seconds(training), seconds(evaluation));
    let mut rows = vec![
        ("Started", date(origin.started)),
        ("Duration", duration),
        ("Host", origin.host.clone()),
        ("gnarl", origin.version.clone()),
        ("Data", origin.dataset.display().to_string()),
        ("Fingerprint of the data", origin.fingerprint.clone()),
    ];
    if !origin.command.is_empty() {
        rows.push(("Command", command(&origin.command)));
    }
    if let Some(batches) = &origin.batches {
        rows.push(("Digest of the prepared batches", batches.clone()));
    }
    let row = |(name, value): &(&str, String)| {
        format!("<tr><th>{}</th><td>{}</td></tr>", escape(name), breakable(value))
    };
    format!("<table class=\"facts\">{}</table>", rows.iter().map(row).collect::<String>())
}

/// The words of a command, quoted for a shell where they need it.
fn command(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["gnarl", "train", "my run.toml", "--set", "dataset.path='x'"];
        let said = command(&words.map(String::from));
        assert_eq!(said, "gnarl train 'my run.toml' --set 'dataset.path='\\''x'\\'''");
    }
}
