//! Detection of the header and the delimiter of a text table.
//!
//! No silent guess can be wrong: a first line that may be a header makes a
//! table with one, whose columns must then be found by their names.

use gnarl_common::{Error, Result};

use super::fields::split;

/// The format of a text table.
#[derive(Debug, Clone, Default)]
pub(in crate::import) struct CsvFormat {
    /// Field delimiter; detected from the first line by default.
    pub delimiter: Option<u8>,
    /// True if the first line names the columns; detected from the first lines by default.
    pub header: Option<bool>,
}

/// The expected columns of a table, by which its delimiter and header are detected.
#[derive(Debug, Default)]
pub(in crate::import) struct Expected<'a> {
    /// Requested names; a number is a position in a table without header.
    pub asked: Vec<&'a str>,
    /// Default names of columns that are used if they exist.
    pub usual: &'a [&'a str],
    /// Number of leading id columns: 2 for edges, 1 for nodes; 0 disables detection.
    pub ids: usize,
    /// Reject integers with leading zeros, which are other ids than those without.
    pub strict: bool,
}

/// The reason why a table has a header, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum Header {
    /// The first row is data.
    Absent,
    /// Stated by the user, or by the format.
    Stated,
    /// The first line has an expected name.
    Named,
    /// Columns are requested by name, so there must be names.
    Asked,
    /// The first line is unlike the others, or has usual names of columns.
    Likely,
}

/// Candidate delimiters, the likeliest first.
const DELIMITERS: [u8; 5] = *b"\t,;| ";

/// The delimiter and the header of a table whose first lines are `lines`, at least one.
///
/// # Errors
/// If another delimiter than the one stated separates the fields.
pub(super) fn recognize(
    name: &str,
    lines: &[Vec<u8>],
    format: &CsvFormat,
    expected: &Expected<'_>,
) -> Result<(u8, Header)> {
    let hits = |delimiter: u8| {
        let fields = split(&lines[0], delimiter).fields;
        fields.iter().filter(|field| expected.names().any(|n| n.as_bytes() == *field)).count()
    };
    let present = DELIMITERS.into_iter().filter(|d| lines[0].contains(d));
    // The delimiter that yields most of the names; ties go to the likeliest.
    let best = present.rev().max_by_key(|&d| hits(d));
    let delimiter = match format.delimiter {
        None => best.unwrap_or(b','),
        Some(stated) => {
            let better = best.filter(|&d| hits(d) > hits(stated));
            match better.or_else(|| separated_by_another(lines, stated, expected.ids)) {
                Some(found) => return Err(wrong_delimiter(name, stated, found)),
                None => stated,
            }
        }
    };
    let header = match format.header {
        Some(true) => Header::Stated,
        Some(false) => Header::Absent,
        None if hits(delimiter) > 0 => Header::Named,
        None if expected.by_name() => Header::Asked,
        None if expected.ids > 0 && likely(lines, delimiter, expected.ids) => Header::Likely,
        None => Header::Absent,
    };
    Ok((delimiter, header))
}

impl Expected<'_> {
    /// The names that a header may have. Numbers are positions instead, since rows have numbers
    /// too.
    fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.asked.iter().chain(self.usual).copied();
        names.filter(|name| !name.trim_end_matches('*').bytes().all(|b| b.is_ascii_digit()))
    }

    /// Returns whether a column is requested by name.
    fn by_name(&self) -> bool {
        self.names().any(|name| self.asked.contains(&name))
    }
}

/// The delimiter of lines that `stated` does not separate into enough fields.
fn separated_by_another(lines: &[Vec<u8>], stated: u8, ids: usize) -> Option<u8> {
    let width = |line: &[u8], delimiter| split(line, delimiter).fields.len();
    if ids == 0 || width(&lines[0], stated) > 1 {
        return None;
    }
    // Blanks within ids are usual, so they are delimiters only where one field cannot suffice.
    let candidates = DELIMITERS.into_iter().filter(|&d| d != b' ' || ids > 1);
    candidates.into_iter().find(|&d| {
        let count = width(&lines[0], d);
        count > 1 && (ids > 1 || lines.len() > 1) && lines.iter().all(|l| width(l, d) == count)
    })
}

fn wrong_delimiter(name: &str, stated: u8, found: u8) -> Error {
    let (stated, called) = (called(stated), called(found));
    let cure = match found {
        b'\t' => "import it as tsv, or with --delimiter tab".to_string(),
        b',' => "import it as csv, or with --delimiter ','".to_string(),
        b' ' => "import it with --delimiter space".to_string(),
        other => format!("import it with --delimiter '{}'", other as char),
    };
    Error::invalid(format!("{name}: fields are separated by {called}, not by {stated}")).hint(cure)
}

/// A delimiter in words.
pub(in crate::import) fn called(delimiter: u8) -> String {
    match delimiter {
        b'\t' => "tabs".into(),
        b' ' => "blanks".into(),
        other => format!("'{}'", other as char),
    }
}

/// Returns whether the first line looks like a header over the others.
fn likely(lines: &[Vec<u8>], delimiter: u8, ids: usize) -> bool {
    let rows: Vec<Vec<Vec<u8>>> = lines.iter().map(|line| split(line, delimiter).fields).collect();
    let (first, rest) = (&rows[0], &rows[1..]);
    let over_numbers = |(column, field): (usize, &Vec<u8>)| {
        let mut below = rest.iter().filter_map(|row| row.get(column)).filter(|f| !f.is_empty());
        is_text(field) && below.clone().next().is_some() && below.all(|f| is_number(f))
    };
    if first.iter().enumerate().any(over_numbers) {
        return true;
    }
    let ends = &first[..ids.min(first.len())];
    let again =
        |name: &Vec<u8>| rest.iter().flat_map(|row| row.iter().take(ids)).any(|f| f == name);
    let weight: u8 = ends.iter().map(|name| usual_name(name)).sum();
    // For edges one unambiguous name suffices, or two ambiguous ones.
    weight >= ids.min(2) as u8 && !ends.iter().any(again)
}

