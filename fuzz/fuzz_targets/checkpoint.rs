//! Checkpoints and weights: any bytes.
//!
//! Weights that are accepted survive being written.
#![no_main]

use gnarl_common::rng::Key;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::scratch;
use gnarl_nn::state::{
    about, params_from_bytes, params_to_bytes, vectors_from_bytes, vectors_to_bytes,
};
use gnarl_nn::{Init, ParamsBuilder};
use gnarl_train::fuzzing::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let dir = scratch::folder();
    within(32 << 20, || {
        let _ = decode(data, dir.path());
        let _ = about(data);
        let mut builder = ParamsBuilder::new(Key::new(3));
        builder.add("w", 2, 2, Init::XavierUniform);
        let mut params = builder.build();
        if params_from_bytes(&mut params, data).is_ok() {
            let written = params_to_bytes(&params).expect("weights are written");
            let mut again = params.clone();
            params_from_bytes(&mut again, &written).expect("written weights are read");
            let bits = |all: &[f32]| all.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(again.flat()), bits(params.flat()));
        }
        if let Ok(vectors) = vectors_from_bytes(data) {
            let written = vectors_to_bytes(&vectors).expect("vectors are written");
            assert_eq!(vectors_from_bytes(&written).expect("vectors").len(), vectors.len());
        }
    });
});
