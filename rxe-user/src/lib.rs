//! A Soft-RoCE NIC in userspace.
