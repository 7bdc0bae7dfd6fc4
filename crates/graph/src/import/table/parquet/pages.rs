//! Pages whose claims are checked before a decoder takes memory for them.

use parquet::basic::Type;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// The pages of a column chunk.
pub(super) struct Pages {
    pages: Box<dyn PageReader>,
    /// Fewest bytes of a value of a dictionary.
    bytes: usize,
}

impl Pages {
    /// The pages of a chunk of a column.
    pub fn new(pages: Box<dyn PageReader>, column: &ColumnDescriptor) -> Self {
        let bytes = match column.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            // Their lengths.
            Type::BYTE_ARRAY => 4,
            Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(0),
        };
        Self { pages, bytes: bytes.max(1) }
    }

    /// Rejects a dictionary of more values than its bytes can hold: the decoder makes room for all at once.
    fn checked(&self, page: Option<Page>) -> Result<Option<Page>> {
        match &page {
            Some(Page::DictionaryPage { buf, num_values, .. })
                if *num_values as usize > buf.len() / self.bytes =>
            {
                let held = buf.len();
                Err(ParquetError::General(format!(
                    "a dictionary claims {num_values} values in {held} bytes"
                )))
            }
            _ => Ok(page),
        }
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.checked(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;

    use super::*;

    struct One(Option<Page>);

    impl Iterator for One {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.take().map(Ok)
        }
    }

    impl PageReader for One {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn dictionaries_beyond_their_bytes_are_refused() {
        let dictionary = |num_values| Page::DictionaryPage {
            buf: vec![0; 32].into(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let read = |num_values| {
            let pages = Box::new(One(Some(dictionary(num_values))));
            Pages { pages, bytes: 8 }.get_next_page()
        };
        assert!(read(4).unwrap().is_some());
        let error = read(5).err().unwrap().to_string();
        assert!(error.contains("5 values in 32 bytes"), "{error}");
    }
}
