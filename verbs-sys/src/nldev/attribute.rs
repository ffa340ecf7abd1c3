//! The attributes of `NETLINK_RDMA` by number and name
//! (`enum rdma_nldev_attr` in `rdma/rdma_netlink.h`).

use std::fmt;

/// An attribute: its number on the wire and its name in the kernel's header,
/// without `RDMA_NLDEV_ATTR_`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Number on the wire.
    pub number: u16,
    /// Name in the kernel's header.
    pub name: &'static str,
}

impl fmt::Debug for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.number)
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

macro_rules! attributes {
    ($($name:ident = $number:literal),* $(,)?) => {
        $(
            #[doc = concat!("`RDMA_NLDEV_ATTR_", stringify!($name), "`.")]
            pub const $name: Attribute = Attribute { number: $number, name: stringify!($name) };
        )*

        /// The name of the attribute with this number, if this crate knows it.
        #[must_use]
        pub fn name_of(number: u16) -> Option<&'static str> {
            match number {
                $($number => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

attributes! {
    DEV_INDEX = 1,
    DEV_NAME = 2,
    PORT_INDEX = 3,
    CAP_FLAGS = 4,
    FW_VERSION = 5,
    NODE_GUID = 6,
    SYS_IMAGE_GUID = 7,
    SUBNET_PREFIX = 8,
    LID = 9,
    SM_LID = 10,
    LMC = 11,
    PORT_STATE = 12,
    PORT_PHYS_STATE = 13,
    DEV_NODE_TYPE = 14,
    RES_SUMMARY = 15,
    RES_SUMMARY_ENTRY = 16,
    RES_SUMMARY_ENTRY_NAME = 17,
    RES_SUMMARY_ENTRY_CURR = 18,
    RES_QP = 19,
    RES_QP_ENTRY = 20,
    RES_LQPN = 21,
    RES_RQPN = 22,
    RES_RQ_PSN = 23,
    RES_SQ_PSN = 24,
    RES_PATH_MIG_STATE = 25,
    RES_TYPE = 26,
    RES_STATE = 27,
    RES_PID = 28,
    RES_KERN_NAME = 29,
    RES_CM_ID = 30,
    RES_CM_ID_ENTRY = 31,
    RES_PS = 32,
    RES_SRC_ADDR = 33,
    RES_DST_ADDR = 34,
    RES_CQ = 35,
    RES_CQ_ENTRY = 36,
    RES_CQE = 37,
    RES_USECNT = 38,
    RES_POLL_CTX = 39,
    RES_MR = 40,
    RES_MR_ENTRY = 41,
    RES_RKEY = 42,
    RES_LKEY = 43,
    RES_IOVA = 44,
    RES_MRLEN = 45,
    RES_PD = 46,
    RES_PD_ENTRY = 47,
    RES_LOCAL_DMA_LKEY = 48,
    RES_UNSAFE_GLOBAL_RKEY = 49,
    NDEV_INDEX = 50,
    NDEV_NAME = 51,
    DRIVER = 52,
    DRIVER_ENTRY = 53,
    DRIVER_STRING = 54,
    DRIVER_PRINT_TYPE = 55,
    DRIVER_S32 = 56,
    DRIVER_U32 = 57,
    DRIVER_S64 = 58,
    DRIVER_U64 = 59,
    RES_PDN = 60,
    RES_CQN = 61,
    RES_MRN = 62,
    RES_CM_IDN = 63,
    RES_CTXN = 64,
    LINK_TYPE = 65,
    SYS_NETNS_MODE = 66,
    DEV_PROTOCOL = 67,
    NET_NS_FD = 68,
    CHARDEV_TYPE = 69,
    CHARDEV_NAME = 70,
    CHARDEV_ABI = 71,
    CHARDEV = 72,
    UVERBS_DRIVER_ID = 73,
    STAT_MODE = 74,
    STAT_RES = 75,
    STAT_AUTO_MODE_MASK = 76,
    STAT_COUNTER = 77,
    STAT_COUNTER_ENTRY = 78,
    STAT_COUNTER_ID = 79,
    STAT_HWCOUNTERS = 80,
    STAT_HWCOUNTER_ENTRY = 81,
    STAT_HWCOUNTER_ENTRY_NAME = 82,
    STAT_HWCOUNTER_ENTRY_VALUE = 83,
    DEV_DIM = 84,
    RES_RAW = 85,
    RES_CTX = 86,
    RES_CTX_ENTRY = 87,
    RES_SRQ = 88,
    RES_SRQ_ENTRY = 89,
    RES_SRQN = 90,
    MIN_RANGE = 91,
    MAX_RANGE = 92,
    SYS_COPY_ON_FORK = 93,
    STAT_HWCOUNTER_INDEX = 94,
    STAT_HWCOUNTER_DYNAMIC = 95,
    SYS_PRIVILEGED_QKEY_MODE = 96,
}
