//! The interface of the server's key service to the engine.

use std::sync::Arc;
use zeroize::Zeroizing;

/// Provides keys. Each key has an ID and versions, whose numbers only grow. Calls may block, for
/// example for network I/O.
pub trait KeyService: Send + Sync {
    /// Returns the newest version of a key, or `None` if the key does not exist.
    fn newest_version(&self, id: u32) -> Option<u32>;
    /// Returns the bytes of a version of a key, 16 or more, or `None` if they are not available.
    fn key(&self, id: u32, version: u32) -> Option<Zeroizing<Vec<u8>>>;
}

/// A key service, or none.
#[derive(Clone, Default)]
pub struct KeySource(Option<Arc<dyn KeyService>>);

impl std::fmt::Debug for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeySource({})", if self.0.is_some() { "a service" } else { "none" })
    }
}

impl KeySource {
    /// Uses `service`.
    pub fn new(service: Arc<dyn KeyService>) -> Self {
        Self(Some(service))
    }

    /// Returns whether there is a service.
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// See [`KeyService::newest_version`].
    pub fn newest_version(&self, id: u32) -> Option<u32> {
        self.0.as_ref()?.newest_version(id)
    }

    /// See [`KeyService::key`].
    pub fn key(&self, id: u32, version: u32) -> Option<Zeroizing<Vec<u8>>> {
        self.0.as_ref()?.key(id, version)
    }
}
