//! Formatting of numbers in messages.

/// A number in a few characters.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if (1e-4..1e5).contains(&size) => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').into()
        }
        _ => {
            let text = format!("{value:.1e}");
            text.replace(".0e", "e")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases =
            [(1e20, "1e20"), (8.53e13, "8.5e13"), (0.01, "0.01"), (2.0, "2"), (1e-9, "1e-9")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(short(f32::MAX.into()), "3.4e38");
    }
}
