//! The error of a mapped file that became shorter, or whose disk failed, while it was read.
//!
//! The system tells by SIGBUS, in the middle of any instruction: the handler may only make system calls. It finds the name of
//! the file in the list of mappings, says it, and ends the process with the code of an error.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use gnarl_common::{Error, Kind, Result};

/// Bytes of the list of mappings that are looked at together; a line is shorter.
const BUFFER: usize = 1 << 13;

/// Handles SIGBUS from now on.
///
/// # Errors
/// If the system does not let this process handle signals.
pub fn start() -> Result<()> {
    let failed = |e| Error::new(Kind::Io, format!("cannot handle signals: {e}"));
    let handle = |info: &libc::siginfo_t| {
        // SAFETY: the kernel fills the address of SIGBUS.
        let address = unsafe { info.si_addr() } as usize;
        let mut line = [0; BUFFER];
        if let Some(name) = file_at(address, &mut line) {
            // Another thread at the same file waits for the end.
            while SAID.swap(true, Ordering::Relaxed) {
                // SAFETY: waits for signals.
                unsafe { libc::pause() };
            }
            for text in [
                b"error: ",
                name,
                b": the file became shorter, or its disk failed, while it was read\n",
                b"hint: replace files by renaming new ones over them, and start again (--resume)\n",
            ] {
                say(text);
            }
            // SAFETY: ends the process without running anything of it, which is in an unknown state.
            unsafe { libc::_exit(1) };
        }
        // An address of no file: the same instruction ends the process, as it would have without a handler.
        // SAFETY: a system call.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    };
    // The handler before this one, of the standard library, takes itself away and lets a second thread end the process.
    // SAFETY: nobody else handles this signal in a command.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    // SAFETY: the handler makes system calls only: it neither allocates, nor locks, nor panics.
    unsafe { signal_hook_registry::register_sigaction(libc::SIGBUS, handle) }.map_err(failed)?;
    Ok(())
}

/// True once a thread says the error.
static SAID: AtomicBool = AtomicBool::new(false);

fn say(text: &[u8]) {
    // SAFETY: the bytes are there for the call; a failed write cannot be told anywhere.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

/// The name of the file that is mapped at an address, by the list of mappings, of which `buffer` holds a part.
fn file_at(address: usize, buffer: &mut [u8; BUFFER]) -> Option<&[u8]> {
    const MAPPINGS: &CStr = c"/proc/self/maps";
    // SAFETY: the name is a string of C.
    let file = unsafe { libc::open(MAPPINGS.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut filled = 0;
    let found = loop {
        let room = &mut buffer[filled..];
        // SAFETY: the room is there for the call.
        let read = unsafe { libc::read(file, room.as_mut_ptr().cast(), room.len()) };
        if read <= 0 {
            break None;
        }
        filled += read as usize;
        let mut start = 0;
        let mut found = None;
        while let Some(length) = buffer[start..filled].iter().position(|&byte| byte == b'\n') {
            if let Some(name) = name_at(&buffer[start..start + length], address) {
                found = Some(start + name..start + length);
                break;
            }
            start += length + 1;
        }
        if found.is_some() {
            break found;
        }
        if start == 0 && filled == buffer.len() {
            // A line of this length names no file.
            start = filled;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
    };
    // SAFETY: the descriptor was opened above.
    unsafe { libc::close(file) };
    found.map(|range| &buffer[range])
}

/// The place of the name in a line of the list of mappings (`from-to mode offset device inode name`), if the address is between.
fn name_at(line: &[u8], address: usize) -> Option<usize> {
    let dash = line.iter().position(|&byte| byte == b'-')?;
    let space = line.iter().position(|&byte| byte == b' ')?;
    let is_inside =
        (hexadecimal(&line[..dash])?..hexadecimal(line.get(dash + 1..space)?)?).contains(&address);
    let name = line.iter().position(|&byte| byte == b'/')?;
    is_inside.then_some(name)
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |number, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        number.checked_mul(16)?.checked_add(digit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_addresses() {
        let line = b"7f00a000-7f00b000 r--p 00000000 fe:00 1234    /data/my graph/x.npy";
        let name = name_at(line, 0x7f00_a010).unwrap();
        assert_eq!(&line[name..], b"/data/my graph/x.npy");
        assert_eq!(name_at(line, 0x7f00_b000), None);
        assert_eq!(name_at(b"7f00a000-7f00b000 rw-p 00000000 00:00 0 ", 0x7f00_a010), None);
        for odd in [&b""[..], b"-", b"x-y /", b"10-", b"ffffffffffffffffff-1 /a"] {
            assert_eq!(name_at(odd, 1), None);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_mapped_file_is_found_in_the_list() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &[1; 5000]).unwrap();
        let bytes = gnarl_common::Buf::map(file.path()).unwrap();
        let mut buffer = [0; BUFFER];
        let found = file_at(bytes.as_ptr() as usize + 4100, &mut buffer).unwrap();
        assert_eq!(found, file.path().to_str().unwrap().as_bytes());
        assert_eq!(file_at(8, &mut buffer), None);
    }
}
