//! Results do not depend on the number of threads, bit for bit.

use crate::common::{CASES, Scene};

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let scene = Scene::new(5000, 2300, 24, 5);
    for (name, case) in CASES {
        let results: Vec<_> = [1, 2, 3]
            .into_iter()
            .map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let (loss, params, leaf) = pool.install(|| scene.gradients(*case));
                (loss.to_bits(), bits(&params), bits(&leaf))
            })
            .collect();
        assert!(results[0] == results[1] && results[0] == results[2], "{name}");
    }
}
