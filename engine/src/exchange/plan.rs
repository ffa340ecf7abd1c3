//! The sequence of the dialogue after the negotiation, per tool. It is data:
//! what follows can be read, counted and compared without running anything.

use super::step::Stage;
use super::words::{Ending, Method, Tool, Verb};

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
    /// The QPs are connected by the connection manager (`-R`), before this sequence.
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
    fn exchanges_reports(&self) -> bool {
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