fn is_number(field: &[u8]) -> bool {
    std::str::from_utf8(field).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// Returns whether a field is neither a number nor a missing value.
fn is_text(field: &[u8]) -> bool {
    const MISSING: [&str; 8] = ["", "na", "n/a", "null", "none", "nil", "?", "-"];
    let text = String::from_utf8_lossy(field).to_lowercase();
    !MISSING.contains(&&*text) && !is_number(field)
}

/// The certainty that a field is the name of an id column: 2 for certain, 1 for an ambiguous word,
/// 0 for none.
fn usual_name(field: &[u8]) -> u8 {
    const SURE: [&str; 12] = [
        "src",
        "dst",
        "source",
        "target",
        "destination",
        "id",
        "nodeid",
        "node1",
        "node2",
        "uid",
        "sourceid",
        "targetid",
    ];
    const WORDS: [&str; 22] = [
        "from", "to", "head", "tail", "node", "vertex", "subject", "object", "user", "item",
        "parent", "child", "citing", "cited", "sender", "receiver", "follower", "followee", "name",
        "key", "u", "v",
    ];
    let text = String::from_utf8_lossy(field);
    let separated = text.to_lowercase().replace(['-', '.', ' '], "_");
    let plain = separated.replace('_', "");
    let camel = text.strip_suffix("Id").or(text.strip_suffix("ID"));
    let camel = camel.is_some_and(|t| t.ends_with(|c: char| c.is_ascii_lowercase()));
    if SURE.contains(&&*plain) || separated.ends_with("_id") || camel {
        2
    } else {
        u8::from(WORDS.contains(&&*plain))
    }
}

/// Returns whether the node column `name` at a position holds ids, of nodes of type `ntype`.
pub(super) fn names_ids(name: &str, position: usize, ntype: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['-', '.', ' ', '_'], "");
    if name.is_empty() {
        return false;
    }
    if position == 0 && usual_name(name.as_bytes()) == 2 {
        return true;
    }
    let (name, ntype) = (plain(name), plain(ntype));
    let stem = name.strip_suffix("id").unwrap_or(&name);
    ["", "node", "vertex", "user", &*ntype].contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str, ids: usize) -> Header {
        let lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        let expected = Expected { ids, usual: &["src", "dst"], ..Expected::default() };
        recognize("e.csv", &lines, &CsvFormat::default(), &expected).unwrap().1
    }

    #[test]
    fn headers_are_told_from_rows() {
        for (text, ids, expected) in [
            ("0,1\n1,2", 2, Header::Absent),
            ("ann,bob\nbob,cid", 2, Header::Absent),
            ("ann,12\nbob,13", 2, Header::Absent),
            ("src,x\n0,1", 2, Header::Named),
            ("from,to\n0,1", 2, Header::Likely),
            ("a,b,w\nann,bob,1", 2, Header::Likely),
            ("source,target\nann,bob", 2, Header::Likely),
            ("userId,film\nu1,f1", 2, Header::Likely),
            // Words of a text, which come again, or of which only one is a usual name.
            ("head,tail\ntail,end", 2, Header::Absent),
            ("head,hair\nface,nose", 2, Header::Absent),
            ("u,v\nv,w", 2, Header::Absent),
            ("name,age\nann,x", 1, Header::Likely),
            ("ann,x\nbob,y", 1, Header::Absent),
            // A value that is missing is no name.
            ("0,NA\n1,5", 1, Header::Absent),
            // Nothing is asked of this table.
            ("from,to\n0,1", 0, Header::Absent),
        ] {
            assert_eq!(header(text, ids), expected, "{text}");
        }
    }

    #[test]
    fn names_asked_for_mean_a_header() {
        let lines = [b"0,1".to_vec()];
        for (asked, expected) in [
            ("key", Header::Asked),
            ("x*", Header::Asked),
            ("1", Header::Absent),
            ("*", Header::Absent),
        ] {
            let expected_columns = Expected { asked: vec![asked], ids: 1, ..Expected::default() };
            let found = recognize("n.csv", &lines, &CsvFormat::default(), &expected_columns);
            assert_eq!(found.unwrap().1, expected, "{asked}");
        }
    }

    #[test]
    fn delimiters_are_those_that_names_stand_between() {
        for (text, delimiter) in [
            ("src;dst\n0;1", b';'),
            ("src|dst\n0|1", b'|'),
            ("src dst\n0 1", b' '),
            ("New York,Los Angeles\na b,c d", b','),
            ("ann lee\tbob\ncid\tdan", b'\t'),
        ] {
            let lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            let expected = Expected { ids: 2, usual: &["src", "dst"], ..Expected::default() };
            let found = recognize("e.csv", &lines, &CsvFormat::default(), &expected).unwrap().0;
            assert_eq!(found, delimiter, "{text}");
            let comma = CsvFormat { delimiter: Some(b','), header: None };
            assert_eq!(recognize("e.csv", &lines, &comma, &expected).is_ok(), delimiter == b',');
        }
    }
}
