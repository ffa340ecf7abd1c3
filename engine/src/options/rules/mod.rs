//! Rules between options, in the order stock perftest applies them.
//!
//! Each rule may change the settings, add messages, or refuse. The order
//! matters: a rule sees what the ones before it left.

mod combine;
mod finish;
mod hardware;
mod queues;
mod rate;
mod time;
mod validation;

use super::message::{EXIT_FAILURE, Messages, Outcome, Resolved};
use super::refusal::Refusal;
use super::settings::Settings;
use super::unsupported;

type Rule = fn(&mut Settings, &mut Messages) -> Result<(), Refusal>;

const RULES: &[Rule] = &[
    queues::depths,
    queues::large_messages,
    queues::cap_moderation,
    combine::sizes,
    combine::shared_receive_queue,
    combine::connectionless,
    validation::data_validation,
    hardware::extended_transports,
    combine::shared_queue_depth,
    combine::dual_port,
    queues::post_list,
    queues::receive_post_list,
    time::duration,
    time::cpu_utilization,
    combine::rdma_cm,
    combine::multicast,
    time::receiver_peak,
    time::infinite,
    hardware::dynamically_connected,
    hardware::encryption,
    hardware::scalable_datagram,
    combine::events_with_write,
    rate::limiter,
    combine::output,
    combine::latency_gap,
    time::default_margin,
    combine::null_memory_region,
    combine::per_port_report,
    queues::odd_receive_depth,
    time::many_iterations,
    time::margin_fits,
    combine::completion_vector,
    queues::dynamic_polling,
];

/// Applies the rules to what was parsed.
pub(super) fn resolve(mut settings: Settings) -> Resolved {
    let mut messages = Messages::new();
    for rule in RULES {
        if let Err(refusal) = rule(&mut settings, &mut messages) {
            return exit(messages, refusal);
        }
    }
    if let Err(refusal) = unsupported::check(&settings).and_then(|()| finish::own_rules(&settings))
    {
        // What stock perftest would have said before running does not matter
        // to a command that does not run.
        return exit(Messages::new(), refusal);
    }
    if settings.dont_exchange_versions {
        let refusal = Refusal::rule(
            "Current implementation is not compatible with versions older than 5.70\n",
        );
        return exit(messages, refusal);
    }
    Resolved {
        messages,
        outcome: Outcome::Run(Box::new(finish::params(settings))),
    }
}

fn exit(mut messages: Messages, refusal: Refusal) -> Resolved {
    let reason = refusal.show(&mut messages);
    Resolved {
        messages,
        outcome: Outcome::Exit {
            code: EXIT_FAILURE,
            reason,
        },
    }
}

#[cfg(test)]
mod tests;
