//! Spending of the present day.

use std::collections::HashMap;
use tiller_config::agents::Tier;

use tiller_protocol::Cost;
use tiller_store::StoreError;

use crate::core::services::Services;
use crate::money::reservations::Tiers;

/// Spending of a day, all processes included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Today {
    pub(crate) all: Cost,
    pub(crate) tiers: Tiers,
}

/// Reads the spending of the present day from the store: blocks.
pub(crate) fn today(services: &Services) -> Result<Today, StoreError> {
    let day = services.store.costs().day(services.clock.now());
    let mut spent = HashMap::new();
    for tier in Tier::ALL {
        spent.insert(tier, services.store.costs().spent_on(&day, Some(tier.word()))?.cost);
    }
    Ok(Today { all: services.store.costs().spent_on(&day, None)?.cost, tiers: Tiers { day, spent } })
}
