//! Requirements on every policy, and policy names.

use std::num::NonZeroUsize;

use gnarl_common::rng::Key;

use super::*;

fn policies(rows: usize) -> Vec<(&'static str, Box<dyn Policy>)> {
    let n = NonZeroUsize::new(rows).unwrap();
    let chosen: Vec<u64> = (0..rows as u64).map(|i| 3 * i).collect();
    vec![
        ("fixed", Box::new(fixed::Fixed::new(&chosen))),
        ("fifo", Box::new(fifo::Fifo::new(n))),
        ("lru", Box::new(lru::Lru::new(n))),
        ("clockpro", Box::new(clockpro::ClockPro::new(n))),
    ]
}

/// Tracks the key in each slot as a cache tracks its row.
#[test]
fn a_slot_has_one_key_at_a_time() {
    for rows in [1, 2, 7, 64] {
        for (name, mut policy) in policies(rows) {
            assert_eq!(policy.slots(), rows);
            let mut held = vec![None; rows];
            for step in 0..5000 {
                let key = Key::new(1).with(step).below(0, 1 + Key::new(2).below(step, 300));
                match policy.get(key) {
                    Some(slot) => assert_eq!(held[slot as usize], Some(key), "{name}, {rows}"),
                    None => {
                        if let Some(slot) = policy.insert(key) {
                            held[slot as usize] = Some(key);
                            assert_eq!(policy.get(key), Some(slot), "{name}, {rows}");
                        }
                    }
                }
            }
        }
    }
}

/// All cached keys are in use, so that a policy may reject the new one.
#[test]
fn a_key_that_does_not_stay_takes_no_slot_with_it() {
    let rows = 20;
    for (name, mut policy) in policies(rows) {
        let mut held = vec![None; rows];
        for step in 0..20_000 {
            let key = Key::new(1).below(step, 60);
            if policy.get(key).is_none()
                && let Some(slot) = policy.insert(key)
            {
                held[slot as usize] = Some(key);
            }
            for key in held.iter().flatten().filter(|key| (*key + step) % 3 == 0) {
                let slot = policy.get(*key);
                assert!(slot.is_none_or(|slot| held[slot as usize] == Some(*key)), "{name}");
            }
        }
    }
}

#[test]
fn names_are_read_and_unknown_ones_meet_the_nearest() {
    for policy in CachePolicy::ALL {
        assert_eq!(policy.to_string().parse::<CachePolicy>().unwrap(), policy);
    }
    let error = "clock".parse::<CachePolicy>().unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("did you mean 'clockpro'"), "{error}");
}
