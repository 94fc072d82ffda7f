//! Distribution of bots over the nodes of a database: as even as possible, for each network among the nodes that have it.

use std::collections::BTreeMap;

use hub_macros::FromRow;

use crate::id::NodeId;

/// Number of bots of a network that a living node has, which takes bots of it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[row(table = "nodes")]
pub struct Share {
    /// The node.
    pub node: NodeId,
    /// The network.
    pub network: String,
    /// Its bots.
    pub bots: i64,
}

/// Bots that a node has beyond its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surplus {
    /// The node that gets them.
    pub to: NodeId,
    /// Their network.
    pub network: String,
    /// Number of bots that it is to hand over.
    pub bots: usize,
}

/// The bots that a node has beyond its share of each network, and the nodes that lack some of them. `shares` are those of
/// all living nodes.
pub(crate) fn surplus(node: NodeId, shares: &[Share]) -> Vec<Surplus> {
    let mut networks: BTreeMap<&str, Vec<(NodeId, usize)>> = BTreeMap::new();
    for share in shares {
        let bots = usize::try_from(share.bots).unwrap_or(0);
        networks.entry(&share.network).or_default().push((share.node, bots));
    }
    let of_network = |(network, counts): (&str, Vec<_>)| {
        let given = surplus_of_network(node, &counts);
        given
            .into_iter()
            .map(|(to, bots)| Surplus { to, network: network.to_owned(), bots })
            .collect::<Vec<_>>()
    };
    networks.into_iter().flat_map(of_network).collect()
}

fn surplus_of_network(node: NodeId, counts: &[(NodeId, usize)]) -> Vec<(NodeId, usize)> {
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let own = counts.iter().find(|(of, _)| *of == node).map_or(0, |(_, count)| *count);
    let nodes = counts.len().max(1);
    let (mut left, share) = (own.saturating_sub(all.div_ceil(nodes)), all / nodes);
    let lacking = counts.iter().filter(|(of, _)| *of != node).map(|(of, count)| {
        let moved = share.saturating_sub(*count).min(left);
        left -= moved;
        (*of, moved)
    });
    lacking.filter(|(_, moved)| *moved > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_hands_over_what_is_beyond_its_share() {
        let of = |own: u128, counts: &[usize]| -> Vec<(u128, usize)> {
            let counts: Vec<_> = (0..).map(NodeId::from_u128).zip(counts.iter().copied()).collect();
            let given = surplus_of_network(NodeId::from_u128(own), &counts).into_iter();
            given.map(|(to, moved)| (to.as_u128(), moved)).collect()
        };
        assert_eq!(of(0, &[10, 0]), [(1, 5)]);
        assert_eq!(of(1, &[10, 0]), []);
        assert_eq!(of(0, &[9, 0, 0]), [(1, 3), (2, 3)]);
        assert_eq!(of(0, &[7, 5, 0]), [(2, 3)]);
        assert_eq!(of(1, &[7, 5, 0]), [(2, 1)]);
        // As even as it can be.
        assert_eq!(of(0, &[2, 1, 1]), []);
        assert_eq!(of(0, &[1, 0]), []);
        assert_eq!(of(0, &[4]), []);
        assert_eq!(of(0, &[]), []);
    }

    #[test]
    fn shares_are_those_of_the_nodes_that_have_a_network() {
        let share = |node, network: &str, bots| Share {
            node: NodeId::from_u128(node),
            network: network.into(),
            bots,
        };
        let shares =
            [share(1, "a", 4), share(1, "b", 3), share(2, "a", 0), share(3, "b", 1), share(3, "c", 9)];
        let of = |node| surplus(NodeId::from_u128(node), &shares);
        let moved =
            |to, network: &str, bots| Surplus { to: NodeId::from_u128(to), network: network.into(), bots };
        assert_eq!(of(1), [moved(2, "a", 2), moved(3, "b", 1)]);
        assert_eq!(of(2), []);
        assert_eq!(of(3), [], "no other node has the network");
    }
}
