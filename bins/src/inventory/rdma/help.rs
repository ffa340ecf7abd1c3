//! The help texts. `{}` is the name that the program was called by.

use super::Step;
use super::session::Session;

pub(super) const GENERAL: &str = "\
Usage: {} [ OPTIONS ] OBJECT { COMMAND | help }
       {} [ -f[orce] ] -b[atch] filename
where  OBJECT := { dev | link | resource | system | statistic | help }
       OPTIONS := { -V[ersion] | -d[etails] | -j[son] | -p[retty] -r[aw]}
";

const DEV: &str = "\
Usage: {} dev show [DEV]
       {} dev set [DEV] name DEVNAME
       {} dev set [DEV] netns NSNAME
       {} dev set [DEV] adaptive-moderation [on|off]
";

const LINK: &str = "\
Usage: {} link show [DEV/PORT_INDEX]
Usage: {} link add NAME type TYPE netdev NETDEV
Usage: {} link delete NAME
";

const RESOURCE: &str = "\
Usage: {} resource
          resource show [DEV]
          resource show [qp|cm_id|pd|mr|cq|ctx|srq]
          resource show qp link [DEV/PORT]
          resource show qp link [DEV/PORT] [FILTER-NAME FILTER-VALUE]
          resource show cm_id link [DEV/PORT]
          resource show cm_id link [DEV/PORT] [FILTER-NAME FILTER-VALUE]
          resource show cq link [DEV/PORT]
          resource show cq link [DEV/PORT] [FILTER-NAME FILTER-VALUE]
          resource show pd dev [DEV]
          resource show pd dev [DEV] [FILTER-NAME FILTER-VALUE]
          resource show mr dev [DEV]
          resource show mr dev [DEV] [FILTER-NAME FILTER-VALUE]
          resource show ctx dev [DEV]
          resource show ctx dev [DEV] [FILTER-NAME FILTER-VALUE]
          resource show srq dev [DEV]
          resource show srq dev [DEV] [FILTER-NAME FILTER-VALUE]
";

const STATISTIC: &str = "\
Usage: {} [ OPTIONS ] statistic { COMMAND | help }
       {} statistic OBJECT show
       {} statistic OBJECT show link [ DEV/PORT_INDEX ] [ FILTER-NAME FILTER-VALUE ]
       {} statistic OBJECT mode
       {} statistic OBJECT set COUNTER_SCOPE [DEV/PORT_INDEX] auto {CRITERIA | off}
       {} statistic OBJECT bind COUNTER_SCOPE [DEV/PORT_INDEX] [OBJECT-ID] [COUNTER-ID]
       {} statistic OBJECT unbind COUNTER_SCOPE [DEV/PORT_INDEX] [COUNTER-ID]
       {} statistic show
       {} statistic show link [ DEV/PORT_INDEX ]
       {} statistic mode [ supported ]
       {} statistic mode [ supported ] link [ DEV/PORT_INDEX ]
       {} statistic set link [ DEV/PORT_INDEX ] optional-counters [ OPTIONAL-COUNTERS ]
       {} statistic unset link [ DEV/PORT_INDEX ] optional-counters
where  OBJECT: = { qp }
       CRITERIA : = { type }
       COUNTER_SCOPE: = { link | dev }
       FILTER_NAME: = { cntn | lqpn | pid }
Examples:
       {} statistic qp show
       {} statistic qp show link mlx5_2/1
       {} statistic qp mode
       {} statistic qp mode link mlx5_0
       {} statistic qp set link mlx5_2/1 auto type on
       {} statistic qp set link mlx5_2/1 auto off
       {} statistic qp bind link mlx5_2/1 lqpn 178
       {} statistic qp bind link mlx5_2/1 lqpn 178 cntn 4
       {} statistic qp unbind link mlx5_2/1 cntn 4
       {} statistic qp unbind link mlx5_2/1 cntn 4 lqpn 178
       {} statistic show
       {} statistic show link mlx5_2/1
       {} statistic mode
       {} statistic mode link mlx5_2/1
       {} statistic mode supported
       {} statistic mode supported link mlx5_2/1
       {} statistic set link mlx5_2/1 optional-counters cc_rx_ce_pkts,cc_rx_cnp_pkts
       {} statistic unset link mlx5_2/1 optional-counters
";

const SYSTEM: &str = "\
Usage: {} system show [ netns ]
       {} system set netns { shared | exclusive }
";

const SYSTEM_SET: &str = "\
Usage: {} system set [PARAM] value
            system set netns { shared | exclusive }
";

pub(super) fn general(session: &mut Session<'_>) -> Step {
    session.show_help(GENERAL)
}

pub(super) fn dev(session: &mut Session<'_>) -> Step {
    session.show_help(DEV)
}

pub(super) fn link(session: &mut Session<'_>) -> Step {
    session.show_help(LINK)
}

pub(super) fn resource(session: &mut Session<'_>) -> Step {
    session.show_help(RESOURCE)
}

pub(super) fn statistic(session: &mut Session<'_>) -> Step {
    session.show_help(STATISTIC)
}

pub(super) fn system(session: &mut Session<'_>) -> Step {
    session.show_help(SYSTEM)
}

pub(super) fn system_set(session: &mut Session<'_>) -> Step {
    session.show_help(SYSTEM_SET)
}
