//! One suite over every optimizer, and known values for each.

use super::*;

fn config(name: &str) -> OptimizerConfig {
    OptimizerConfig {
        name: name.into(),
        momentum: if name == "sgd" { 0.9 } else { 0.0 },
        weight_decay: 0.01,
        ..Default::default()
    }
}

fn gradient(step: usize, len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7 + step * 3) % 11) as f32 / 11.0 - 0.4).collect()
}

#[test]
fn every_optimizer_minimises_a_quadratic() {
    for name in names() {
        let mut config = config(name);
        config.weight_decay = 0.0;
        let mut optimizer = config.build().unwrap();
        let target = [3.0f32, -1.0, 0.5];
        let mut params = [0.0f32; 3];
        for _ in 0..2000 {
            let grads: Vec<f32> = params.iter().zip(target).map(|(p, t)| p - t).collect();
            optimizer.step(&mut params, &grads, 0.01);
        }
        for (p, t) in params.iter().zip(target) {
            assert!((p - t).abs() < 1e-2, "{name}: {p} instead of {t}");
        }
    }
}

#[test]
fn every_optimizer_resumes_to_the_same_bits() {
    for name in names() {
        let mut whole = config(name).build().unwrap();
        let mut params = vec![0.5f32; 40_000];
        for step in 0..3 {
            whole.step(&mut params, &gradient(step, 40_000), 0.1);
        }
        let mut resumed = config(name).build().unwrap();
        resumed.load_state(&whole.state()).unwrap();
        let mut copy = params.clone();
        whole.step(&mut params, &gradient(3, 40_000), 0.1);
        resumed.step(&mut copy, &gradient(3, 40_000), 0.1);
        assert_eq!(params, copy, "{name}");
    }
}

/// `torch.optim` from [1, -2, 0.5] with rate 0.1, weight decay 0.01 and momentum 0.9, after three
/// steps of the gradient p^2 - 0.3.
const ADAM: [f32; 3] = [0.707_925_6, -2.300_496_6, 0.532_295_8];
const ADAMW: [f32; 3] = [0.705_505_25, -2.294_202_3, 0.544_545_1];
const SGD_MOMENTUM: [f32; 3] = [0.662_774_4, -5.009_687_4, 0.523_089_77];
const SGD_NESTEROV: [f32; 3] = [0.588_899_8, -8.631_071, 0.530_127_76];

#[test]
fn every_optimizer_matches_pytorch() {
    let expected =
        [("adam", ADAM), ("adamw", ADAMW), ("sgd", SGD_MOMENTUM), ("nesterov", SGD_NESTEROV)];
    for (name, expected) in expected {
        let mut config = config(if name == "nesterov" { "sgd" } else { name });
        config.nesterov = name == "nesterov";
        let mut optimizer = config.build().unwrap();
        let mut params = [1.0f32, -2.0, 0.5];
        for _ in 0..3 {
            let grads: Vec<f32> = params.iter().map(|p| p * p - 0.3).collect();
            optimizer.step(&mut params, &grads, 0.1);
        }
        for (p, e) in params.iter().zip(expected) {
            assert!((p - e).abs() < 1e-5, "{name}: {params:?} instead of {expected:?}");
        }
    }
}

#[test]
fn unknown_optimizer_names_the_nearest() {
    let error = config("adamm").build().err().unwrap().to_string();
    assert!(error.contains("adamm") && error.contains("'adam'"), "{error}");
}

#[test]
fn state_of_another_optimizer_is_refused() {
    let state = config("sgd").build().unwrap().state();
    let error = config("adam").build().unwrap().load_state(&state).unwrap_err();
    assert!(error.to_string().contains("steps"), "{error}");
}

#[test]
fn clipping_scales_to_the_norm_and_leaves_small_gradients() {
    let mut grads = vec![3.0f32, 4.0];
    assert_eq!(clip_by_global_norm(&mut grads, 10.0), 5.0);
    assert_eq!(grads, [3.0, 4.0]);
    assert_eq!(clip_by_global_norm(&mut grads, 1.0), 5.0);
    assert!((global_norm(&grads) - 1.0).abs() < 1e-6);
}

#[test]
fn norm_does_not_depend_on_threads() {
    let grads = gradient(1, 300_001);
    let norm_on = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
            .install(|| global_norm(&grads).to_bits())
    };
    assert_eq!(norm_on(1), norm_on(3));
}

#[test]
fn schedules_pass_through_their_known_points() {
    let of = |kind| Schedule { kind, warmup: 10, every: 20, gamma: 0.1, floor: 0.2 };
    let near = |a: f32, b: f32| assert!((a - b).abs() < 1e-6, "{a} instead of {b}");
    for kind in
        [ScheduleKind::Constant, ScheduleKind::Step, ScheduleKind::Cosine, ScheduleKind::Linear]
    {
        near(of(kind).factor(0, 110), 0.1);
        near(of(kind).factor(10, 110), 1.0);
    }
    near(of(ScheduleKind::Constant).factor(110, 110), 1.0);
    near(of(ScheduleKind::Step).factor(50, 110), 0.01);
    near(of(ScheduleKind::Cosine).factor(60, 110), 0.6);
    near(of(ScheduleKind::Linear).factor(60, 110), 0.6);
    near(of(ScheduleKind::Cosine).factor(500, 110), 0.2);
}
