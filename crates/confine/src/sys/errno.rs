//! Groups of `errno` values with the same meaning on different systems.
//!
//! `ENOTSUP` and `EOPNOTSUPP` are one number on Linux and two on macOS. A missing attribute is `ENODATA` on Linux and
//! `ENOATTR` on macOS.

use rustix::io::Errno;

/// Whether the file system does not support the call.
pub(crate) fn is_unsupported(errno: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&errno)
}

/// Whether the file system has no locks.
pub(crate) fn is_unlockable(errno: Errno) -> bool {
    errno == Errno::NOLCK || is_unsupported(errno)
}

/// Whether a file does not have the extended attribute.
pub(crate) fn is_missing_attribute(errno: Errno) -> bool {
    #[cfg(target_vendor = "apple")]
    let missing = Errno::NOATTR;
    #[cfg(target_os = "freebsd")]
    let missing = Errno::NOATTR;
    #[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
    let missing = Errno::NODATA;
    errno == missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallbacks_are_for_what_is_unsupported_under_either_name() {
        for errno in [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL] {
            assert!(is_unsupported(errno) && is_unlockable(errno), "{errno}");
        }
        for errno in [Errno::IO, Errno::NOSPC, Errno::ACCESS, Errno::PERM, Errno::WOULDBLOCK] {
            assert!(!is_unsupported(errno) && !is_unlockable(errno), "{errno}");
        }
        assert!(is_unlockable(Errno::NOLCK) && !is_unsupported(Errno::NOLCK));
        assert!(!is_missing_attribute(Errno::PERM));
    }
}
