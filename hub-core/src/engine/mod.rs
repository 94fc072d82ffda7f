//! Work that runs by itself, through the nouns: the delivery pipeline, the iLink gateway, backups and upkeep.

pub mod backup;
pub mod delivery;
pub mod gateway;
pub mod upkeep;
