//! Numbers and user text as HTML.

/// Escapes text for anywhere in the page, attribute values included. Control characters, which
/// XML does not allow, become the replacement character.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A count with thousands set apart: `12 345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// Three digits and a unit of thousands: `1.25 M`.
pub fn large(value: f64) -> String {
    let units = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    match units.into_iter().find(|(size, _)| value.abs() >= *size) {
        Some((size, unit)) => format!("{}{unit}", digits(value / size)),
        None => digits(value),
    }
}

/// Bytes in binary units.
pub fn bytes(value: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| value >> shift > 0) {
        Some((shift, unit)) => format!("{} {unit}", digits(value as f64 / (1u64 << shift) as f64)),
        None => format!("{value} B"),
    }
}

/// Seconds in a suitable unit.
pub fn seconds(value: f64) -> String {
    match value {
        v if !v.is_finite() => "–".into(),
        v if v >= 120.0 => format!("{} min", digits(v / 60.0)),
        v if v >= 1.0 => format!("{} s", digits(v)),
        v if v >= 1e-3 => format!("{} ms", digits(v * 1e3)),
        v => format!("{} µs", digits(v * 1e6)),
    }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// About three digits.
pub fn digits(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "–".into(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A table of names and values, as HTML.
pub fn rows(rows: &[(&str, String)]) -> String {
    let row = |(name, value): &(&str, String)| {
        format!("<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(value))
    };
    format!("<table>{}</table>", rows.iter().map(row).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(12), "12");
        assert_eq!(large(1_254_000.0), "1.25 M");
        assert_eq!(large(12.0), "12.0");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(600.0), "10.0 min");
        assert_eq!(seconds(f64::NAN), "–");
        assert_eq!(percent(0.1234), "12.3 %");
    }

    #[test]
    fn user_text_cannot_leave_its_place() {
        assert_eq!(
            escape("<a href=\"x\">'&\u{1}"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\u{fffd}"
        );
    }
}
