//! Outer optimizers: how the average of the parts' weights moves the weights they go on from. One file per
//! algorithm.

mod nesterov;
mod optimizer;
mod plain;
mod slowmo;
mod velocity;

pub use optimizer::OuterOptimizer;

use gnarl_config::{AverageSection, Outer};

/// The outer optimizer that `section` names, of `weights` weights.
pub(crate) fn build(section: &AverageSection, weights: usize) -> Box<dyn OuterOptimizer> {
    let lr = section.outer_lr();
    let momentum = section.outer_momentum();
    match section.outer {
        // Those of programs are built by the registry.
        Outer::Plain | Outer::Custom => Box::new(plain::Plain),
        Outer::SlowMo => Box::new(slowmo::SlowMo::new(lr, momentum, weights)),
        Outer::Nesterov => Box::new(nesterov::Nesterov::new(lr, momentum, weights)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Outer; 3] = [Outer::Plain, Outer::SlowMo, Outer::Nesterov];

    fn optimizer(outer: Outer, lr: f32, momentum: f32) -> Box<dyn OuterOptimizer> {
        let section = AverageSection {
            outer,
            outer_lr: Some(lr),
            outer_momentum: Some(momentum),
            ..AverageSection::default()
        };
        build(&section, 2)
    }

    /// The weights after each of three averagings, where the parts' average is always half a step of
    /// (1, -2) ahead of the weights.
    fn walk(mut optimizer: Box<dyn OuterOptimizer>) -> Vec<[f32; 2]> {
        let mut weights = [0.0, 0.0];
        let mut path = Vec::new();
        for _ in 0..3 {
            let average = [weights[0] + 0.5, weights[1] - 1.0];
            optimizer.step(&mut weights, &average, 0.25);
            path.push(weights);
        }
        path
    }

    #[test]
    fn plain_takes_the_average() {
        let path = walk(optimizer(Outer::Plain, 1.0, 0.0));
        assert_eq!(path, [[0.5, -1.0], [1.0, -2.0], [1.5, -3.0]]);
    }

    #[test]
    fn slowmo_adds_up_changes() {
        // In units of the change, u is 1, 1.5, 1.75; of each, half is stepped.
        let path = walk(optimizer(Outer::SlowMo, 0.5, 0.5));
        assert_eq!(path, [[0.25, -0.5], [0.625, -1.25], [1.0625, -2.125]]);
    }

    #[test]
    fn nesterov_looks_ahead() {
        // In units of the change, v is 1, 1.5, 1.75, and steps are 1 + v / 2: 1.5, 1.75, 1.875; of each, half.
        let path = walk(optimizer(Outer::Nesterov, 0.5, 0.5));
        assert_eq!(path, [[0.375, -0.75], [0.8125, -1.625], [1.28125, -2.5625]]);
    }

    #[test]
    fn slowmo_steps_with_the_rate_of_the_moment() {
        let mut optimizer = optimizer(Outer::SlowMo, 1.0, 0.5);
        let mut weights = [0.0, 0.0];
        optimizer.step(&mut weights, &[1.0, 2.0], 0.5);
        assert_eq!(weights, [1.0, 2.0]);
        // Half of the velocity of -2 and -4 stays; the rate it is stepped with is now 0.25.
        optimizer.step(&mut weights, &[1.0, 2.0], 0.25);
        assert_eq!(weights, [1.25, 2.5]);
    }

    #[test]
    fn every_optimizer_goes_on_to_the_same_bits() {
        for outer in ALL {
            let mut whole = optimizer(outer, 0.7, 0.9);
            let mut weights = [0.1, -0.3];
            whole.step(&mut weights, &[0.4, 0.2], 0.01);
            let mut resumed = optimizer(outer, 0.7, 0.9);
            resumed.load_state(&whole.state()).unwrap();
            let mut copy = weights;
            whole.step(&mut weights, &[0.5, 0.7], 0.01);
            resumed.step(&mut copy, &[0.5, 0.7], 0.01);
            assert_eq!(weights, copy, "{outer:?}");
        }
    }

    #[test]
    fn state_of_another_optimizer_is_refused() {
        let plain = optimizer(Outer::Plain, 1.0, 0.0);
        let error = optimizer(Outer::SlowMo, 1.0, 0.5).load_state(&plain.state()).unwrap_err();
        assert!(format!("{error:?}").contains("average.outer"), "{error:?}");
    }
}
