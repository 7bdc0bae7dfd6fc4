use std::time::Duration;

use super::*;
use gnarl_common::Home;
use gnarl_common::rng::Key;
use gnarl_engine::{Communicator, local};
use gnarl_nn::{Init, ParamsBuilder};

use crate::embeddings::TableSpec;
use crate::state::Start;

/// A state with weights and a table of `rows` rows.
fn start(rows: u64) -> Start {
    let mut builder = ParamsBuilder::new(Key::new(3));
    builder.add("w", 4, 5, Init::XavierUniform);
    let table = TableSpec::of_entities(rows, 2);
    Start { params: builder.build(), tables: vec![table] }
}

const SOME_LINES: Lines = Lines { count: 7, crc32: 0x89ab_cdef };

fn write(dir: &Path, state: &TrainState) {
    let deadline = Duration::from_secs(60);
    let alone = local::run(1, deadline, |rank| {
        let tables = state.tables.iter().map(|table| table.whole(rank));
        save(dir, state, &tables.collect::<Result<Vec<_>>>()?, Some(SOME_LINES))
    });
    alone.unwrap();
}

#[test]
fn ranks_go_on_from_what_others_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = start(5).share(&[], (0, 1), &Home::Memory).unwrap();
    state.tables[0].rows_mut().unwrap().update(&[2, 4], &[1.0, -1.0, 0.5, 0.0], 0.1).unwrap();
    write(dir.path(), &state);
    let bytes = read(dir.path()).unwrap();
    let all = local::run(3, Duration::from_secs(60), |rank| {
        let own =
            decode(&bytes, dir.path(), start(5).share(&[], (rank.rank(), 3), &Home::Memory)?)?;
        assert!(own.tables[0].rows().ids().len() < 3, "a share");
        Ok(own.tables[0].fetch(rank, &[0, 1, 2, 3, 4])?.data().to_vec())
    });
    for values in all.unwrap() {
        assert_eq!(values, **state.tables[0].rows().values());
    }
}

#[test]
fn state_survives_a_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = start(3).share(&[], (0, 1), &Home::Memory).unwrap();
    state.progress.epoch = 7;
    state.tables[0].rows_mut().unwrap().update(&[2, 0], &[1.0, -1.0, 0.5, 0.0], 0.1).unwrap();
    state.tables[0].set_best(vec![4.0; 6].into());
    state.progress.best_valid.insert("accuracy".into(), 0.8123456789);
    state.best[3] = -2.5;
    state.optimizers.insert(0, vec![("m".into(), vec![1.0; 20]), ("step".into(), vec![7.0])]);
    state.optimizers.insert(3, vec![("m".into(), vec![0.5; 20])]);
    state.outer = vec![("velocity".into(), vec![0.25; 20])];
    write(dir.path(), &state);
    let bytes = read(dir.path()).unwrap();
    let decode =
        |rows| decode(&bytes, dir.path(), start(rows).share(&[], (0, 1), &Home::Memory).unwrap());
    assert_eq!(lines(&bytes).unwrap(), Some(SOME_LINES));
    let back = decode(3).unwrap();
    assert_eq!(back.params.flat(), state.params.flat());
    assert_eq!(back.best, state.best);
    assert_eq!(back.progress, state.progress);
    assert_eq!(back.optimizers, state.optimizers);
    assert_eq!(back.outer, state.outer);
    let table = &back.tables[0];
    let kept = &state.tables[0];
    assert_eq!(**table.rows().values(), **kept.rows().values());
    assert_eq!(**table.best(), [4.0; 6]);
    let states = [table, kept]
        .map(|table| (table.rows().state().0.to_vec(), table.rows().state().1.to_vec()));
    assert_eq!(states[0], states[1]);
    let error = decode(4).unwrap_err().to_string();
    assert!(
        error.contains("invalid 'table.entity.rows': expected 4 rows, found 6 values"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn damage_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let state = || start(3).share(&[], (0, 1), &Home::Memory).unwrap();
    write(dir.path(), &state());
    let path = dir.path().join(CHECKPOINT);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let told = || {
        let decoded = read(dir.path()).and_then(|read| decode(&read, dir.path(), state()));
        decoded.unwrap_err().to_string()
    };
    assert!(told().contains("damaged"), "{}", told());
    // R15: every flip is found, in the metadata, the names and the values.
    for place in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        std::fs::write(&path, &flipped).unwrap();
        let found = read(dir.path()).and_then(|read| decode(&read, dir.path(), state()));
        if let Ok(found) = found {
            // Padding of the header, which says nothing.
            assert_eq!(found.progress, state().progress, "byte {place}");
            assert_eq!(found.params.flat(), state().params.flat(), "byte {place}");
        }
    }
    let mut impossible = state();
    impossible.progress.unevaluated = vec![Default::default()];
    write(dir.path(), &impossible);
    assert!(told().contains("damaged: records of 1 epochs after epoch 0"), "{}", told());
}
