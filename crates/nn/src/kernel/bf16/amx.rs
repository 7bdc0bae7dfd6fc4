//! Products by AMX, whose registers are tiles of 16 rows of 64 bytes.
//!
//! 32 rows of the left side meet 32 columns of the right one: four tiles of sums stay in registers while the inner
//! dimension goes by, 32 values at a time. An instruction multiplies a tile of 16 rows and 32 values by one of 16 pairs and
//! 16 columns. The inner dimension and columns are padded with zeros to whole tiles; sums of rows that are not asked for are
//! left out.
//!
//! `unsafe` is for the instructions, which [`Right::new`](super::Right::new) has looked for, and for loads and stores whose
//! ranges are asserted beforehand. Tiles have no intrinsics in stable Rust, so that assembly has to name them. It pays: with
//! both sides in caches, one core of a Xeon does 1.4 to 2.6 · 10¹² operations a second, where f32 reaches 0.14 · 10¹².

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

use bytemuck::{cast_slice, cast_slice_mut};

use super::pack::{LANES, Line, Lines, interleave, pack_right, pack_row, transpose};
use crate::kernel::gemm::View;

/// Rows of a square of sums: two tiles.
const ROWS: usize = 2 * LANES;
/// Rows of a transposed left side that are packed at once, so that memory is read in runs of so many values.
const BLOCK: usize = 8 * ROWS;

/// The order in which lines of a left side are packed.
#[derive(Clone, Copy)]
enum Layout {
    /// Line after line of a row.
    Rows,
    /// Tile after tile of 16 rows, each line after line: transposed sides are written in runs so.
    Tiles,
}

/// Returns whether the processor has tiles for bf16 and the system lets this process use them.
pub(super) fn is_native() -> bool {
    static NATIVE: OnceLock<bool> = OnceLock::new();
    *NATIVE.get_or_init(|| has_instructions() && is_permitted())
}

/// Returns whether the processor has AMX-TILE and AMX-BF16.
pub(super) fn has_instructions() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    let leaf = 7;
    __cpuid(0).eax >= leaf && __cpuid_count(leaf, 0).edx & (BF16 | TILE) == BF16 | TILE
}

/// Asks the system to save tiles when it switches between threads, without which their use is an error.
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const REQUEST_PERMISSION: libc::c_ulong = 0x1023;
    const TILE_DATA: libc::c_ulong = 18;
    // SAFETY: the call takes two numbers.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// The right side: for each 16 columns, line after line of a pair of rows, up to whole tiles.
pub(crate) struct Tiles {
    lines: Lines,
    k: usize,
    n: usize,
}

impl Tiles {
    /// Rounds and packs the `k × n` matrix `b`.
    pub(super) fn new(b: View<'_>, (k, n): (usize, usize)) -> Self {
        assert!(b.holds(k, n), "the right side is {k} × {n}");
        let depth = depth(k);
        let mut lines = Lines::scratch(depth * n.div_ceil(LANES));
        // SAFETY: `Right::new` has found the instructions.
        unsafe { pack_right(lines.get_mut(), |vector| (vector * depth, 1), depth, b, (k, n)) };
        Self { lines, k, n }
    }

    /// `out = a · self`, where `a` is `m × k`; row `i` of the result starts at `out[i * stride]`.
    pub(super) fn product(
        &self,
        out: &mut [f32],
        stride: usize,
        (m, n, k): (usize, usize, usize),
        a: View<'_>,
    ) {
        assert!(a.holds(m, k), "the left side is {m} × {k}");
        // SAFETY: `Right::new` has found the instructions.
        self.by_blocks(out, stride, (m, n, k), layout(a), |to, first, rows| unsafe {
            pack_left(to, a.skip(first), (rows, k));
        });
    }

    /// [`Self::product`] of a left side that is packed: for each row [`depth`] pairs, and any up to a multiple of 32 rows.
    pub(super) fn product_of_packed(
        &self,
        out: &mut [f32],
        stride: usize,
        (m, n, k): (usize, usize, usize),
        left: &[Line],
    ) {
        self.check(out, stride, (m, n, k));
        if k == 0 || n == 0 {
            return zero(out, stride, (m, n));
        }
        let _configured = Configured::new();
        self.rows(out, stride, m, (left, Layout::Rows));
    }

    /// [`Self::product`], where the left side has the columns of `rows`, of [`depth`] pairs for `m` values.
    pub(super) fn product_of_columns(
        &self,
        out: &mut [f32],
        stride: usize,
        (m, n, k): (usize, usize, usize),
        rows: &[Line],
    ) {
        let lines = depth(m) / LANES;
        assert!(rows.len() >= k * lines, "the left side has {k} columns of {lines} lines");
        let halves: &[[u16; LANES]] = cast_slice(rows);
        self.by_blocks(out, stride, (m, n, k), Layout::Tiles, |to, first, count| {
            let pairs = |to: &mut [u32; LANES], low: usize, column: usize| {
                let at = |l: usize| 2 * l * lines + (first + column) / LANES;
                let side = |l: usize| if l < k { &halves[at(l)] } else { &[0; LANES] };
                let sides = side(low).iter().zip(side(low + 1));
                to.iter_mut().zip(sides).for_each(|(to, (&low, &high))| {
                    *to = u32::from(low) | u32::from(high) << 16;
                });
            };
            // SAFETY: `Right::new` has found the instructions.
            unsafe { pack_columns(to, pairs, (count, k)) };
        });
    }

