//! Times in datasets.

use gnarl_common::{Buf, DType, Element, Error, Result};

use crate::{Column, Dataset, Triple};

/// The column `time` of an edge type, if it has one of integers: mapped where it is 64 bits wide,
/// copied otherwise.
///
/// # Errors
/// If a time exceeds 63 bits.
pub fn edge_times(dataset: &Dataset, triple: &Triple) -> Result<Option<Buf<i64>>> {
    dataset.edge_column(triple, "time")?.map_or(Ok(None), |column| times(&column))
}

/// The column `time` of a node type likewise.
///
/// # Errors
/// If a time exceeds 63 bits.
pub fn node_times(dataset: &Dataset, node_type: &str) -> Result<Option<Buf<i64>>> {
    dataset.node_column(node_type, "time")?.map_or(Ok(None), |column| times(&column))
}

/// The values of a column of times: mapped where they are 64 bits wide, copied otherwise; none if they are no integers.
///
/// # Errors
/// If a time exceeds 63 bits.
pub fn times(column: &Column) -> Result<Option<Buf<i64>>> {
    Ok(Some(match column.spec().dtype {
        DType::I64 => column.values()?,
        DType::U64 => copied::<u64>(column)?,
        DType::I32 => copied::<i32>(column)?,
        DType::U32 => copied::<u32>(column)?,
        DType::U8 => copied::<u8>(column)?,
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => return Ok(None),
    }))
}

fn copied<T: Element + TryInto<i64>>(column: &Column) -> Result<Buf<i64>> {
    let widen = |(row, &time): (usize, &T)| {
        let file = &column.spec().file;
        time.try_into()
            .map_err(|_| Error::invalid(format!("{file}: row {row}: the time exceeds 63 bits")))
    };
    let times = column.values::<T>()?.iter().enumerate().map(widen).collect::<Result<Vec<_>>>()?;
    Ok(times.into())
}
