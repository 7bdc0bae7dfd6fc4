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

/// Escapes text that may break behind the separators of paths and lists.
pub fn breakable(text: &str) -> String {
    escape(text).replace('/', "/<wbr/>").replace(',', ",<wbr/>")
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

/// A time since 1970 as a date of the Gregorian calendar, in UTC: `2026-11-28 00:06:22 UTC`.
pub fn date(seconds: u64) -> String {
    let [days, second] = [seconds / 86400, seconds % 86400];
    // Eras of 400 years from March on, whose leap day comes last; day 0 is 0000-03-01.
    let day = days + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let of_four = of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096;
    let year_of_era = of_four / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let [hour, minute, second] = [second / 3600, second / 60 % 60, second % 60];
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
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
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_767_225_599), "2025-12-31 23:59:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }

    #[test]
    fn user_text_cannot_leave_its_place() {
        assert_eq!(
            escape("<a href=\"x\">'&\u{1}"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\u{fffd}"
        );
    }
}
