use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn want(tokens: u64, cost: u64) -> CallEstimate {
    CallEstimate { tokens, cost, ..CallEstimate::default() }
}

fn id(n: usize) -> AgentId {
    AgentId(format!("main/a{n}"))
}

/// A call of this many tokens.
fn charge(reservations: &Reservations, id: &AgentId, tokens: u64, cost: u64) {
    let usage = Usage { input: tokens, ..Usage::default() };
    reservations.charge(id, &usage, Some(Cost(cost)), MissingCost::Unknown);
}

/// A call is over, as the engine books it.
fn settle(reservations: &Reservations, id: &AgentId, tokens: u64, cost: u64) {
    charge(reservations, id, tokens, cost);
    reservations.release(id);
}

#[test]
fn limits_of_one_and_of_all_hold() {
    let reservations = Reservations::default();
    assert_eq!(reservations.reserve(&id(1), want(100, 100)), ReservationResult::Go, "nothing is limited");
    settle(&reservations, &id(1), 80, 90);
    reservations.limit(&id(1), AgentLimits { tokens: Some(80), ..AgentLimits::default() });
    assert!(
        matches!(reservations.reserve(&id(1), want(1, 1)), ReservationResult::Over(why) if why.contains("80 tokens"))
    );
    reservations.limit(&id(1), AgentLimits { tokens: Some(81), ..AgentLimits::default() });
    assert_eq!(
        reservations.reserve(&id(1), want(100, 1)),
        ReservationResult::Go,
        "a raised limit lets it go on"
    );
    reservations.release(&id(1));
    reservations.limit_tree(Some(200), None);
    assert_eq!(reservations.reserve(&id(2), want(100, 0)), ReservationResult::Go);
    let answer = reservations.reserve(&id(3), want(100, 0));
    assert!(matches!(answer, ReservationResult::Wait(_)), "another agent has reserved the rest: {answer:?}");
    settle(&reservations, &id(2), 100, 0);
    assert_eq!(
        reservations.reserve(&id(3), want(100, 0)),
        ReservationResult::Go,
        "alone, even when it may not be enough"
    );
    settle(&reservations, &id(3), 30, 0);
    assert!(matches!(reservations.reserve(&id(4), want(1, 0)), ReservationResult::Over(_)));
    assert!(reservations.empty().is_some());
    reservations.limit_tree(None, None);
    reservations.limit_money(Some(Cost(0)));
    assert!(
        matches!(reservations.reserve(&id(4), want(1, 0)), ReservationResult::Over(_)),
        "a budget of zero is reached at once"
    );
}

/// Once the first request of an agent did not fit, no other agent is started with as little.
#[test]
fn no_agent_is_started_with_too_little_for_its_first_request() {
    let large =
        CallEstimate { tokens: 60, cost: 60, input_tokens: 50, input_cost: 50, ..CallEstimate::default() };
    let limits: [fn(&Reservations, u64); 3] = [
        |r, most| r.limit_tree(Some(most), None),
        |r, most| r.limit_tree(None, Some(Cost(most))),
        |r, most| r.limit_money(Some(Cost(most))),
    ];
    for limit in limits {
        let reservations = Reservations::default();
        limit(&reservations, 40);
        let too_little = || reservations.too_little(|_| true);
        assert_eq!(too_little(), None, "nothing is known of the first request");
        assert!(matches!(reservations.reserve(&id(1), large), ReservationResult::Over(_)));
        assert!(too_little().unwrap().contains("first request"), "{:?}", too_little());
        assert_eq!(reservations.too_little(|like| *like != id(1)), None, "an agent of another model");
        assert_eq!(reservations.empty(), None);
        limit(&reservations, 70);
        assert_eq!(too_little(), None);
        assert_eq!(reservations.reserve(&id(1), large), ReservationResult::Go);
        settle(&reservations, &id(1), 10, 10);
        limit(&reservations, 45);
        // A later request is larger than the first one of another agent.
        assert!(matches!(reservations.reserve(&id(1), large), ReservationResult::Over(_)));
        limit(&reservations, 90);
        assert_eq!(too_little(), None);
    }
}

/// A change between the answer and the wait ends the wait.
#[tokio::test]
async fn a_change_before_the_wait_is_not_lost() {
    let reservations = Reservations::default();
    reservations.limit_tree(Some(150), None);
    assert_eq!(reservations.reserve(&id(1), want(100, 0)), ReservationResult::Go);
    let ReservationResult::Wait(revision) = reservations.reserve(&id(2), want(100, 0)) else {
        panic!("no room is left")
    };
    settle(&reservations, &id(1), 10, 0);
    let changed = reservations.changed_since(revision);
    tokio::time::timeout(std::time::Duration::from_secs(90), changed).await.expect("the change came before");
    assert_eq!(reservations.reserve(&id(2), want(100, 0)), ReservationResult::Go);
}

/// The main agent sets the limit of money before each request: the same limit again is no change.
#[test]
fn an_unchanged_limit_of_money_wakes_no_agent() {
    let reservations = Reservations::default();
    reservations.limit_money(Some(Cost(100)));
    let before = *reservations.revision.borrow();
    reservations.limit_money(Some(Cost(100)));
    assert_eq!(*reservations.revision.borrow(), before);
    reservations.limit_money(Some(Cost(101)));
    assert_ne!(*reservations.revision.borrow(), before);
}

