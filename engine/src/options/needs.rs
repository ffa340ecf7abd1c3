//! What options are for that do nothing here: the hardware or the build of
//! perftest that they need. Stock perftest refuses them without saying so, or
//! takes them and does nothing; its texts stay, and these remarks follow.

use super::getopt::{Getopt, Item};
use super::table::{OptionRow, Section};
use crate::words::Tool;

/// Long names, and what they need.
const NEEDS: &[(&[&str], &str)] = &[
    (
        &[
            "use_cuda",
            "use_cuda_bus_id",
            "use_cuda_dmabuf",
            "use_cuda_pcie_mapping",
            "cuda_mem_type",
            "gpu_touch",
        ],
        "an NVIDIA GPU and a build of perftest with CUDA",
    ),
    (
        &["use_data_direct"],
        "an mlx5 adapter with data direct, an NVIDIA GPU, and a build of perftest with both",
    ),
    (
        &[
            "use_musa",
            "use_musa_bus_id",
            "use_musa_dmabuf",
            "use_musa_pcie_mapping",
        ],
        "a Moore Threads GPU and a build of perftest with MUSA",
    ),
    (
        &["use_rocm", "use_rocm_dmabuf"],
        "an AMD GPU and a build of perftest with ROCm",
    ),
    (
        &["use_neuron", "use_neuron_dmabuf"],
        "an AWS Neuron accelerator and a build of perftest with its library",
    ),
    (
        &["use_hl"],
        "a Habana Gaudi accelerator and a build of perftest with its library",
    ),
    (
        &["use_mlu", "use_mlu_dmabuf"],
        "a Cambricon MLU and a build of perftest with its library",
    ),
    (
        &["use_opencl", "opencl_platform_id"],
        "an OpenCL device and a build of perftest with OpenCL",
    ),
    (
        &["use_ib_dm_dmabuf"],
        "an adapter with memory of its own that is exported as DMA-BUF",
    ),
    (
        &[
            "aes_xts",
            "encrypt_on_tx",
            "sig_before",
            "aes_block_size",
            "data_enc_keys_number",
            "kek_path",
            "credentials_path",
            "data_enc_key_app_path",
        ],
        "an mlx5 adapter with AES-XTS and a build of perftest with mlx5dv",
    ),
    (
        &["log_dci_streams", "log_active_dci_streams"],
        "DC, and so an mlx5 adapter and a build of perftest with mlx5dv",
    ),
    (
        &["use_ooo", "no_enhanced_reorder"],
        "an mlx5 adapter with out-of-order placement and a build of perftest with mlx5dv",
    ),
    (
        &["unsolicited_write"],
        "an Elastic Fabric Adapter and a build of perftest with efadv",
    ),
    (
        &["congest_type"],
        "a HiSilicon adapter (hns) and a build of perftest with hnsdv",
    ),
    (
        &["ph", "tph_mem", "cpu_id"],
        "an adapter with PCIe TLP processing hints and a build of perftest with them",
    ),
    (
        &["sig_offload"],
        "an mlx5 adapter with signature offload, and no released perftest has it",
    ),
    (
        &["numa_node", "disable_numa"],
        "a build of perftest with libnuma; --pin_cores says where to run",
    ),
    (&["use_rss"], "the raw Ethernet tests"),
];

/// Options that do nothing without another one: any of these.
const GO_WITH: &[(&str, &[&str])] = &[
    ("MGID", &["mcg"]),
    ("mmap-offset", &["mmap"]),
    ("out_json_file", &["out_json"]),
    ("data_validation_debug", &["data_validation"]),
    ("retry_count", &["rdma_cm", "comm_rdma_cm"]),
    ("report-both", &["bidirectional"]),
    ("margin", &["duration"]),
    ("rate_units", &["rate_limit"]),
];

/// Options whose help is for some tools only, and which the others heed, or
/// refuse by a rule.
const HEEDED_BY_ALL: &[&str] = &[
    "size",
    "tx-depth",
    "rx-depth",
    "qp",
    "cq-mod",
    "reversed",
    "rate_limit",
    "rate_limit_type",
    "rate_units",
    "burst_size",
];

/// Remarks about the options of a command line, for standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Why options are refused: to be shown when the command line is.
    pub refused: Vec<String>,
    /// Which options have no effect: to be shown when there is a run.
    pub without_effect: Vec<String>,
}