    /// A product whose left side is packed by `pack` some rows at a time: it is given where to, the first row and their
    /// number, and need not write rows behind them.
    fn by_blocks(
        &self,
        out: &mut [f32],
        stride: usize,
        (m, n, k): (usize, usize, usize),
        layout: Layout,
        pack: impl Fn(&mut [Line], usize, usize),
    ) {
        self.check(out, stride, (m, n, k));
        if k == 0 || n == 0 {
            return zero(out, stride, (m, n));
        }
        let block = match layout {
            Layout::Rows => ROWS,
            Layout::Tiles => BLOCK,
        };
        let mut left = Lines::scratch(block.min(m.next_multiple_of(ROWS)) * depth(k) / LANES);
        let left = left.get_mut();
        let _configured = Configured::new();
        for first in (0..m).step_by(block) {
            let rows = block.min(m - first);
            pack(left, first, rows);
            self.rows(&mut out[first * stride..], stride, rows, (left, layout));
        }
    }

    /// # Panics
    /// If the right side is not `k × n`, or `out` does not hold the result.
    fn check(&self, out: &[f32], stride: usize, (m, n, k): (usize, usize, usize)) {
        assert!((k, n) == (self.k, self.n), "the right side is {k} × {n}");
        assert!(n <= stride && View::rows(out, stride).holds(m, n), "the result is {m} × {n}");
    }

    /// Multiplies rows that are packed, and lines for 32 of them at a time.
    fn rows(&self, out: &mut [f32], stride: usize, rows: usize, (left, layout): (&[Line], Layout)) {
        let lines = depth(self.k) / LANES;
        assert!(left.len() >= rows.next_multiple_of(ROWS) * lines, "{rows} rows are packed");
        let squares = left.chunks_exact(ROWS * lines).zip((0..rows).step_by(ROWS));
        for (left, first) in squares {
            let rows = ROWS.min(rows - first);
            self.square(&mut out[first * stride..], stride, rows, (left, layout));
        }
    }

    /// Multiplies up to 32 rows that are packed.
    fn square(&self, out: &mut [f32], stride: usize, rows: usize, left: (&[Line], Layout)) {
        const COLS: usize = 2 * LANES;
        for (i, right) in self.lines.get().chunks(2 * depth(self.k)).enumerate() {
            let cols = COLS.min(self.n - i * COLS);
            let out = &mut out[i * COLS..];
            if (rows, cols) == (ROWS, COLS) {
                sums(out, stride, left, right);
                continue;
            }
            let mut square = [0.0; ROWS * COLS];
            sums(&mut square, COLS, left, right);
            for (to, from) in out.chunks_mut(stride).zip(square.chunks(COLS)).take(rows) {
                to[..cols].copy_from_slice(&from[..cols]);
            }
        }
    }
}

/// Pairs of `k` values in whole tiles.
fn depth(k: usize) -> usize {
    k.div_ceil(2).next_multiple_of(LANES)
}

/// The layout of a left side: tiles if the values of its columns are adjacent, and those of its rows are not.
fn layout(a: View<'_>) -> Layout {
    let is_transposed = !a.has_adjacent_columns() && a.t().has_adjacent_columns();
    if is_transposed { Layout::Tiles } else { Layout::Rows }
}

/// Packs rows of the left side as [`layout`] has it, each of [`depth`] pairs; rows behind them keep what they have.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pack_left(to: &mut [Line], a: View<'_>, (rows, k): (usize, usize)) {
    if matches!(layout(a), Layout::Tiles) {
        let columns = a.t();
        let side = |l, first| {
            let columns = columns.skip_cols(first);
            if l < k { columns.row(l, LANES.min(rows - first)) } else { &[] }
        };
        let pairs = |to: &mut [u32; LANES], low, first| {
            interleave(to, side(low, first), side(low + 1, first));
        };
        return pack_columns(to, pairs, (rows, k));
    }
    let mut values = Vec::new();
    for (i, to) in to.chunks_exact_mut(depth(k) / LANES).take(rows).enumerate() {
        let row = if a.has_adjacent_columns() {
            a.row(i, k)
        } else {
            values.clear();
            values.extend((0..k).map(|l| a.value(i, l)));
            &values
        };
        pack_row(cast_slice_mut(to), row);
    }
}

/// Packs rows of the left side of `k` values in tiles, given by pairs of 16 rows: `pairs` is given where to, the first of two
/// values and the first row.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pack_columns(
    to: &mut [Line],
    pairs: impl Fn(&mut [u32; LANES], usize, usize),
    (rows, k): (usize, usize),
) {
    let lines = depth(k) / LANES;
    for line in 0..lines {
        for first in (0..rows).step_by(LANES) {
            let mut square = [Line::ZERO; LANES];
            for (i, to) in square.iter_mut().enumerate() {
                pairs(&mut to.0, 2 * (line * LANES + i), first);
            }
            transpose(&mut square);
            to[first * lines + line * LANES..][..LANES].copy_from_slice(&square);
        }
    }
}

