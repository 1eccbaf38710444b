//! Whose workflow it is: offers, transfers, and the locks that go with them.

use wf_core::locks::LockChange;
use wf_core::models::{Actor, Offer, Person};
use wf_core::state_machine::EventBody;

use super::commit::CommitBuilder;
use super::person;

impl CommitBuilder {
    /// Tells the store of a person by this name.
    #[must_use]
    pub fn seen(mut self, actor: &Actor, name: Option<&str>) -> Self {
        self.seen = Some(Person { id: actor.clone(), name: name.map(str::to_owned) });
        self
    }

    /// Offers the workflow to somebody, or to anybody.
    #[must_use]
    pub fn offer(mut self, to: Option<&Actor>) -> Self {
        let to: Option<Person> = to.map(person);
        self.next.offer = Some(Offer { to: to.clone(), at: self.at });
        self.next.ownership_touch = Some(self.touch());
        self.event(EventBody::OwnershipOffered { to })
    }

    /// Withdraws the offer.
    #[must_use]
    pub fn withdraw(mut self) -> Self {
        self.next.offer = None;
        self.next.ownership_touch = Some(self.touch());
        self.event(EventBody::OfferWithdrawn { declined: false })
    }

    /// Makes somebody else the owner; an offer is gone with it.
    #[must_use]
    pub fn transfer(mut self, to: &Actor) -> Self {
        self.next.owner = person(to);
        self.next.offer = None;
        self.next.ownership_touch = Some(self.touch());
        let assets = self.next.assets.clone();
        self.event(EventBody::OwnershipTransferred {
            to: person(to),
            taken_over: false,
            reason_code: None,
            assets,
        })
    }

    /// Takes all assets of the workflow anew, each with the next fence, as a change of hands does.
    #[must_use]
    pub fn take_assets(mut self) -> Self {
        for held in &mut self.next.assets {
            held.fence += 1;
            self.locks.push(LockChange::Take { asset_id: held.id.clone(), fence: held.fence });
        }
        for (body, _) in &mut self.bodies {
            if let EventBody::OwnershipTransferred { assets, .. } = body {
                assets.clone_from(&self.next.assets);
            }
        }
        self
    }
}
