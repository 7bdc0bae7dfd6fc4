//! Delimited text, parsed from bytes.

use std::io::Read;
use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};

use super::fields::{Fields, comma_hint, digits, is_blank, is_padded, split};
use super::header::{CsvFormat, Expected, Header, called, recognize};
use super::reader::{BATCH_ROWS, Batch, Cell, TableReader, Values};
use crate::import::input::Input;

/// Bytes read at once.
const BUFFER: usize = 1 << 20;
/// The longest line accepted.
const LONGEST_LINE: usize = 1 << 26;
/// Limits of the sample by which the layout of a table is detected, in lines and bytes.
const SAMPLE: (usize, usize) = (100, 1 << 16);

/// A text file, plain or gzipped. Empty lines are skipped, and in front of the table lines that start
/// with `#`; fields may be quoted, and blanks around those that are not do not count.
pub(in crate::import) struct CsvReader {
    name: String,
    input: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
    /// Number of the line at `start`, from 1.
    line: u64,
    delimiter: u8,
    header: Header,
    columns: Vec<String>,
    /// Fields of the first row.
    first: Vec<Vec<u8>>,
    /// Columns in which integers have zeros in front, in the first rows.
    padded: Vec<bool>,
    /// True if rows have been read: a line that starts with `#` is no comment then.
    begun: bool,
    strict: bool,
    cells: Vec<(usize, Cell)>,
    /// Per field of a line, the selected column that takes it.
    takers: Vec<Option<usize>>,
}

impl CsvReader {
    /// Opens `path` without expected columns.
    pub fn open(path: &Path, format: &CsvFormat) -> Result<Self> {
        Self::expecting(Input::open(path)?, path, format, &Expected::default())
    }

    /// The table in `input`, the file at `path`; its layout is detected by the `expected` columns.
    ///
    /// # Errors
    /// If it is empty or no text, or fields are separated by another delimiter.
    pub fn expecting(
        input: Input,
        path: &Path,
        format: &CsvFormat,
        expected: &Expected<'_>,
    ) -> Result<Self> {
        let mut reader = Self {
            name: path.display().to_string(),
            input: input.text()?,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            eof: false,
            line: 1,
            delimiter: b',',
            header: Header::Absent,
            columns: Vec::new(),
            first: Vec::new(),
            padded: Vec::new(),
            begun: false,
            strict: expected.strict,
            cells: Vec::new(),
            takers: Vec::new(),
        };
        reader.read_head(format, expected)?;
        Ok(reader)
    }

