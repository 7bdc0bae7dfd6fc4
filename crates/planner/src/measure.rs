//! Rates of this machine, for `gnarl plan --measure` and for profiles.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_common::threads::pool;
use gnarl_config::PlanSection;
use gnarl_graph::blocks::{Block, NodeInfo};
use gnarl_nn::{Activation, Init, Mode, ParamsBuilder, Precision, Reduce, Tape, Tensor};
use rayon::prelude::*;

/// Rows of multiplied and gathered matrices: 64 MiB, more than caches hold.
const ROWS: usize = 1 << 18;
const WIDTH: usize = 64;
/// Edges into each of some rows.
const DEGREE: usize = 16;
const TIMES: usize = 3;
/// Adjacent values that a thread goes through at a time.
const PIECE: usize = 1 << 16;

/// `rates` with measured ones of one thread here: products, gathers and streams. Takes less than a
/// second or two.
///
/// # Errors
/// If no thread can be started.
pub fn measure(rates: &PlanSection) -> Result<PlanSection> {
    measure_by(rates, 1, Precision::F32)
}

/// `rates` with those of so many threads together, and of products in `precision`.
///
/// # Errors
/// As [`measure`].
pub fn measure_by(
    rates: &PlanSection,
    threads: usize,
    precision: Precision,
) -> Result<PlanSection> {
    pool(threads)?.install(|| {
        let flops = products(threads, precision);
        Ok(PlanSection { flops, gather: gathers(), stream: streams(), ..rates.clone() })
    })
}

/// The best rate of a few runs, of `amount` each, per second.
fn best(amount: f64, mut run: impl FnMut()) -> f64 {
    let seconds = (0..TIMES).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    amount / seconds.fold(f64::INFINITY, f64::min).max(1e-9)
}

fn products(threads: usize, precision: Precision) -> f64 {
    // Enough for all threads: more would only take memory.
    let rows = threads.min(8) << 13;
    let width = 256;
    let mut builder = ParamsBuilder::new(Key::new(1));
    let weight = builder.add("w", width, width, Init::XavierUniform);
    let params = builder.build();
    let x = Tensor::from_vec(rows, width, vec![0.5; rows * width]);
    let mode = Mode::Train { key: Key::new(3), precision };
    best(2.0 * (rows * width * width) as f64, || {
        let mut tape = Tape::new(&params, mode);
        let x = tape.dense(x.clone());
        let y = tape.linear(x, weight, None, Activation::None);
        black_box(tape.value(y));
    })
}

fn gathers() -> f64 {
    let params = ParamsBuilder::new(Key::new(1)).build();
    let targets = ROWS / DEGREE;
    let key = Key::new(2);
    let sources: Vec<u32> = (0..ROWS as u64).map(|e| key.below(e, ROWS as u64) as u32).collect();
    let ends = (0..=targets).map(|d| (d * DEGREE) as u32).collect();
    let nodes = NodeInfo { ids: (0..ROWS as u64).collect(), degrees: vec![DEGREE as u32; ROWS] };
    let block = Block::new(ROWS, ends, sources, None, Arc::new(nodes));
    let x = Tensor::from_vec(ROWS, WIDTH, vec![0.5; ROWS * WIDTH]);
    let mut tape = Tape::new(&params, Mode::Eval);
    let x = tape.dense(x);
    best((4 * ROWS * WIDTH) as f64, || {
        let y = tape.spmm(&block, x, Reduce::Sum, None);
        black_box(tape.value(y));
    })
}

/// Bytes read and written.
fn streams() -> f64 {
    let from = vec![0.5f32; ROWS * WIDTH];
    let mut to = vec![0.0f32; ROWS * WIDTH];
    best((8 * ROWS * WIDTH) as f64, || {
        let pieces = to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE));
        pieces.for_each(|(to, from)| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from.max(0.0));
        });
        black_box(&to);
    })
}
