//! The values of a column, decoded batch by batch.

use parquet::column::reader::get_column_reader;
use parquet::file::reader::FileReader;
use parquet::schema::types::ColumnDescriptor;

use super::leaf::{Decoded, Leaf, Levels, guarded, leaf_of};
use super::pages::Pages;
use super::schema::List;

/// A column of a file, read row group by row group.
pub(super) struct Cursor {
    leaf: usize,
    values: Box<dyn Leaf>,
    levels: Levels,
    /// Definition level of values that are not null.
    defined: i16,
}

/// Values of a batch, and the positions of nulls.
pub(super) struct Cells<'a> {
    pub decoded: Decoded<'a>,
    /// Cells, null or not.
    count: usize,
    /// One level per cell; none if no value can be null.
    levels: &'a [i16],
    defined: i16,
}

/// A row whose list differs from a table of one width.
pub(super) enum Misfit {
    Null(usize),
    Length { row: usize, length: usize },
}

impl Cursor {
    pub fn new(leaf: usize, column: &ColumnDescriptor) -> Self {
        let defined = column.max_def_level();
        Self { leaf, values: leaf_of(column), levels: Levels::default(), defined }
    }

    /// Moves to the first row of a row group.
    pub fn open(&mut self, file: &dyn FileReader, group: usize) -> Result<(), String> {
        guarded(|| {
            let group = file.get_row_group(group)?;
            let column = group.metadata().column(self.leaf).column_descr_ptr();
            let pages = Pages::new(group.get_column_page_reader(self.leaf)?, &column);
            self.values.open(get_column_reader(column, Box::new(pages)));
            Ok(())
        })
    }

    /// Clears the batch.
    pub fn clear(&mut self) {
        self.values.clear();
        self.levels.definition.clear();
        self.levels.repetition.clear();
    }

    /// Appends the next rows of the row group to the batch.
    ///
    /// # Errors
    /// If there are fewer, or the file is damaged.
    pub fn read(&mut self, rows: usize) -> Result<(), String> {
        // A page may have less than is asked for, and so may a call.
        let mut left = rows;
        while left > 0 {
            match guarded(|| self.values.read(left, &mut self.levels))? {
                0 => return Err(format!("it ends {left} rows before its row group")),
                read => left -= read,
            }
        }
        Ok(())
    }

    /// Checks that the row group has no more rows.
    pub fn finish(&mut self) -> Result<(), String> {
        match guarded(|| self.values.read(1, &mut self.levels))? {
            0 => Ok(()),
            _ => Err("it has more rows than its row group".into()),
        }
    }

    /// Length of the first list of the batch, if there is one.
    pub fn first_length(&self, list: List) -> Option<usize> {
        let Levels { definition, repetition } = &self.levels;
        let present = definition.first().is_some_and(|&level| level >= list.present);
        // Levels of repetition above 1 are those of items' own lists.
        let items = definition.iter().zip(repetition);
        present.then(|| items.filter(|&(&level, &again)| level >= list.item && again <= 1).count())
    }

    /// Unpacks lists into cells of the batch.
    ///
    /// # Errors
    /// For the first row whose list is null or has not `width` items.
    pub fn unpack(&mut self, list: List, width: usize) -> Result<(), Misfit> {
        let Levels { definition, repetition } = &mut self.levels;
        let mut row = 0;
        let mut start = 0;
        while start < repetition.len() {
            // A list ends where the next begins, or with the batch.
            let rest = repetition[start + 1..].iter().position(|&level| level == 0);
            let end = rest.map_or(repetition.len(), |rest| start + 1 + rest);
            let levels = &definition[start..end];
            if levels[0] < list.present {
                return Err(Misfit::Null(row));
            }
            let length = levels.iter().filter(|&&level| level >= list.item).count();
            if length != width {
                return Err(Misfit::Length { row, length });
            }
            row += 1;
            start = end;
        }
        definition.retain(|&level| level >= list.item);
        Ok(())
    }

    /// The cells of the batch.
    pub fn cells(&self) -> Cells<'_> {
        let levels = &self.levels.definition[..];
        let count = if self.defined > 0 { levels.len() } else { self.values.count() };
        Cells { decoded: self.values.decoded(), count, levels, defined: self.defined }
    }
}

impl Cells<'_> {
    /// The first null cell, counted among all cells.
    pub fn first_null(&self) -> Option<usize> {
        self.levels.iter().position(|&level| level != self.defined)
    }

    /// The position of a value among all cells.
    pub fn place(&self, value: usize) -> usize {
        let defined = |place: &usize| self.levels[*place] == self.defined;
        match self.levels {
            [] => value,
            levels => (0..levels.len()).filter(defined).nth(value).unwrap_or(value),
        }
    }

    /// Visits all cells in order, of which `values` has those that are not null.
    pub fn for_each<T>(
        &self,
        mut values: impl ExactSizeIterator<Item = T>,
        mut visit: impl FnMut(Option<T>),
    ) {
        // Without nulls, levels need not be looked at.
        if values.len() == self.count {
            return values.for_each(|value| visit(Some(value)));
        }
        for &level in self.levels {
            visit(if level == self.defined { values.next() } else { None });
        }
    }

    /// Number of cells, null or not.
    pub fn count(&self) -> usize {
        self.count
    }
}
