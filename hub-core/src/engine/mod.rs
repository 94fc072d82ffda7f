//! What works through the nouns by itself: the delivery pipeline, the iLink gateway, backups and upkeep.

pub mod backup;
pub mod delivery;
pub mod gateway;
pub mod upkeep;
