//! Room in the cache: the datasets used longest ago are removed.

use bytesize::ByteSize;
use gnarl_common::folders::bytes_in;
use gnarl_common::{Error, Kind, Result, ResultExt};

use super::settings::CacheSettings;
use super::usage;

/// Removes datasets, those used longest ago first, until `bytes` more fit.
///
/// # Errors
/// [`Kind::Limit`] if they do not fit in the empty cache, or in what the datasets in use leave.
pub(super) fn make_room(address: &str, bytes: u64, settings: &CacheSettings) -> Result<()> {
    let size = |bytes: u64| ByteSize::b(bytes).to_string();
    let refused = |message: String| {
        Err(Error::new(Kind::Limit, message).hint(format!(
            "allow more with GNARL_CACHE_BYTES; GNARL_CACHE is {}",
            settings.folder.display()
        )))
    };
    if bytes > settings.bytes {
        return refused(format!(
            "{address}: has {}, and the cache at most {}",
            size(bytes),
            size(settings.bytes)
        ));
    }
    let root = &settings.folder;
    let mut datasets = Vec::new();
    for entry in std::fs::read_dir(root).at(root)? {
        let path = entry.at(root)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Of other folders nothing says that they are ours.
        if path.is_dir() && is_key(&name) {
            datasets.push((usage::last_used(root, &name), name, bytes_in(&path)?));
        }
    }
    datasets.sort();
    let mut taken: u64 = datasets.iter().map(|(_, _, bytes)| bytes).sum();
    for (_, name, freed) in datasets {
        if taken + bytes <= settings.bytes {
            break;
        }
        if usage::remove(root, &name)? {
            tracing::info!("removed {name} from the cache, which was used longest ago");
            taken -= freed;
        }
    }
    if taken + bytes > settings.bytes {
        return refused(format!(
            "{address}: has {}, and datasets in use leave {} of {}",
            size(bytes),
            size(settings.bytes.saturating_sub(taken)),
            size(settings.bytes)
        ));
    }
    Ok(())
}

/// True for names of datasets: they end with a number in 16 digits.
fn is_key(name: &str) -> bool {
    let digits = name.rsplit_once('-').map(|(_, digits)| digits);
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}