    fn read_head(&mut self, format: &CsvFormat, expected: &Expected<'_>) -> Result<()> {
        let Some(range) = self.data_line()? else {
            let comments =
                if self.line > 1 { "; lines that start with '#' are comments" } else { "" };
            return Err(Error::invalid(format!("{}: the table is empty", self.name))
                .hint(format!("a row in each line{comments}")));
        };
        if self.buffer[range].contains(&b'\r') {
            return Err(self
                .bad("lines end in carriage returns alone")
                .hint("convert them: tr '\\r' '\\n' < FILE > NEW"));
        }
        let lines = self.sample()?;
        (self.delimiter, self.header) = recognize(&self.name, &lines, format, expected)?;
        let fields = split(&lines[0], self.delimiter).fields;
        self.columns = (0..fields.len()).map(|i| i.to_string()).collect();
        let mut rows = &lines[..];
        if self.header != Header::Absent {
            rows = &lines[1..];
            for (name, field) in self.columns.iter_mut().zip(fields) {
                *name = String::from_utf8(field).map_err(|_| {
                    Error::invalid(format!("{}: line {}: not UTF-8", self.name, self.line))
                })?;
            }
            // The line is still in the buffer: sampling did not consume it.
            if let Some(range) = self.data_line()? {
                self.pass(range.end);
            }
            self.begun = true;
        }
        let rows: Vec<_> = rows.iter().map(|line| split(line, self.delimiter).fields).collect();
        let padded =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).any(|f| is_padded(f));
        self.padded = (0..self.columns.len()).map(padded).collect();
        self.first = rows.into_iter().next().unwrap_or_default();
        Ok(())
    }

    /// The first lines of the table, without consuming them. The first of them is at the front.
    fn sample(&mut self) -> Result<Vec<Vec<u8>>> {
        // Several whole lines, however wide they are.
        let few = |bytes: &[u8]| bytes.iter().filter(|&&b| b == b'\n').count() < 4;
        while !self.eof
            && (self.end - self.start < SAMPLE.1 || few(&self.buffer[self.start..self.end]))
        {
            self.fill()?;
        }
        let bytes = &self.buffer[self.start..self.end];
        let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').take(SAMPLE.0 + 1).collect();
        // The last piece may be an incomplete line.
        if lines.len() > 1 && (!self.eof || lines.len() > SAMPLE.0) {
            lines.pop();
        }
        let lines = lines.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let data = |line: &&[u8]| !is_blank(line) && line[0] != b'#';
        Ok(lines.filter(data).map(<[u8]>::to_vec).collect())
    }

    /// The next line with data, left in the buffer; `None` at the end.
    fn data_line(&mut self) -> Result<Option<std::ops::Range<usize>>> {
        loop {
            let mut searched = self.start;
            let newline = loop {
                let found = self.buffer[searched..self.end].iter().position(|&b| b == b'\n');
                if let Some(i) = found {
                    break searched + i;
                }
                if self.eof {
                    break self.end;
                }
                let behind = self.end - self.start;
                self.fill()?;
                searched = self.start + behind;
            };
            if newline == self.end && self.start == self.end {
                return Ok(None);
            }
            let line = &self.buffer[self.start..newline];
            let trimmed = line.strip_suffix(b"\r").unwrap_or(line);
            let (length, comment) = (trimmed.len(), trimmed.first() == Some(&b'#'));
            if !comment && !is_blank(trimmed) {
                return Ok(Some(self.start..self.start + length));
            }
            // A row that starts with a hashtag, for example, must not be dropped as a comment.
            if comment && self.begun && trimmed.len() > 1 && trimmed[1] != b' ' {
                return Err(self.bad("starts with '#': a comment, or data?").hint(
                    "comments amid rows start with '# '; data that starts so is quoted: \"#tag\"",
                ));
            }
            self.pass(newline);
        }
    }

    /// Continues after the line that ends at `end`.
    fn pass(&mut self, end: usize) {
        let rest = &self.buffer[end..self.end];
        let skip = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |i| i + 1);
        self.start = end + skip;
        self.line += 1;
    }

    /// Reads more data to the end of the buffer.
    fn fill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.end >= LONGEST_LINE {
                return Err(Error::invalid(format!(
                    "{}: line {}: longer than {LONGEST_LINE} bytes",
                    self.name, self.line
                )));
            }
            self.buffer.resize(self.end * 2, 0);
        }
        let read = self.input.read(&mut self.buffer[self.end..]).at(&self.name)?;
        self.eof = read == 0;
        self.end += read;
        Ok(())
    }

    fn bad(&self, message: impl std::fmt::Display) -> Error {
        Error::invalid(format!("{}: line {}: {message}", self.name, self.line))
    }

    /// Parses lines of two integers while the buffer has whole, simple ones.
    fn plain_pairs(&mut self, src: &mut Vec<i64>, dst: &mut Vec<i64>, places: &mut Vec<u64>) {
        let bytes = &self.buffer[..self.end];
        let mut at = self.start;
        while src.len() < BATCH_ROWS {
            let Some((a, next)) = digits(bytes, at, self.delimiter) else { break };
            let Some((b, next)) = digits(bytes, next, b'\n') else { break };
            src.push(a);
            dst.push(b);
            places.push(self.line);
            self.line += 1;
            at = next;
        }
        self.start = at;
    }

    fn parse_line(&mut self, range: std::ops::Range<usize>, batch: &mut Batch) -> Result<()> {
        let line = &self.buffer[range];
        if line.contains(&b'"') {
            let Fields { fields, open } = split(line, self.delimiter);
            if open {
                return Err(self
                    .bad("a quoted field does not end in its line")
                    .hint("fields have no line breaks; a quote within quotes is doubled"));
            }
            return self.take(fields.iter().map(Vec::as_slice), batch);
        }
        self.take(line.split(|&b| b == self.delimiter).map(<[u8]>::trim_ascii), batch)
    }

    fn take<'a>(&self, fields: impl Iterator<Item = &'a [u8]>, batch: &mut Batch) -> Result<()> {
        let (mut count, mut last) = (0, &b""[..]);
        for (i, field) in fields.enumerate() {
            count += 1;
            last = field;
            let Some(&Some(taker)) = self.takers.get(i) else { continue };
            match &mut batch.columns[taker] {
                Values::Integer(values) => {
                    let text = std::str::from_utf8(field).ok();
                    let value = text.filter(|_| !self.strict || !is_padded(field));
                    let value = value.and_then(|t| t.parse().ok());
                    values.push(value.ok_or_else(|| self.no_integer(i, field))?);
                }
                Values::Number(values) => {
                    let value = match std::str::from_utf8(field) {
                        Ok("") => Some(f64::NAN),
                        text => text.ok().and_then(|t| t.parse().ok()),
                    };
                    values.push(value.ok_or_else(|| self.no_number(i, field))?);
                }
                text => {
                    if std::str::from_utf8(field).is_err() {
                        return Err(self
                            .misfit(i, field, "UTF-8")
                            .hint("convert it: iconv -f LATIN1 -t UTF-8 FILE > NEW"));
                    }
                    text.push_text(field);
                }
            }
        }
        if count != self.columns.len() {
            let known = self.columns.len();
            let error = self.bad(format!("{count} fields, there are {known} columns"));
            return Err(match count == known + 1 && last.is_empty() {
                true => {
                    error.hint(format!("the line ends in a delimiter, {}", called(self.delimiter)))
                }
                false => error,
            });
        }
        batch.places.push(self.line);
        Ok(())
    }

    fn misfit(&self, column: usize, field: &[u8], what: &str) -> Error {
        let text = String::from_utf8_lossy(field);
        self.bad(format!("column '{}': '{text}' is not {what}", self.columns[column]))
    }

    fn no_integer(&self, column: usize, field: &[u8]) -> Error {
        let cells = self.misfit(column, field, "an integer");
        if is_padded(field) {
            return self
                .misfit(column, field, "kept by an integer, which has no zeros in front")
                .hint("--ids string keeps ids as they are written, --ids integer drops the zeros");
        }
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        if digits.len() > 18 && digits.iter().all(u8::is_ascii_digit) {
            return self.misfit(column, field, "an integer of 64 bits").hint("give --ids string");
        }
        let first = self.first.get(column).map(|f| String::from_utf8_lossy(f)).unwrap_or_default();
        cells
            .hint(format!("the first row has '{first}'; if ids are no integers, give --ids string"))
    }

    fn no_number(&self, column: usize, field: &[u8]) -> Error {
        let error = self.misfit(column, field, "a number");
        if let Some(hint) = comma_hint(field) {
            return error.hint(hint);
        }
        match self.first.get(column).filter(|f| !f.is_empty() && f.as_slice() != field) {
            Some(first) => {
                error.hint(format!("the first row has '{}' there", String::from_utf8_lossy(first)))
            }
            None => error,
        }
    }

    fn is_pairs(&self) -> bool {
        self.columns.len() == 2 && self.cells == [(0, Cell::Integer), (1, Cell::Integer)]
    }
}

