//! Hints for unknown options.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use gnarl_common::Error;
use gnarl_config::key_named;

use crate::args::{Args, try_parse};
use crate::output::print_error;

/// Parses the words of a command. An error ends the process, with exit code 2.
pub fn parse(given: &[OsString]) -> Args {
    let words: Vec<String> = given.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    try_parse(given).unwrap_or_else(|error| match explain(&error, &words) {
        Some(explained) => {
            print_error(&explained);
            std::process::exit(explained.exit_code().into())
        }
        None => error.exit(),
    })
}

/// Explains a key of run files that was given as an option of a command that reads one.
fn explain(error: &clap::Error, words: &[String]) -> Option<Error> {
    if error.kind() != ErrorKind::UnknownArgument || words.get(1)? != "train" {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let option = option.split('=').next()?;
    let name = option.strip_prefix("--")?;
    let unknown = Error::usage(format!("unexpected argument '{option}'"));
    if ["config", "file", "run"].contains(&name) {
        return Some(unknown.hint("the run file needs no option: gnarl train run.toml"));
    }
    let key = key_named(name)?;
    let value = words.iter().enumerate().find_map(|(i, word)| {
        let rest = word.strip_prefix(option)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None if rest.is_empty() => {
                words.get(i + 1).map(String::as_str).filter(|next| !next.starts_with("--"))
            }
            None => None,
        }
    });
    Some(unknown.hint(format!("did you mean --set {key}={}?", value.unwrap_or("VALUE"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        let given: Vec<_> = words.iter().map(Into::into).collect();
        let error = try_parse(&given).err()?;
        explain(&error, &words).map(|e| e.to_string())
    }

    #[test]
    fn keys_given_as_options_are_told_how_to_be_set() {
        let cases = [
            ("gnarl train r.toml --epochs 5", "did you mean --set train.epochs=5?"),
            ("gnarl train r.toml --lr=0.1", "did you mean --set train.lr=0.1?"),
            ("gnarl train --batch-size 64 r.toml", "did you mean --set sample.batch_size=64?"),
            ("gnarl train r.toml --seed", "did you mean --set train.seed=VALUE?"),
            ("gnarl train --config r.toml", "gnarl train run.toml"),
        ];
        for (line, expected) in cases {
            let text = told(line).unwrap_or_default();
            assert!(text.contains(expected), "{line}: {text}");
        }
        assert_eq!(told("gnarl train r.toml --frobnicate"), None);
        assert_eq!(told("gnarl partition d --epochs 5"), None);
    }
}