/// Writes zeros.
fn zero(out: &mut [f32], stride: usize, (m, n): (usize, usize)) {
    out.chunks_mut(stride.max(1)).take(m).for_each(|row| row[..n].fill(0.0));
}

/// Writes 32 × 32 sums, or 32 × 16 if `right` has but 16 columns; rows of the result start `stride` apart.
fn sums(out: &mut [f32], stride: usize, (left, layout): (&[Line], Layout), right: &[Line]) {
    let lines = left.len() / ROWS;
    let depth = lines * LANES;
    let is_wide = right.len() == 2 * depth;
    assert!(lines > 0 && left.len() == ROWS * lines && (is_wide || right.len() == depth));
    let cols = if is_wide { 2 * LANES } else { LANES };
    assert!(View::rows(out, stride).holds(ROWS, cols), "a square has {ROWS} rows");
    let (apart, next) = match layout {
        Layout::Rows => (lines * size_of::<Line>(), size_of::<Line>()),
        Layout::Tiles => (size_of::<Line>(), LANES * size_of::<Line>()),
    };
    let upper = left.as_ptr();
    let lower = left[LANES * lines..].as_ptr();
    let first = right.as_ptr();
    let step = stride * size_of::<f32>();
    let to = out.as_mut_ptr();
    if is_wide {
        let second = right[depth..].as_ptr();
        // SAFETY: tiles are configured, and the assertions are about all that is read and written: of the left side, 32 rows
        // of `lines` lines; of the right one, twice `depth` lines, 16 at a time; of the result, 32 rows of 32 values.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "2:",
                "tileloadd tmm4, [{upper} + {apart}*1]",
                "tileloadd tmm6, [{first} + {line}*1]",
                "tileloadd tmm7, [{second} + {line}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm5, [{lower} + {apart}*1]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {upper}, {next}",
                "add {lower}, {next}",
                "add {first}, 1024",
                "add {second}, 1024",
                "dec {lines}",
                "jnz 2b",
                "tilestored [{to} + {step}*1], tmm0",
                "tilestored [{to} + {step}*1 + 64], tmm1",
                "tilestored [{below} + {step}*1], tmm2",
                "tilestored [{below} + {step}*1 + 64], tmm3",
                upper = inout(reg) upper => _,
                lower = inout(reg) lower => _,
                first = inout(reg) first => _,
                second = inout(reg) second => _,
                lines = inout(reg) lines => _,
                apart = in(reg) apart,
                next = in(reg) next,
                line = in(reg) size_of::<Line>(),
                step = in(reg) step,
                to = in(reg) to,
                below = in(reg) to.add(LANES * stride),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    } else {
        // SAFETY: as above, with 16 columns.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm2",
                "2:",
                "tileloadd tmm4, [{upper} + {apart}*1]",
                "tileloadd tmm6, [{first} + {line}*1]",
                "tileloadd tmm5, [{lower} + {apart}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "add {upper}, {next}",
                "add {lower}, {next}",
                "add {first}, 1024",
                "dec {lines}",
                "jnz 2b",
                "tilestored [{to} + {step}*1], tmm0",
                "tilestored [{below} + {step}*1], tmm2",
                upper = inout(reg) upper => _,
                lower = inout(reg) lower => _,
                first = inout(reg) first => _,
                lines = inout(reg) lines => _,
                apart = in(reg) apart,
                next = in(reg) next,
                line = in(reg) size_of::<Line>(),
                step = in(reg) step,
                to = in(reg) to,
                below = in(reg) to.add(LANES * stride),
                out("tmm0") _, out("tmm2") _, out("tmm4") _, out("tmm5") _, out("tmm6") _,
                options(nostack),
            );
        }
    }
}

/// Eight tiles of 16 rows of 64 bytes, as long as it lives: then threads that wait need not keep theirs.
struct Configured;

impl Configured {
    fn new() -> Self {
        /// Palette 1: bytes of the rows of each tile from byte 16 on, their numbers from byte 48 on.
        #[repr(C, align(64))]
        struct Shapes([u8; 64]);
        static SHAPES: Shapes = {
            let mut shapes = [0; 64];
            shapes[0] = 1;
            let mut tile = 0;
            while tile < 8 {
                shapes[16 + 2 * tile] = 64;
                shapes[48 + tile] = 16;
                tile += 1;
            }
            Shapes(shapes)
        };
        // SAFETY: 64 bytes are read, and `is_native` has found that tiles may be used.
        unsafe {
            asm!(
                "ldtilecfg [{}]",
                in(reg) &SHAPES,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, readonly),
            );
        }
        Self
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: nothing uses tiles behind this.
        unsafe {
            asm!(
                "tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, nomem),
            );
        }
    }
}
