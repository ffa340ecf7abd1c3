//! Domains, of protection or of XRC: names that objects have in common, and
//! how many objects that are.

use verbs_sys::{Result, VerbsError};

/// Domains of one kind, by number.
#[derive(Debug)]
pub(crate) struct Domains {
    /// What an error calls them.
    kind: &'static str,
    /// Objects per domain; `None` is a free slot.
    users: Vec<Option<usize>>,
}

impl Domains {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            users: Vec::new(),
        }
    }

    /// Makes a domain and returns its number.
    pub(crate) fn alloc(&mut self) -> u32 {
        let free = self.users.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.users.push(None);
            self.users.len() - 1
        });
        if let Some(place) = self.users.get_mut(slot) {
            *place = Some(0);
        }
        slot as u32
    }

    /// Releases a domain.
    ///
    /// # Errors
    /// `Busy` while objects made in it exist, `ForeignObject` when there is none.
    pub(crate) fn dealloc(&mut self, domain: u32) -> Result<()> {
        match self.users.get_mut(domain as usize) {
            Some(Some(users)) if *users > 0 => Err(VerbsError::Busy {
                what: self.kind,
                user: "an object made in it",
            }),
            Some(place @ Some(_)) => {
                *place = None;
                Ok(())
            }
            Some(None) | None => Err(VerbsError::ForeignObject { what: self.kind }),
        }
    }

    /// Number of domains.
    pub(crate) fn len(&self) -> usize {
        self.users.iter().flatten().count()
    }

    pub(crate) fn contains(&self, domain: u32) -> bool {
        matches!(self.users.get(domain as usize), Some(Some(_)))
    }

    pub(crate) fn add_user(&mut self, domain: u32) {
        if let Some(Some(users)) = self.users.get_mut(domain as usize) {
            *users += 1;
        }
    }

    pub(crate) fn remove_user(&mut self, domain: u32) {
        if let Some(Some(users)) = self.users.get_mut(domain as usize) {
            *users = users.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_in_use_stays_and_a_free_number_comes_back() {
        let mut domains = Domains::new("XRC domain");
        let [first, second] = [domains.alloc(), domains.alloc()];
        domains.add_user(first);
        let error = domains.dealloc(first).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the XRC domain is still in use by an object made in it"
        );
        domains.remove_user(first);
        domains.dealloc(first).unwrap();
        assert!(domains.dealloc(first).is_err(), "once is enough");
        assert!(!domains.contains(first) && domains.contains(second));
        assert_eq!((domains.alloc(), domains.len()), (first, 2));
    }
}
