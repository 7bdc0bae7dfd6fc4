//! Parsers shared by several commands.

/// Parses `512MiB`, `4GiB`, `1000000`.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim();
    let number: f64 = digits.parse().map_err(|_| {
        format!("invalid size '{text}': expected a number with a unit such as 512MiB")
    })?;
    let factor: f64 = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024f64.powi(2),
        "gib" | "g" => 1024f64.powi(3),
        "tib" | "t" => 1024f64.powi(4),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        unit => return Err(format!("invalid unit '{unit}': expected MiB or GiB")),
    };
    if !(number.is_finite() && number >= 0.0) {
        return Err(format!("invalid size '{text}': expected a number with a unit such as 512MiB"));
    }
    Ok((number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("1.5 MiB"), Ok(3 << 19));
        assert_eq!(size("1000"), Ok(1000));
        assert!(size("lots").is_err() && size("3 parsecs").is_err());
    }
}
