//! Fields of lines of text.

/// A run of digits up to the byte `stop`, and the start of the next one. Up to 18 digits, which
/// never overflow, without leading zeros, which are handled elsewhere.
#[inline]
pub(super) fn digits(bytes: &[u8], start: usize, stop: u8) -> Option<(i64, usize)> {
    let (mut value, mut at) = (0i64, start);
    loop {
        let byte = *bytes.get(at)?;
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let plain = at > start && at - start <= 18 && !(bytes[start] == b'0' && at - start > 1);
            return (byte == stop && plain).then_some((value, at + 1));
        }
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
}

/// Returns whether a line is blank.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&b| b == b' ')
}

/// Returns whether a field is an integer with leading zeros, which integers do not keep.
pub(super) fn is_padded(field: &[u8]) -> bool {
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    digits.len() > 1 && digits[0] == b'0' && digits.iter().all(u8::is_ascii_digit)
}

/// The fields of a line, without their quotes or surrounding blanks.
pub(super) struct Fields {
    pub fields: Vec<Vec<u8>>,
    /// True if a quote is not closed.
    pub open: bool,
}

/// Splits a line into its fields.
pub(super) fn split(line: &[u8], delimiter: u8) -> Fields {
    let mut fields = Vec::new();
    let mut field = Vec::new();
    let mut open = false;
    let mut quoted = false;
    let end = |field: &mut Vec<u8>, quoted: &mut bool| {
        let whole = std::mem::take(field);
        if std::mem::take(quoted) { whole } else { whole.trim_ascii().to_vec() }
    };
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if open && bytes.peek() == Some(&b'"') => {
                bytes.next();
                field.push(b'"');
            }
            b'"' if open => open = false,
            b'"' if !quoted && field.trim_ascii().is_empty() => {
                field.clear();
                (open, quoted) = (true, true);
            }
            byte if byte == delimiter && !open => fields.push(end(&mut field, &mut quoted)),
            // Blanks between a closing quote and the delimiter.
            b' ' if quoted && !open => {}
            byte => field.push(byte),
        }
    }
    fields.push(end(&mut field, &mut quoted));
    Fields { fields, open }
}

/// A hint on the number format, if a field has commas within digits.
pub(super) fn comma_hint(field: &[u8]) -> Option<&'static str> {
    let separated = field.contains(&b',') && field.iter().any(u8::is_ascii_digit);
    let known = |b: &u8| b.is_ascii_digit() || b"+-,. ".contains(b);
    (separated && field.iter().all(known))
        .then_some("numbers are written as 1234.5, without decimal or thousands commas")
}
