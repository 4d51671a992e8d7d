//! Cache on disk: compiled kernels, keyed by a hash of all inputs of the compilation, and plugin libraries that are known to
//! load.

use std::fs::File;
use std::path::PathBuf;
use tracing::debug;

/// Returns the cache folder: `GALAMOST_CACHE`, or `galamost` in the user's cache folder. Returns `None` if it cannot be
/// created.
pub fn folder() -> Option<PathBuf> {
    let base = std::env::var_os("GALAMOST_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(home.join("galamost"))
    })?;
    std::fs::create_dir_all(&base).ok()?;
    Some(base)
}

/// Returns the key of a result with these inputs.
pub fn key(parts: &[&str]) -> String {
    let mut h = blake3::Hasher::new();
    for p in parts {
        h.update(&(p.len() as u64).to_le_bytes());
        h.update(p.as_bytes());
    }
    h.finalize().to_hex()[..32].into()
}

/// Returns the bytes stored under this key.
pub fn get(key: &str, ending: &str) -> Option<Vec<u8>> {
    let bytes = std::fs::read(folder()?.join(format!("{key}.{ending}"))).ok()?;
    // the last 8 bytes hold the length, so a file truncated by a crash is ignored
    let (body, length) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
    (u64::from_le_bytes(length.try_into().ok()?) == body.len() as u64).then(|| body.to_vec())
}

/// Stores bytes under this key. An unwritable cache only costs time.
pub fn put(key: &str, ending: &str, bytes: &[u8]) {
    let Some(folder) = folder() else { return };
    let temporary = folder.join(format!("{key}.{}.part", unique()));
    let mut all = bytes.to_vec();
    all.extend((bytes.len() as u64).to_le_bytes());
    let stored = std::fs::write(&temporary, all)
        .and_then(|()| std::fs::rename(&temporary, folder.join(format!("{key}.{ending}"))));
    if let Err(e) = stored {
        debug!("the cache cannot be written: {e}");
    }
}

/// Waits until no other thread or process holds the lock of this name, and holds it until the file is dropped. Returns `None`
/// if there is no cache, or its file system has no locks.
pub fn lock(name: &str) -> Option<File> {
    let file = File::options().create(true).truncate(false).write(true).open(folder()?.join(name)).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Returns a string that is unique among all threads and processes of this machine, for names of temporary files.
pub fn unique() -> String {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}
