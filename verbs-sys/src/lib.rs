//! The vocabulary of RDMA verbs.
