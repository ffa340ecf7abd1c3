//! The kernel's structures, byte for byte, as its `include/uapi/rdma/*.h` have
//! them. Sizes are asserted at compile time; that none has hidden padding is
//! what `IntoBytes` asserts.
//!
//! - [`user_verbs`]: commands of `/dev/infiniband/uverbsN` (`ib_user_verbs.h`)
//! - [`ioctl`]: the attribute form of them (`rdma_user_ioctl_cmds.h`,
//!   `ib_user_ioctl_cmds.h`, `ib_user_ioctl_verbs.h`)
//! - [`ucma`]: commands of `/dev/infiniband/rdma_cm` (`rdma_user_cm.h`)
//! - [`rxe`], [`siw`]: queues and answers of the two software drivers
//!   (`rdma_user_rxe.h`, `siw-abi.h`)

/// Declares structures that are exchanged with the kernel, each with its size.
macro_rules! kernel_structs {
    ($($(#[$doc:meta])* $name:ident($size:literal) { $($(#[$fdoc:meta])* $field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(C)]
        pub(crate) struct $name { $($(#[$fdoc])* pub(crate) $field: $kind),* }
        const _: () = assert!(size_of::<$name>() == $size);
    )*};
}

pub(crate) mod ioctl;
pub(crate) mod rxe;
pub(crate) mod siw;
pub(crate) mod ucma;
pub(crate) mod user_verbs;