/// Fault A2: fifty agents that spend at once overrun a shared budget by one reply at most.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a2_fifty_spend_at_once_and_overshoot_by_one_reply_at_most() {
    const REPLY: u64 = 1_000;
    const BUDGET: u64 = 20_500;
    let reservations = Arc::new(Reservations::default());
    reservations.limit_money(Some(Cost(BUDGET)));
    let agents: Vec<_> = (0..50)
        .map(|n| {
            let reservations = Arc::clone(&reservations);
            tokio::spawn(async move {
                let mut calls = 0_u64;
                loop {
                    match reservations.reserve(&id(n), want(10, REPLY)) {
                        ReservationResult::Over(_) => return calls,
                        ReservationResult::Wait(revision) => reservations.changed_since(revision).await,
                        ReservationResult::Go => {
                            tokio::task::yield_now().await;
                            settle(&reservations, &id(n), 10, REPLY);
                            calls += 1;
                        }
                    }
                }
            })
        })
        .collect();
    let mut calls = 0;
    for agent in agents {
        calls += agent.await.unwrap();
    }
    let spent = reservations.spent().session.0;
    assert_eq!(spent, calls * REPLY);
    assert!((BUDGET..BUDGET + REPLY).contains(&spent), "{spent} of {BUDGET}");
}

/// The sums of the turns of each agent contain those below it, each call once.
#[test]
fn each_call_is_in_one_turn_of_its_agent_and_of_all_above() {
    let reservations = Reservations::default();
    let main = AgentId::main();
    let (child, below) = (id(1), AgentId("main/a1/a2".into()));
    charge(&reservations, &main, 1, 1);
    charge(&reservations, &child, 10, 10);
    charge(&reservations, &below, 100, 100);
    let sum = |of: &AgentId| {
        let sum = reservations.take_sum(of);
        (sum.usage.input, sum.cost())
    };
    assert_eq!(sum(&below), (100, Some(Cost(100))));
    assert_eq!(sum(&below), (0, None));
    assert_eq!(sum(&child), (110, Some(Cost(110))));
    charge(&reservations, &below, 1000, 1000);
    assert_eq!(sum(&main), (1111, Some(Cost(1111))));
    assert_eq!(sum(&child), (1000, Some(Cost(1000))));
    assert_eq!(reservations.spent().session, Cost(1110), "the limits of the main agent are elsewhere");
    // A cost that is missing: of a local server, of a program that reports it later, of a model without a price.
    let usage = Usage { input: 1, ..Usage::default() };
    charge(&reservations, &main, 1, 5);
    reservations.charge(&child, &usage, None, MissingCost::Free);
    assert_eq!(sum(&main), (2, Some(Cost(5))));
    reservations.charge(&child, &usage, None, MissingCost::Later);
    reservations.charge(&child, &usage, Some(Cost(7)), MissingCost::Later);
    assert_eq!(sum(&main), (2, Some(Cost(7))));
    for missing in [MissingCost::Later, MissingCost::Unknown] {
        charge(&reservations, &main, 1, 5);
        reservations.charge(&child, &usage, None, missing);
        assert_eq!(sum(&main), (2, None), "{missing:?}");
    }
}

proptest! {
    /// In any order of reservations and settlements, the main agent's too, no limit of money is passed by more than one
    /// reply, and no agent waits while no reservation is open.
    #[test]
    fn no_order_of_calls_passes_a_tier_or_the_session_by_more_than_a_reply(
        steps in prop::collection::vec((0_usize..7, 0_usize..2), 1..300),
        tier_limit in 0_u64..20_000,
        session in 0_u64..40_000,
    ) {
        const REPLY: u64 = 1_000;
        const TIERS: [Tier; 2] = [Tier::Main, Tier::Fast];
        let reservations = Reservations::default();
        let who = |n: usize| if n == 0 { AgentId::main() } else { id(n) };
        let mut open: HashMap<usize, usize> = HashMap::new();
        let (mut mains, mut tiers) = (0_u64, [0_u64; 2]);
        for (n, tier) in steps {
            if let Some(tier) = open.remove(&n) {
                // As it is booked: tier, session, then what was taken out is free.
                reservations.paid(TIERS[tier], Cost(REPLY));
                tiers[tier] += REPLY;
                if n == 0 { mains += REPLY } else { charge(&reservations, &who(n), 10, REPLY) }
                reservations.limit_money(Some(Cost(session.saturating_sub(mains + reservations.spent().session.0))));
                reservations.release(&who(n));
                continue;
            }
            reservations.limit_money(Some(Cost(session.saturating_sub(mains + reservations.spent().session.0))));
            if n == 0 && mains + reservations.spent().session.0 >= session {
                // It asks the person then.
                continue;
            }
            let wanted = CallEstimate {
                tokens: 10,
                cost: REPLY,
                tier: Some(TIERS[tier]),
                tier_limit: Some(Cost(tier_limit)),
                ..CallEstimate::default()
            };
            match reservations.reserve(&who(n), wanted) {
                ReservationResult::Go => drop(open.insert(n, tier)),
                ReservationResult::Wait(_) => prop_assert!(!open.is_empty(), "{n} waits, and no reservation is open"),
                ReservationResult::Over(_) => {}
            }
        }
        for (n, tier) in open {
            tiers[tier] += REPLY;
            if n == 0 { mains += REPLY } else { charge(&reservations, &who(n), 10, REPLY) }
        }
        let all = mains + reservations.spent().session.0;
        prop_assert!(all < session + REPLY || session == 0 && all == 0, "{all} of {session}");
        for spent in tiers {
            prop_assert!(spent < tier_limit + REPLY || tier_limit == 0 && spent == 0, "{spent} of {tier_limit}");
        }
    }
}
