//! Which tools exist for whom by the operator's will: allow and deny lists of backends, profiles and roles.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderName;

use crate::glob::Glob;
use crate::yaml::{At, Fields};

/// Longest name of a profile or role, in bytes.
const NAME_MAX: usize = 128;

/// The profile of callers that name none (or none that is listed), and the role of those that hold none that is listed.
const DEFAULT: &str = "default";

/// An allow list and a deny list of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Only these; `None`: all.
    pub allow: Option<Vec<Glob>>,
    /// Not these, whatever is allowed.
    pub deny: Vec<Glob>,
}

impl Lists {
    /// Whether a list denies the tool.
    pub fn denies(&self, tool: &str) -> bool {
        self.deny.iter().any(|glob| glob.matches(tool))
    }

    /// Whether the allow list, should there be one, holds the tool.
    pub fn allows(&self, tool: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.iter().any(|glob| glob.matches(tool)))
    }

    /// Whether they say nothing.
    pub fn is_empty(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }
}

/// Lists for some callers only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The header that names a caller's profile; believed from trusted sources only.
    pub profile_header: Option<HeaderName>,
    /// By profile.
    pub profiles: BTreeMap<Arc<str>, Lists>,
    /// By role.
    pub roles: BTreeMap<Arc<str>, Lists>,
}

impl Access {
    /// Whether a caller with this profile and these roles may use the tool. Every list that applies may deny; the profile's
    /// allow list must hold the tool, and so must that of one of the roles.
    pub fn permits(&self, tool: &str, profile: Option<&str>, roles: &[Arc<str>]) -> bool {
        let profile = profile.and_then(|name| self.profiles.get(name)).or_else(|| self.profiles.get(DEFAULT));
        if profile.is_some_and(|lists| lists.denies(tool) || !lists.allows(tool)) {
            return false;
        }
        let mut held: Vec<&Lists> = roles.iter().filter_map(|role| self.roles.get(role)).collect();
        if held.is_empty() {
            held.extend(self.roles.get(DEFAULT));
        }
        held.iter().all(|lists| !lists.denies(tool)) && (held.is_empty() || held.iter().any(|lists| lists.allows(tool)))
    }

    /// Whether callers can differ in what they may use.
    pub fn depends_on_the_caller(&self) -> bool {
        !self.profiles.is_empty() || !self.roles.is_empty()
    }
}

pub(super) fn access(f: &Fields<'_>) -> Access {
    let header = "The request header that names the caller's profile; believed from `identity.trusted_sources` only.";
    let profiles = "Lists by profile; `default` is for callers that name none, or none of these.";
    let roles = "Lists by role; `default` is for callers that hold none of these.";
    let read = Access {
        profile_header: f.opt("profile_header", header, |at| {
            at.parse("the name of a header such as `x-profile`", "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", |text| {
                HeaderName::try_from(text).map_err(|_| String::new())
            })
        }),
        profiles: f.opt("profiles", profiles, named).unwrap_or_default(),
        roles: f.opt("roles", roles, named).unwrap_or_default(),
    };
    let nameless = read.profiles.keys().any(|name| &**name != DEFAULT) && !f.has("profile_header");
    if nameless {
        let message = "`profiles` need `profile_header`, the header that says which one a caller has";
        f.fail::<()>("profiles", message, |problem| problem.help("`profile_header: x-profile`"));
    }
    read
}

fn named(at: At<'_>) -> Option<BTreeMap<Arc<str>, Lists>> {
    let all = at.entries(|name, at| {
        if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
            let message = format!("a name has 1 to {NAME_MAX} bytes and no control characters");
            return at.fail_key(message, |problem| problem);
        }
        at.map(lists)
    })?;
    Some(all.into_iter().collect())
}

/// `allow` and `deny`.
pub(super) fn lists(f: &Fields<'_>) -> Lists {
    let allow = "Name patterns of the only tools that may be listed and called; left out: all.";
    let deny = "Name patterns of tools that are neither listed nor called, whatever is allowed.";
    Lists {
        allow: f.opt("allow", allow, |at| at.list(|at| at.glob())),
        deny: f.opt("deny", deny, |at| at.list(|at| at.glob())).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(allow: Option<&[&str]>, deny: &[&str]) -> Lists {
        let globs = |names: &[&str]| names.iter().map(|name| Glob::new(name).unwrap()).collect::<Vec<_>>();
        Lists { allow: allow.map(globs), deny: globs(deny) }
    }

    #[test]
    fn a_deny_wins_over_an_allow_and_an_allow_list_holds_all_that_is_allowed() {
        let read_only = lists(Some(&["*_read", "*_search"]), &["hr_*"]);
        for (tool, fine) in [("jira_read", true), ("jira_write", false), ("hr_read", false)] {
            assert_eq!(read_only.allows(tool) && !read_only.denies(tool), fine, "{tool}");
        }
        assert!(lists(None, &[]).allows("anything") && !lists(Some(&[]), &[]).allows("anything"));
    }

    #[test]
    fn profile_and_roles_both_have_to_permit_and_default_is_for_those_who_name_none() {
        let access = Access {
            profile_header: None,
            profiles: [("planner", lists(None, &["*_delete"])), (DEFAULT, lists(Some(&["help"]), &[]))]
                .map(|(name, lists)| (Arc::from(name), lists))
                .into(),
            roles: [("reader", lists(Some(&["*_read"]), &[])), ("writer", lists(Some(&["*_write"]), &["hr_*"]))]
                .map(|(name, lists)| (Arc::from(name), lists))
                .into(),
        };
        let roles = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<Arc<str>>>();
        for (tool, profile, held, fine) in [
            ("jira_read", Some("planner"), &["reader"][..], true),
            ("jira_write", Some("planner"), &["reader"], false),
            ("jira_write", Some("planner"), &["reader", "writer"], true),
            ("hr_read", Some("planner"), &["reader", "writer"], false),
            ("jira_delete", Some("planner"), &[], false),
            ("jira_write", Some("planner"), &["unlisted"], true),
            ("jira_write", Some("unlisted"), &[], false),
            ("jira_write", None, &[], false),
            ("help", None, &[], true),
        ] {
            assert_eq!(access.permits(tool, profile, &roles(held)), fine, "{tool} {profile:?} {held:?}");
        }
    }
}
