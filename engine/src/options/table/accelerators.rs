//! Memory of accelerators. A stock build without one refuses its options
//! with these texts, and so do we.

use super::row::{OptionRow, Section};
use crate::options::refusal::Refusal;

const fn memory(long: &'static str, value: Option<&'static str>) -> OptionRow {
    OptionRow::refuse(Section::Hardware, long, value, || {
        Refusal::option(" Unsupported memory type\n").on_stdout()
    })
}

/// In the order of stock perftest.
pub(super) const ROWS: &[OptionRow] = &[
    memory("use_cuda", Some("<device>")),
    memory("use_cuda_bus_id", Some("<address>")),
    memory("use_cuda_dmabuf", None),
    OptionRow::flag(Section::Hardware, "use_cuda_pcie_mapping", |s| {
        s.pcie_mapping = Some(" CUDA PCIe mapping requires DMA-BUF\n");
    }),
    OptionRow::refuse(Section::Hardware, "use_data_direct", None, || {
        Refusal::option(" Data Direct is not supported\n").on_stdout()
    }),
    OptionRow::refuse(Section::Hardware, "cuda_mem_type", Some("<type>"), || {
        Refusal::option("CUDA MEM TYPE cannot be used without CUDA\n")
    }),
    memory("use_musa", Some("<device>")),
    memory("use_musa_bus_id", Some("<address>")),
    memory("use_musa_dmabuf", None),
    OptionRow::flag(Section::Hardware, "use_musa_pcie_mapping", |s| {
        s.pcie_mapping
            .get_or_insert(" MUSA PCIe mapping requires DMA-BUF\n");
    }),
    memory("use_rocm", Some("<device>")),
    memory("use_rocm_dmabuf", None),
    memory("use_neuron", Some("<core>")),
    memory("use_neuron_dmabuf", None),
    memory("use_hl", Some("<address>")),
    memory("use_mlu", Some("<device>")),
    memory("use_mlu_dmabuf", None),
    memory("use_opencl", Some("<device>")),
    OptionRow::refuse(
        Section::Hardware,
        "opencl_platform_id",
        Some("<platform>"),
        || Refusal::option("OpenCL platform ID cannot be used without OpenCL device\n"),
    ),
    memory("use_ib_dm_dmabuf", Some("<dev>")),
    OptionRow::refuse(Section::Hardware, "gpu_touch", Some("<how>"), || {
        Refusal::option("GPU touch is not supported\n")
    }),
];
