use std::sync::Arc;

use super::*;

fn id(n: usize) -> AgentId {
    AgentId(format!("main/a{n}"))
}

#[test]
fn limits_of_one_and_of_all_hold() {
    let purse = Purse::default();
    assert_eq!(purse.reserve(&id(1), 100, 100), Answer::Go, "nothing is limited");
    purse.settle(&id(1), 80, 90);
    purse.limit(&id(1), AgentLimits { tokens: Some(80), ..AgentLimits::default() });
    assert!(matches!(purse.reserve(&id(1), 1, 1), Answer::Over(why) if why.contains("80 tokens")));
    purse.limit(&id(1), AgentLimits { tokens: Some(81), ..AgentLimits::default() });
    assert_eq!(purse.reserve(&id(1), 100, 1), Answer::Go, "a raised limit lets it go on");
    purse.release(&id(1));
    purse.limit_tree(Some(200), None);
    assert_eq!(purse.reserve(&id(2), 100, 0), Answer::Go);
    assert_eq!(purse.reserve(&id(3), 100, 0), Answer::Wait, "the rest is taken out by another");
    purse.settle(&id(2), 100, 0);
    assert_eq!(purse.reserve(&id(3), 100, 0), Answer::Go, "alone, even when it may not be enough");
    purse.settle(&id(3), 30, 0);
    assert!(matches!(purse.reserve(&id(4), 1, 0), Answer::Over(_)));
    assert!(purse.empty().is_some());
    purse.limit_tree(None, None);
    purse.limit_money(Some(Cost(0)));
    assert!(matches!(purse.reserve(&id(4), 1, 0), Answer::Over(_)), "a budget of zero is reached at once");
}

/// Fault A2: fifty agents that spend at once overrun a shared budget by one reply at most.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a2_fifty_spend_at_once_and_overshoot_by_one_reply_at_most() {
    const REPLY: u64 = 1_000;
    const BUDGET: u64 = 20_500;
    let purse = Arc::new(Purse::default());
    purse.limit_money(Some(Cost(BUDGET)));
    let agents: Vec<_> = (0..50)
        .map(|n| {
            let purse = Arc::clone(&purse);
            tokio::spawn(async move {
                let mut calls = 0_u64;
                loop {
                    let settled = purse.changed();
                    match purse.reserve(&id(n), 10, REPLY) {
                        Answer::Over(_) => return calls,
                        Answer::Wait => {
                            // A change between the answer and here would be missed: look again after a while.
                            let _ = tokio::time::timeout(std::time::Duration::from_millis(5), settled).await;
                        }
                        Answer::Go => {
                            tokio::task::yield_now().await;
                            purse.settle(&id(n), 10, REPLY);
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
    let spent = purse.spent().session.0;
    assert_eq!(spent, calls * REPLY);
    assert!((BUDGET..BUDGET + REPLY).contains(&spent), "{spent} of {BUDGET}");
}
