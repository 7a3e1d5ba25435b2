//! Where the problems of one file gather while it is read.

use std::cell::RefCell;
use std::sync::Arc;

use super::parse::parse;
use super::problem::{Problem, Report};
use super::source::Source;
use super::tree::Node;

/// So many problems of one file are kept; a hostile file may hold one in every byte.
const PROBLEMS_MAX: usize = 1_000;

/// Where the problems of one file gather while it is read.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) source: Arc<Source>,
    problems: RefCell<Vec<Problem>>,
}

impl Sheet {
    pub(super) fn new(source: &Arc<Source>) -> Sheet {
        Sheet { source: source.clone(), problems: RefCell::default() }
    }

    pub(super) fn parse(&self) -> Option<Arc<Node>> {
        parse(&self.source, self)
    }

    pub(super) fn push(&self, problem: Problem) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() < PROBLEMS_MAX {
            problems.push(problem);
        }
    }

    pub(super) fn into_report(self) -> Report {
        let mut report = Report::new();
        self.problems.into_inner().into_iter().for_each(|problem| report.push(problem));
        report.sort();
        report
    }
}
