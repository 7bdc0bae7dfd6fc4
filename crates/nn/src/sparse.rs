//! Sparse input rows: bags of words, one-hot ids.

/// Rows in compressed form (CSR). Constant: no gradient flows into the values.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRows {
    rows: usize,
    cols: usize,
    indptr: Vec<u64>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl SparseRows {
    /// Rows `i` with entries `indptr[i]..indptr[i + 1]` of `indices` (columns) and `values`.
    ///
    /// # Panics
    /// If the lengths disagree or a column is not below `cols`: readers check files before.
    pub fn new(cols: usize, indptr: Vec<u64>, indices: Vec<u32>, values: Vec<f32>) -> Self {
        let rows = indptr.len().checked_sub(1).expect("indptr holds at least one offset");
        assert!(indptr.windows(2).all(|w| w[0] <= w[1]), "indptr ascends");
        assert_eq!(indptr[rows] as usize, indices.len());
        assert_eq!(values.len(), indices.len());
        assert!(indices.iter().all(|&c| (c as usize) < cols), "columns are below {cols}");
        Self { rows, cols, indptr, indices, values }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Offsets of each row's entries, `rows + 1` values.
    pub fn indptr(&self) -> &[u64] {
        &self.indptr
    }

    /// Column of each entry.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Value of each entry.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// This sparsity pattern with other values.
    pub(crate) fn with_values(&self, rows: usize, values: Vec<f32>) -> Self {
        let indptr = self.indptr[..=rows].to_vec();
        let indices = self.indices[..indptr[rows] as usize].to_vec();
        Self { rows, cols: self.cols, indptr, indices, values }
    }

    /// The entries of the first `rows` rows grouped by column: offsets (`cols + 1`), rows and
    /// values. For gradients that gather instead of scatter.
    pub(crate) fn by_column(&self, rows: usize) -> (Vec<u64>, Vec<u32>, Vec<f32>) {
        let entries = self.indptr[rows] as usize;
        let mut indptr = vec![0u64; self.cols + 1];
        for &c in &self.indices[..entries] {
            indptr[c as usize + 1] += 1;
        }
        for c in 0..self.cols {
            indptr[c + 1] += indptr[c];
        }
        let mut next = indptr.clone();
        let (mut row_of, mut values) = (vec![0u32; entries], vec![0f32; entries]);
        for r in 0..rows {
            for e in self.indptr[r] as usize..self.indptr[r + 1] as usize {
                let slot = &mut next[self.indices[e] as usize];
                row_of[*slot as usize] = r as u32;
                values[*slot as usize] = self.values[e];
                *slot += 1;
            }
        }
        (indptr, row_of, values)
    }
}
