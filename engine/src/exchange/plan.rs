//! The sequence of the dialogue after the negotiation, per tool. It is data:
//! what follows can be read, counted and compared without running anything.

use super::step::Stage;
use crate::words::{Ending, Method, Tool, Verb};

/// What decides the sequence. Both ends must have the same:
/// the sequence does not depend on the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanInput {
    /// The tool.
    pub tool: Tool,
    /// One size, all sizes, endless.
    pub method: Method,
    /// How many sizes [`Method::All`] has (23; fewer for UD).
    pub sizes: u32,
    /// Iterations or duration.
    pub ending: Ending,
    /// Traffic both ways (`-b`).
    pub duplex: bool,
    /// `--data_validation`.
    pub data_validation: bool,
    /// The QPs are connected by the connection manager (`-R`).
    pub cm_connected: bool,
}

/// One step of the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Exchange the record of every QP: [`super::Session::exchange_keys`].
    /// After [`Stage::Keys`] the types of the GIDs are compared, unless the
    /// connection manager connects.
    Keys(Stage),
    /// Take the QPs to RTR and RTS.
    Connect,
    /// Connect the QPs by the connection manager, one after the other.
    ConnectByManager,
    /// Synchronise with QP 0's record: [`super::Session::sync`].
    Sync(Stage),
    /// The traffic. A passive end serves without doing anything, and the next
    /// step tells it of the end.
    Run(Scope),
    /// Exchange reports: [`super::Session::exchange_reports`].
    Reports,
    /// Closing handshake: [`super::Session::close`].
    Close,
}

/// Which sizes a run covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The only size, or all of them one after the other without a word in between.
    Whole,
    /// The size with this index among all of them.
    Size(u32),
}

impl PlanInput {
    fn one_sided(&self) -> bool {
        !self.tool.verb.has_receive_completion()
    }

    /// Whether duplex ends add up each other's numbers. Timed runs of verbs
    /// with receive completions count both directions themselves.
    pub(crate) fn exchanges_reports(&self) -> bool {
        self.duplex && (self.one_sided() || self.ending == Ending::Iterations)
    }

    fn runs(&self) -> Vec<Scope> {
        match self.method {
            Method::All => (0..self.sizes).map(Scope::Size).collect(),
            Method::Regular | Method::Infinite => vec![Scope::Whole],
        }
    }
}

/// The sequence of actions, the same for both ends.
///
/// An endless run has its closing steps here too: they are taken when the
/// client's user stops it (only one-way WRITE and READ do, from 6.24 on).
pub fn plan(input: &PlanInput) -> Vec<Action> {
    let mut actions = if input.tool.is_send() {
        send_opening()
    } else if input.tool.is_bandwidth() {
        vec![
            Action::Keys(Stage::Keys),
            Action::Connect,
            Action::Keys(Stage::KeysAgain),
            Action::Sync(Stage::Ready),
        ]
    } else {
        vec![
            Action::Sync(Stage::BeforeKeys),
            Action::Keys(Stage::Keys),
            Action::Connect,
            Action::Keys(Stage::KeysAgain),
            Action::Sync(Stage::Ready),
        ]
    };
    if input.cm_connected {
        actions.retain(|action| *action != Action::Connect);
        actions.splice(
            0..0,
            [
                Action::Sync(Stage::BeforeManager),
                Action::ConnectByManager,
                Action::Sync(Stage::AfterManager),
            ],
        );
    }
    actions.extend(if input.tool.is_bandwidth() {
        bandwidth_runs(input)
    } else {
        latency_runs(input)
    });
    // ib_write_lat simply ends.
    if input.tool.is_bandwidth() || !input.tool.is_write() {
        actions.push(Action::Close);
    }
    actions
}

fn send_opening() -> Vec<Action> {
    vec![
        Action::Keys(Stage::Keys),
        Action::Connect,
        Action::Sync(Stage::Connected),
        Action::Keys(Stage::KeysAgain),
    ]
}

fn bandwidth_runs(input: &PlanInput) -> Vec<Action> {
    if input.one_sided() && !input.duplex {
        // One word for all sizes, then the last size's report.
        return vec![
            Action::Run(Scope::Whole),
            Action::Sync(Stage::RunEnd),
            Action::Reports,
        ];
    }
    if input.method == Method::Infinite {
        let mut actions = vec![Action::Run(Scope::Whole)];
        if !input.one_sided() {
            actions.insert(0, Action::Sync(Stage::SizeStart));
        }
        return actions;
    }
    let mut actions = Vec::new();
    for scope in input.runs() {
        actions.push(Action::Sync(Stage::SizeStart));
        actions.push(Action::Run(scope));
        let all = input.method == Method::All;
        // ib_send_bw reports before it ends a size, the others after.
        if all && !input.tool.is_send() {
            actions.push(Action::Sync(Stage::SizeEnd));
        }
        if input.data_validation && input.duplex {
            actions.push(Action::Sync(Stage::ValidationEnd));
        }
        if input.exchanges_reports() {
            actions.push(Action::Reports);
        }
        if all && input.tool.is_send() {
            actions.push(Action::Sync(Stage::SizeEnd));
        }
    }
    actions
}

