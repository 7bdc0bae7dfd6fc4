//! Headers of npy files: any bytes.
//!
//! A header that is read survives being written in canonical form.
#![no_main]

use std::io::Cursor;

use gnarl_common::npy::{LONGEST_START, NpyHeader};
use gnarl_fuzz::memory::within;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    within(1 << 20, || {
        let Ok(header) = NpyHeader::parse(&mut Cursor::new(data)) else { return };
        assert!(header.offset <= data.len() as u64 && header.offset <= LONGEST_START);
        assert_eq!(NpyHeader::of_bytes(data, "input").expect("the same header"), header);
        let NpyHeader { descr, shape, fortran_order, .. } = &header;
        // Quotes and escapes in type strings are not written again.
        if descr.contains(['\'', '"', '\\']) {
            return;
        }
        let order = if *fortran_order { "True" } else { "False" };
        let dims: String = shape.iter().map(|dim| format!("{dim},")).collect();
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({dims}), }}");
        let Ok(len) = u16::try_from(dict.len()) else { return };
        let canonical = [b"\x93NUMPY\x01\x00", &len.to_le_bytes()[..], dict.as_bytes()].concat();
        let again = NpyHeader::of_bytes(&canonical, "canonical").expect("a header");
        assert_eq!((&again.descr, &again.shape), (descr, shape));
    });
});