/// Looks through a command line.
pub fn remarks(tool: Tool, args: &[String]) -> Remarks {
    let mut remarks = Remarks::default();
    let mut given = Vec::new();
    for item in Getopt::new(tool.name(), args) {
        match item {
            Ok(Item::Option(row, _)) => {
                if let Some(need) = need(row.long) {
                    remarks.refused.push(needs(row.long, need));
                } else if row.section == Section::RawEthernet {
                    let why = ", as in stock perftest: it is for the raw Ethernet tests";
                    remarks.without_effect.push(no_effect(row, why));
                } else if !row.tools.contains(tool) && !HEEDED_BY_ALL.contains(&row.long) {
                    remarks.without_effect.push(no_effect(row, " on this tool"));
                } else {
                    given.push(row);
                }
            }
            Ok(Item::Word(_)) => {}
            // Unknown, as in the builds of stock perftest without its library.
            Err(error) => {
                let name = error.0.split_once("'--").map(|(_, rest)| {
                    let end = rest.find(['=', '\'']).unwrap_or(rest.len());
                    &rest[..end]
                });
                if let Some((name, need)) = name.and_then(|name| Some((name, need(name)?))) {
                    remarks.refused.push(needs(name, need));
                }
            }
        }
    }
    for row in &given {
        let others = GO_WITH.iter().find(|(long, _)| *long == row.long);
        let others = others.map_or(&[][..], |(_, others)| others);
        if !others.is_empty() && !given.iter().any(|other| others.contains(&other.long)) {
            let why = format!(" without --{}", others.join(" or --"));
            remarks.without_effect.push(no_effect(row, &why));
        }
    }
    remarks
}

fn need(long: &str) -> Option<&'static str> {
    NEEDS
        .iter()
        .find(|(names, _)| names.contains(&long))
        .map(|(_, need)| *need)
}

fn needs(long: &str, need: &str) -> String {
    format!("--{long} needs {need}, which is not supported here: leave it out")
}

fn no_effect(row: &OptionRow, why: &str) -> String {
    let letter = row
        .short
        .map_or_else(String::new, |letter| format!("-{letter}, "));
    format!("{letter}--{} has no effect{why}", row.long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::table;
    use crate::options::tool::WRITE_BW;

    fn of(line: &str) -> Remarks {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        remarks(WRITE_BW, &args)
    }

    #[test]
    fn every_option_for_special_hardware_says_which() {
        for row in table::rows().filter(|row| row.section == Section::Hardware) {
            // -L has a text of stock that says it.
            assert!(
                need(row.long).is_some() || row.long == "hop_limit",
                "--{}",
                row.long
            );
        }
        let known = |long: &str| table::rows().any(|row| row.long == long);
        for (long, others) in GO_WITH {
            assert!(
                known(long) && others.iter().all(|other| known(other)),
                "--{long}"
            );
        }
        assert!(HEEDED_BY_ALL.iter().all(|long| known(long)));
        for (names, _) in NEEDS {
            for name in *names {
                let explained =
                    table::rows().any(|row| row.long == *name && row.section != Section::Hardware);
                assert!(!explained, "--{name} works, or is listed elsewhere");
            }
        }
    }

    #[test]
    fn remarks_name_the_option_and_what_it_needs() {
        let cuda = of("--use_cuda=0 -n 5 host");
        assert_eq!(cuda.refused.len(), 1);
        assert!(cuda.refused[0].starts_with("--use_cuda needs an NVIDIA GPU"));
        // Known to no build without its library.
        for line in ["--numa_node=0", "--numa_node 0"] {
            let numa = of(line);
            assert!(numa.refused[0].contains("libnuma"), "{numa:?}");
        }
        let raw = of("-Z --tcp");
        assert!(raw.refused.is_empty());
        assert!(raw.without_effect[0].starts_with("-Z, --server has no effect"));
        assert!(raw.without_effect[1].starts_with("--tcp has no effect"));
        for (line, text) in [
            (
                "--out_json_file=x",
                "--out_json_file has no effect without --out_json",
            ),
            ("-f 1", "-f, --margin has no effect without --duration"),
            (
                "--retry_count=1",
                "--retry_count has no effect without --rdma_cm or --comm_rdma_cm",
            ),
            (
                "--latency_gap=0",
                "--latency_gap has no effect on this tool",
            ),
        ] {
            assert_eq!(of(line).without_effect, [text]);
        }
        assert_eq!(of("--out_json_file=x --out_json"), Remarks::default());
        assert_eq!(of("--frobnicate -n"), Remarks::default());
        assert_eq!(of("-a -n 5 host"), Remarks::default());
    }
}
