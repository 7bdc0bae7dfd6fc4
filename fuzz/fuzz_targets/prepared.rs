//! Prepared batches whose files are damaged: edits of the manifest and of the Arrow files.
#![no_main]

use std::sync::LazyLock;

use gnarl_config::RunConfig;
use gnarl_fuzz::damage::Folder;
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::{fixture, scratch};
use gnarl_train::Registry;
use gnarl_train::fuzzing::prepared;
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    Folder::new(|dir| {
        let source = scratch::folder();
        let mut config = RunConfig::default();
        config.dataset.path = source.path().join("data");
        config.model.hidden = 4;
        config.sample.batch_size = 7;
        config.train.workers = 1;
        fixture::homogeneous(&config.dataset.path);
        Registry::default().prepare(&config, 2, &dir.join("batches")).expect("batches");
    })
});

fuzz_target!(init: { LazyLock::force(&FOLDER); }, |data: &[u8]| {
    FOLDER.damaged(&mut Input::new(data), |dir| {
        let _ = within(32 << 20, || prepared(&dir.join("batches")));
    });
});
