//! Inputs of several parts: numbers, and sections of bytes whose lengths come before them.
//!
//! Lengths are in front, unlike in `arbitrary`, so that seeds are written by hand and remain valid when a section grows.

/// The bytes of an input that are not read yet.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next byte; 0 at the end.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// The next two bytes, the lower first.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next `len` bytes, or as many as there are.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (found, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        found
    }

    /// A section: two bytes of length, and so many bytes.
    pub fn section(&mut self) -> &'a [u8] {
        let len = self.short();
        self.bytes(len.into())
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Returns whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An npy file: as it is, or values of a type and shape that the first bytes of the section choose, under the header
    /// that belongs to them. Most mutations of headers only make them invalid.
    pub fn npy(&mut self) -> Vec<u8> {
        let mut section = Input(self.section());
        let kind = section.byte();
        if kind == 0 {
            return section.rest().to_vec();
        }
        let (descr, size) = TYPES[usize::from(kind) % TYPES.len()];
        let order = if kind & 0x80 == 0 { "False" } else { "True" };
        // Rows of as many values; 0 for a vector. Under an odd byte, rows come second, as in an edge array.
        let width = usize::from(section.byte());
        let values = section.rest();
        let count = values.len() / size;
        let shape = match width {
            0 => format!("({count},)"),
            _ if width % 2 == 1 => format!("({}, {})", width + 1, count / (width + 1)),
            _ => format!("({}, {})", count / (width / 2), width / 2),
        };
        let dict =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let len = (dict.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &len[..], dict.as_bytes(), values].concat()
    }
}

const TYPES: [(&str, usize); 12] = [
    ("<i8", 8),
    ("<i8", 8),
    ("<i4", 4),
    ("<u8", 8),
    ("<u4", 4),
    ("<f4", 4),
    ("<f8", 8),
    ("<f2", 2),
    ("|u1", 1),
    ("|b1", 1),
    (">i4", 4),
    ("<i2", 2),
];
