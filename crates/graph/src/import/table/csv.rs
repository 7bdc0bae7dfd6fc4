//! Delimited text, parsed from bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{BATCH_ROWS, Batch, Cell, TableReader, Values};
use crate::error::{Error, Result, ResultExt};

/// How a text table is laid out.
#[derive(Debug, Clone, Default)]
pub(in crate::import) struct CsvFormat {
    /// Between fields; found out from the first line otherwise.
    pub delimiter: Option<u8>,
    /// Whether the first line names the columns; if unset, it does when it has an expected name.
    pub header: Option<bool>,
}

/// Bytes read at once.
const BUFFER: usize = 1 << 20;
/// The longest line accepted.
const LONGEST_LINE: usize = 1 << 26;

/// A text file, plain or gzipped (by its name's ending). Lines that start with `#` and empty
/// lines are skipped; fields may be quoted.
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
    header: bool,
    columns: Vec<String>,
    first: Vec<Vec<u8>>,
    cells: Vec<(usize, Cell)>,
    /// For each field of a line, which selected column takes it.
    takers: Vec<Option<usize>>,
}

impl CsvReader {
    /// Opens `path`; `expect` is the column name that betrays a header.
    pub fn open(path: &Path, format: &CsvFormat, expect: &str) -> Result<Self> {
        let file = File::open(path).at(path)?;
        let gz = path.extension().is_some_and(|e| e == "gz");
        let input: Box<dyn Read> =
            if gz { Box::new(flate2::read::MultiGzDecoder::new(file)) } else { Box::new(file) };
        let mut reader = Self {
            name: path.display().to_string(),
            input,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            eof: false,
            line: 1,
            delimiter: b',',
            header: false,
            columns: Vec::new(),
            first: Vec::new(),
            cells: Vec::new(),
            takers: Vec::new(),
        };
        reader.read_head(format, expect)?;
        Ok(reader)
    }

    fn read_head(&mut self, format: &CsvFormat, expect: &str) -> Result<()> {
        let Some(range) = self.data_line()? else {
            return Err(Error::invalid(format!("{}: the table is empty", self.name)));
        };
        let line = self.buffer[range.clone()].to_vec();
        let present = |d: &&u8| line.contains(d);
        self.delimiter =
            format.delimiter.unwrap_or(*b"\t,; ".iter().find(present).unwrap_or(&b','));
        let fields = split(&line, self.delimiter);
        self.header =
            format.header.unwrap_or_else(|| fields.iter().any(|f| f == expect.as_bytes()));
        self.columns = (0..fields.len()).map(|i| i.to_string()).collect();
        self.first = fields;
        if !self.header {
            return Ok(());
        }
        for (name, field) in self.columns.iter_mut().zip(&self.first) {
            *name = String::from_utf8(field.clone()).map_err(|_| {
                Error::invalid(format!("{}: line {}: not UTF-8", self.name, self.line))
            })?;
        }
        self.pass(range.end);
        if let Some(range) = self.data_line()? {
            self.first = split(&self.buffer[range], self.delimiter);
        }
        Ok(())
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
            if !trimmed.is_empty() && trimmed[0] != b'#' {
                return Ok(Some(self.start..self.start + trimmed.len()));
            }
            self.pass(newline);
        }
    }

    /// Goes on behind the line that ends at `end`.
    fn pass(&mut self, end: usize) {
        let rest = &self.buffer[end..self.end];
        let skip = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |i| i + 1);
        self.start = end + skip;
        self.line += 1;
    }

    /// Reads more behind what is there.
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

    /// Parses lines of two integers as far as the buffer holds them whole and plain.
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
            let fields = split(line, self.delimiter);
            return self.take(fields.iter().map(Vec::as_slice), batch);
        }
        self.take(line.split(|&b| b == self.delimiter), batch)
    }

    fn take<'a>(&self, fields: impl Iterator<Item = &'a [u8]>, batch: &mut Batch) -> Result<()> {
        let mut count = 0;
        for (i, field) in fields.enumerate() {
            count += 1;
            let Some(&Some(taker)) = self.takers.get(i) else { continue };
            let bad = |what: &str| {
                let text = String::from_utf8_lossy(field);
                self.bad(format!("column '{}': '{text}' is not {what}", self.columns[i]))
            };
            match &mut batch.columns[taker] {
                Values::Integer(values) => {
                    let text = std::str::from_utf8(field).ok();
                    let value = text.and_then(|t| t.trim().parse().ok());
                    values.push(value.ok_or_else(|| bad("an integer"))?);
                }
                Values::Number(values) => {
                    let text = std::str::from_utf8(field).map(str::trim).ok();
                    let value = match text {
                        Some("") => Some(f64::NAN),
                        text => text.and_then(|t| t.parse().ok()),
                    };
                    values.push(value.ok_or_else(|| bad("a number"))?);
                }
                text => {
                    if std::str::from_utf8(field).is_err() {
                        return Err(bad("UTF-8"));
                    }
                    text.push_text(field);
                }
            }
        }
        if count != self.columns.len() {
            return Err(
                self.bad(format!("{count} fields, there are {} columns", self.columns.len()))
            );
        }
        batch.places.push(self.line);
        Ok(())
    }

    fn is_pairs(&self) -> bool {
        self.columns.len() == 2 && self.cells == [(0, Cell::Integer), (1, Cell::Integer)]
    }
}

/// A run of digits up to the byte `stop`, and where the next begins. Up to 18 digits, which never
/// overflow.
#[inline]
fn digits(bytes: &[u8], start: usize, stop: u8) -> Option<(i64, usize)> {
    let (mut value, mut at) = (0i64, start);
    loop {
        let byte = *bytes.get(at)?;
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (byte == stop && at > start && at - start <= 18).then_some((value, at + 1));
        }
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
}

/// The fields of a line, quotes removed.
fn split(line: &[u8], delimiter: u8) -> Vec<Vec<u8>> {
    let mut fields = vec![Vec::new()];
    let (mut quoted, mut i) = (false, 0);
    while i < line.len() {
        let field = fields.last_mut().expect("never empty");
        match line[i] {
            b'"' if quoted && line.get(i + 1) == Some(&b'"') => {
                field.push(b'"');
                i += 1;
            }
            b'"' if quoted || field.is_empty() => quoted = !quoted,
            byte if byte == delimiter && !quoted => fields.push(Vec::new()),
            byte => field.push(byte),
        }
        i += 1;
    }
    fields
}

impl TableReader for CsvReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn has_header(&self) -> bool {
        self.header
    }

    fn looks_integer(&self, column: usize) -> bool {
        let text = self.first.get(column).and_then(|f| std::str::from_utf8(f).ok());
        text.is_some_and(|t| t.trim().parse::<i64>().is_ok())
    }

    fn looks_text(&self, column: usize) -> bool {
        let text = self.first.get(column).and_then(|f| std::str::from_utf8(f).ok());
        text.map(str::trim).is_some_and(|t| !t.is_empty() && t.parse::<f64>().is_err())
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