fn latency_runs(input: &PlanInput) -> Vec<Action> {
    match input.tool.verb {
        // Memory itself, or the responder, synchronises the ends.
        Verb::Write | Verb::Read | Verb::Atomic => vec![Action::Run(Scope::Whole)],
        Verb::WriteImm | Verb::Send | Verb::SendImm => input
            .runs()
            .into_iter()
            .flat_map(|scope| [Action::Sync(Stage::SizeStart), Action::Run(scope)])
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Measurement;

    fn input(verb: Verb, measurement: Measurement) -> PlanInput {
        PlanInput {
            tool: Tool { verb, measurement },
            method: Method::Regular,
            sizes: 23,
            ending: Ending::Iterations,
            duplex: false,
            data_validation: false,
            cm_connected: false,
        }
    }

    /// Key records one way, and report exchanges, with so many QPs.
    fn counts(input: &PlanInput, qps: usize) -> (usize, usize) {
        let actions = plan(input);
        let keys = actions.iter().map(|action| match action {
            Action::Keys(_) => qps,
            Action::Sync(_) | Action::Close => 1,
            _ => 0,
        });
        let reports = actions.iter().filter(|action| **action == Action::Reports);
        (keys.sum(), reports.count())
    }

    #[test]
    fn tools_exchange_as_many_records_as_stock() {
        use Measurement::{Bandwidth, Latency};
        for (verb, measurement, expected) in [
            (Verb::Write, Bandwidth, (5, 1)),
            (Verb::Read, Bandwidth, (5, 1)),
            (Verb::Atomic, Bandwidth, (5, 1)),
            (Verb::WriteImm, Bandwidth, (5, 0)),
            (Verb::Send, Bandwidth, (5, 0)),
            (Verb::Write, Latency, (4, 0)),
            (Verb::WriteImm, Latency, (5, 0)),
            (Verb::Read, Latency, (5, 0)),
            (Verb::Atomic, Latency, (5, 0)),
            (Verb::Send, Latency, (5, 0)),
        ] {
            assert_eq!(counts(&input(verb, measurement), 1), expected, "{verb:?}");
        }
        // Every QP's record twice.
        assert_eq!(counts(&input(Verb::Write, Bandwidth), 3), (9, 1));
    }

    #[test]
    fn all_sizes_and_both_ways_have_more() {
        let mut both = input(Verb::Write, Measurement::Bandwidth);
        both.duplex = true;
        assert_eq!(counts(&both, 1), (5, 1));
        both.method = Method::All;
        assert_eq!(counts(&both, 1), (50, 23));
        both.duplex = false;
        assert_eq!(counts(&both, 1), (5, 1));

        let mut send = input(Verb::Send, Measurement::Bandwidth);
        send.duplex = true;
        assert_eq!(counts(&send, 1), (5, 1));
        send.ending = Ending::Duration;
        assert_eq!(counts(&send, 1), (5, 0));
    }

    #[test]
    fn ib_send_bw_ends_a_size_after_its_reports_and_the_others_before() {
        let order = |verb| {
            let mut input = input(verb, Measurement::Bandwidth);
            input.duplex = true;
            input.method = Method::All;
            let actions = plan(&input);
            let at = |wanted| actions.iter().position(|action| *action == wanted);
            at(Action::Reports) < at(Action::Sync(Stage::SizeEnd))
        };
        assert!(order(Verb::Send));
        assert!(!order(Verb::Write));
    }

    #[test]
    fn endless_runs_say_little() {
        let mut endless = input(Verb::Write, Measurement::Bandwidth);
        endless.method = Method::Infinite;
        assert_eq!(counts(&endless, 1), (5, 1));
        endless.duplex = true;
        assert_eq!(counts(&endless, 1), (4, 0));
        endless.duplex = false;
        endless.tool.verb = Verb::Send;
        assert_eq!(counts(&endless, 1), (5, 0));
    }

    #[test]
    fn the_connection_manager_connects_before() {
        let mut input = input(Verb::Send, Measurement::Latency);
        assert!(plan(&input).contains(&Action::Connect));
        let with = counts(&input, 1);
        input.cm_connected = true;
        assert!(!plan(&input).contains(&Action::Connect));
        assert_eq!(plan(&input)[1], Action::ConnectByManager);
        assert_eq!(counts(&input, 1), (with.0 + 2, with.1));
    }

    #[test]
    fn validation_both_ways_synchronises_before_it_stops() {
        let mut input = input(Verb::Write, Measurement::Bandwidth);
        input.data_validation = true;
        let stop = Action::Sync(Stage::ValidationEnd);
        assert!(!plan(&input).contains(&stop));
        input.duplex = true;
        assert!(plan(&input).contains(&stop));
    }
}
