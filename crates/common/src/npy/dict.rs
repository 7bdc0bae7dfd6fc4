//! The dictionary in an npy header: a Python literal of three entries, read with one look ahead.
//!
//! Nothing nests but the shape in the dictionary, so that parsing takes linear time.

/// Entries of the dictionary; unknown ones are rejected as in numpy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dict {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

/// numpy's own limit for dimensions, of version 2.
const MOST_DIMENSIONS: usize = 64;

/// Parses `{'descr': '<i8', 'fortran_order': False, 'shape': (3, 4), }`, in any order of keys.
pub(super) fn parse(text: &str) -> Result<Dict, String> {
    let mut cursor = Cursor { text, at: 0 };
    let mut descr = None;
    let mut fortran_order = None;
    let mut shape = None;
    cursor.expect('{')?;
    while !cursor.take('}') {
        let key = cursor.string()?;
        cursor.expect(':')?;
        let twice = match key {
            "descr" => descr.replace(cursor.descr()?).is_some(),
            "fortran_order" => fortran_order.replace(cursor.boolean()?).is_some(),
            "shape" => shape.replace(cursor.shape()?).is_some(),
            _ => return Err(format!("unknown key '{key}' in the header")),
        };
        if twice {
            return Err(format!("key '{key}' comes twice in the header"));
        }
        if !cursor.take(',') {
            cursor.expect('}')?;
            break;
        }
    }
    cursor.end()?;
    let missing = |key| format!("key '{key}' is missing in the header");
    Ok(Dict {
        descr: descr.ok_or_else(|| missing("descr"))?,
        fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The remaining text, from its next token.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_ascii_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn error<T>(&self, expected: &str) -> Result<T, String> {
        Err(format!("expected {expected} at byte {} of the header", self.at))
    }

    /// Consumes the next character if it is `wanted`; returns whether it was.
    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { self.error(&format!("'{wanted}'")) }
    }

    fn end(&mut self) -> Result<(), String> {
        if self.rest().is_empty() { Ok(()) } else { self.error("the end") }
    }

    /// A string in single or double quotes. Keys and types need no escapes.
    fn string(&mut self) -> Result<&'a str, String> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let text = quote.and_then(|quote| rest[1..].split_once(quote));
        let Some((text, _)) = text else { return self.error("a quoted text") };
        self.at += text.len() + 2;
        Ok(text)
    }

    /// The type string of plain numbers.
    fn descr(&mut self) -> Result<String, String> {
        if self.rest().starts_with('[') {
            return Err("structured dtypes are not supported".into());
        }
        Ok(self.string()?.into())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        let rest = self.rest();
        for (word, value) in [("True", true), ("False", false)] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.error("True or False")
    }

    /// A tuple of lengths, such as `()`, `(3,)` and `(3, 4)`.
    fn shape(&mut self) -> Result<Vec<u64>, String> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            if shape.len() == MOST_DIMENSIONS {
                return Err(format!("more than {MOST_DIMENSIONS} dimensions"));
            }
            shape.push(self.length()?);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }

    /// A length, which Python 2 ends in `L`.
    fn length(&mut self) -> Result<u64, String> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(length) = rest[..digits].parse() else {
            return self.error("a length below 2^64");
        };
        self.at += digits + usize::from(rest[digits..].starts_with('L'));
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<Vec<u64>, String> {
        parse(&format!("{{'descr': '<i8', 'fortran_order': False, 'shape': {text}, }}"))
            .map(|dict| dict.shape)
    }

    #[test]
    fn headers_of_numpy_and_of_others_are_read() {
        assert!(shape("()").unwrap().is_empty());
        assert_eq!(shape("(3,)").unwrap(), [3]);
        assert_eq!(shape("( 3 , 4L )").unwrap(), [3, 4]);
        let other = "{\"shape\":(7,2),\"fortran_order\":True,\"descr\":\"|u1\"}   \n";
        let dict = Dict { descr: "|u1".into(), fortran_order: true, shape: vec![7, 2] };
        assert_eq!(parse(other).unwrap(), dict);
    }

    #[test]
    fn other_headers_are_refused_by_their_place() {
        let cases = [
            ("", "expected '{' at byte 0"),
            ("{'descr': '<i8'", "expected '}' at byte 15"),
            ("{'descr': '<i8', }", "key 'fortran_order' is missing"),
            ("{'descr': '<i8', 'descr': '<i8'}", "key 'descr' comes twice"),
            ("{'other': 1}", "unknown key 'other'"),
            ("{'descr': '<i8}", "expected a quoted text at byte 10"),
            ("{'descr': [('a', '<i8')]}", "structured dtypes"),
            ("{'fortran_order': 0}", "expected True or False at byte 18"),
        ];
        for (text, expected) in cases {
            let message = parse(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
        for text in ["(-1,)", "(18446744073709551616,)", "(1.5,)", "(é,)", "3", "[3]", "((3,),)"] {
            shape(text).unwrap_err();
        }
        assert!(shape(&format!("({})", "1,".repeat(65))).unwrap_err().contains("64 dimensions"));
    }

    /// Regression: an earlier parser took twice as long for each further bracket.
    #[test]
    fn nested_headers_end_at_once() {
        for deep in ["[".repeat(40), "(".repeat(60_000), "(1,".repeat(20_000)] {
            assert!(shape(&deep).unwrap_err().starts_with("expected"));
        }
    }
}
