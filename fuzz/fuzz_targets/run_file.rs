//! Run files: a section of overrides, one a line, then the file.
//!
//! A run file that is accepted survives being written: the folder of a run keeps it so.
#![no_main]

use gnarl_config::load;
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::scratch;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let dir = scratch::folder();
    let mut input = Input::new(data);
    let overrides = String::from_utf8_lossy(input.section());
    let overrides: Vec<String> = overrides.lines().map(String::from).collect();
    let path = dir.path().join("run.toml");
    scratch::write(&path, input.rest());
    within(32 << 20, || {
        let Ok(config) = load(&path, &overrides) else { return };
        let text = toml::to_string(&config).expect("a configuration is TOML");
        scratch::write(&path, text.as_bytes());
        let again = load(&path, &[]).expect("a written configuration is read");
        assert_eq!(toml::to_string(&again).expect("TOML"), text);
    });
});