impl TableReader for CsvReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn header(&self) -> Header {
        self.header
    }

    fn delimiter(&self) -> Option<u8> {
        Some(self.delimiter)
    }

    fn looks_integer(&self, column: usize) -> bool {
        let text = self.first.get(column).and_then(|f| std::str::from_utf8(f).ok());
        let integer = text.is_some_and(|t| t.parse::<i64>().is_ok());
        integer && !(self.strict && self.padded[column])
    }

    fn looks_fraction(&self, column: usize) -> bool {
        let text = self.first.get(column).and_then(|f| std::str::from_utf8(f).ok());
        text.is_some_and(|t| {
            let number = t.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            number && t.contains(['.', 'e', 'E']) && t.parse::<f64>().is_ok()
        })
    }

    fn looks_text(&self, column: usize) -> bool {
        let text = self.first.get(column).and_then(|f| std::str::from_utf8(f).ok());
        text.is_some_and(|t| !t.is_empty() && t.parse::<f64>().is_err())
    }

    fn select(&mut self, cells: Vec<(usize, Cell)>) -> Result<()> {
        self.takers = vec![None; self.columns.len()];
        for (taker, &(column, _)) in cells.iter().enumerate() {
            self.takers[column] = Some(taker);
        }
        self.cells = cells;
        Ok(())
    }

    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.start(&self.cells);
        self.begun = true;
        let pairs = self.is_pairs();
        // Wide rows come in smaller batches: a batch holds at most 8 MiB of numbers.
        let rows = BATCH_ROWS.min(((1 << 20) / self.cells.len().max(1)).max(16));
        while batch.rows() < rows {
            if pairs && let [Values::Integer(src), Values::Integer(dst)] = &mut batch.columns[..] {
                self.plain_pairs(src, dst, &mut batch.places);
            }
            let Some(range) = self.data_line()? else { break };
            let end = range.end;
            if pairs && batch.rows() >= BATCH_ROWS {
                break;
            }
            self.parse_line(range, batch)?;
            self.pass(end);
        }
        Ok(batch.rows() > 0)
    }

    fn place(&self, place: u64) -> String {
        format!("{}: line {place}", self.name)
    }
}
